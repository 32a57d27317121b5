package pool

import (
	"math"
	"time"
)

// averageGain is the weight of a sample in an average: the last ten count most, as for the rates.
const averageGain = 0.1

// average is a moving mean over samples, and how far they lie apart.
type average struct {
	mean, square float64
	samples      int
	at           time.Time
}

// add takes in a sample.
func (a *average) add(at time.Time, v float64) {
	gain := averageGain
	if a.samples == 0 {
		gain = 1
	}
	a.mean += gain * (v - a.mean)
	a.square += gain * (v*v - a.square)
	a.samples++
	a.at = at
}

// estimate is the average as people see it. A mean of zero has no spread.
func (a *average) estimate(now time.Time) Estimate {
	e := Estimate{Value: a.mean, Samples: a.samples}
	if a.mean > 0 {
		e.Spread = math.Sqrt(max(a.square-a.mean*a.mean, 0)) / a.mean
	}
	if a.samples > 0 {
		age := now.Sub(a.at).Seconds()
		e.AgeSeconds = &age
	}
	return e
}
