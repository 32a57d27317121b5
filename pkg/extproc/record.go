package extproc

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/pkg/prompt"
	"github.com/weirproxy/weir/pkg/route"
)

// record turns a Decision into the decision record (proto/weir/v1/decision.proto) as Envoy's dynamic metadata
// carries it. A field without a value is left out, as protobuf leaves out zeros.
func record(d *route.Decision) *structpb.Struct {
	r := fields{}
	r.text("pool", d.Pool)
	r.text("class", d.Class)
	r.text("decision", verdict(d))
	r.number("wait_ms", float64(d.Wait.Microseconds())/1000)
	r.number("predicted_wait_ms", float64(d.Predicted().Microseconds())/1000)
	r.text("held_for", d.HeldFor().String())
	r.number("queue_depth", float64(d.Queued))
	r.text("api", d.Prompt.API.String())
	if d.Prompt.Reason != prompt.ReasonNone {
		r.text("reason", d.Prompt.Reason.String())
	}
	r.number("prompt_tokens", float64(d.Prompt.Tokens))
	if d.State == route.Picked {
		c := d.Choice
		r.text("endpoint", c.First.Endpoint)
		if c.Second != nil {
			r.text("second", c.Second.Endpoint)
		}
		r.number("matched_tokens", c.Cached)
		r.number("uncached_tokens", c.Load.Uncached)
		r.number("backlog_tokens", c.View.Backlog)
		r.number("predicted_ttft_ms", float64(d.PredictedFirst().Microseconds())/1000)
		r.number("expected_output_tokens", c.Load.Output)
		r.number("saturation", c.View.Wait/c.View.Tau)
	}
	return &structpb.Struct{Fields: r}
}

// verdict is what weir decided, before the request's own end.
func verdict(d *route.Decision) string {
	if d.State == route.Picked {
		return "picked"
	}
	return d.Outcome.String()
}

type fields map[string]*structpb.Value

func (f fields) text(name, v string) {
	if v != "" {
		f[name] = structpb.NewStringValue(v)
	}
}

func (f fields) number(name string, v float64) {
	if v != 0 {
		f[name] = structpb.NewNumberValue(v)
	}
}
