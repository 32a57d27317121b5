package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/pkg/route"
)

// vecs are the request metrics before their labels are filled in.
type vecs struct {
	requests, matched, uncached, parse, picks, served, responses *prometheus.CounterVec
	wait, ratio, prompt                                          *prometheus.HistogramVec
}

func newVecs(reg prometheus.Registerer) *vecs {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		reg.MustRegister(h)
		return h
	}
	return &vecs{
		requests:  counter("weir_requests_total", "Requests that ended, each with exactly one outcome.", "pool", "class", "outcome"),
		wait:      histogram("weir_gate_wait_seconds", "Time from a request's whole body to its pick, refusal or leaving.", waitBuckets, "pool", "class"),
		ratio:     histogram("weir_gate_wait_ratio", "Wait at the gate over what was predicted, of requests with a prediction that were picked or refused at their deadline.", ratioBuckets, "pool", "class"),
		prompt:    histogram("weir_prompt_tokens", "Estimated prompt tokens of a request.", tokenBuckets, "pool"),
		matched:   counter("weir_matched_tokens_total", "Prompt tokens that the picked replica was believed to hold in its prefix cache.", "pool"),
		uncached:  counter("weir_uncached_tokens_total", "Prompt tokens that the picked replica was charged for.", "pool"),
		parse:     counter("weir_parse_total", "Requests by API and by why the prompt was not read: none (it was), path (another API), empty, encoding (unknown, several or damaged), inflated (over body_limit), busy (no worker or memory to undo it), not_json, depth, shape (no prompt that can be read), stored (begins with what the server keeps), mode (the body mode does not show it).", "pool", "api", "reason"),
		picks:     counter("weir_picks_total", "Requests by the replica picked first.", "pool", "endpoint"),
		served:    counter("weir_served_total", "Picked requests by which of the picked replicas served them; other: neither.", "pool", "match"),
		responses: counter("weir_responses_total", "Answers by class of HTTP status: those of replicas, and of Envoy where a replica could not be reached.", "pool", "code"),
	}
}

// pool makes every child of one pool.
func (v *vecs) pool(s route.Stats) *poolCounts {
	p := &poolCounts{
		classes: map[string]*classCounts{}, other: v.class(s.Pool, none),
		prompt:  v.prompt.WithLabelValues(s.Pool),
		matched: v.matched.WithLabelValues(s.Pool), uncached: v.uncached.WithLabelValues(s.Pool),
		picks: map[string]prometheus.Counter{},
	}
	for class := range s.Held {
		p.classes[class] = v.class(s.Pool, class)
	}
	for i, api := range apis {
		for j, reason := range reasons {
			p.parse[i][j] = v.parse.WithLabelValues(s.Pool, api.String(), reason.String())
		}
	}
	for _, r := range s.Replicas {
		p.picks[r.Endpoint] = v.picks.WithLabelValues(s.Pool, r.Endpoint)
	}
	for i, served := range serveds {
		p.served[i] = v.served.WithLabelValues(s.Pool, served.String())
	}
	for i, code := range codes {
		p.responses[i] = v.responses.WithLabelValues(s.Pool, code)
	}
	return p
}

func (v *vecs) class(pool, class string) *classCounts {
	c := &classCounts{
		wait: v.wait.WithLabelValues(pool, class), ratio: v.ratio.WithLabelValues(pool, class),
		outcomes: map[route.Outcome]prometheus.Counter{},
	}
	for _, o := range route.Outcomes() {
		c.outcomes[o] = v.requests.WithLabelValues(pool, class, o.String())
	}
	return c
}
