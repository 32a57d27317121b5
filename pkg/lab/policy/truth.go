package policy

import (
	"time"

	"github.com/weirproxy/weir/pkg/route"
)

// Estimates is what weir has learned; ok is false for any other router.
func Estimates(now time.Duration, r Router) (e route.Estimates, ok bool) {
	w, ok := r.(*weir)
	if !ok {
		return e, false
	}
	return w.Router.Estimates(epoch.Add(now)), true
}

// Knee is where weir's replicas stand to their knees; ok is false for any other router.
func Knee(now time.Duration, r Router) (k route.Knee, ok bool) {
	w, ok := r.(*weir)
	if !ok {
		return k, false
	}
	return w.Router.Knee(epoch.Add(now)), true
}

// Forecast is what weir predicted of a request.
type Forecast struct {
	Wait   float64 // seconds at the gate, when it came; 0: none, or not to tell
	Prompt float64 // tokens
	Cached float64 // of them
	Output float64 // tokens
	First  float64 // seconds from its pick to its first token
}

// Forecast is what weir predicted of a Sent call; ok is false under any other rule.
func (c *Call) Forecast() (f Forecast, ok bool) {
	d := c.decision
	if d == nil {
		return f, false
	}
	l := d.Choice.Load
	return Forecast{d.Predicted().Seconds(), l.Prompt, l.Prompt - l.Uncached, l.Output, d.PredictedFirst().Seconds()}, true
}
