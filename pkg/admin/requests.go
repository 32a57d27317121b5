package admin

import (
	"maps"
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/pkg/prompt"
	"github.com/weirproxy/weir/pkg/route"
)

const (
	unknown = "unknown" // pool: not one of weir's
	none    = "none"    // class: the request did not come as far as to get one
)

var (
	// apis, reasons and serveds are in the order of their values.
	apis    = [...]prompt.API{prompt.APIOther, prompt.APIChat, prompt.APICompletions, prompt.APIResponses, prompt.APIMessages, prompt.APICount, prompt.APIEmbeddings}
	reasons = [...]prompt.Reason{
		prompt.ReasonNone, prompt.ReasonPath, prompt.ReasonEmpty, prompt.ReasonEncoding, prompt.ReasonNotJSON,
		prompt.ReasonDepth, prompt.ReasonShape, prompt.ReasonStored, prompt.ReasonMode, prompt.ReasonInflated, prompt.ReasonBusy,
	}

	serveds = [...]route.Served{route.Unknown, route.First, route.Second, route.Other}

	codes = [...]string{"1xx", "2xx", "3xx", "4xx", "5xx"}

	// waitBuckets go from a hold that nobody notices, over half a second, the least tau, to five minutes, the
	// default bound of a hold.
	waitBuckets = []float64{0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	// ratioBuckets have a prediction within a quarter in the two in the middle.
	ratioBuckets = []float64{0.25, 0.5, 0.8, 1, 1.25, 2, 4}
	// tokenBuckets go from half a block to the longest context in wide use, by powers of four.
	tokenBuckets = prometheus.ExponentialBuckets(32, 4, 7)
)

// requests holds every child of the request metrics, made at the start and for the classes of a reload: each series
// is there from the first scrape, recording allocates nothing, and no other label value can come up.
type requests struct {
	pools map[string]*poolCounts
	other *poolCounts // of a pool that is not weir's
}

type poolCounts struct {
	classes map[string]*classCounts
	other   *classCounts // of a class that is not one

	prompt            prometheus.Observer
	matched, uncached prometheus.Counter
	parse             [len(apis)][len(reasons)]prometheus.Counter
	picks             map[string]prometheus.Counter // by endpoint
	served            [len(serveds)]prometheus.Counter
	responses         [len(codes)]prometheus.Counter
}

type classCounts struct {
	wait, ratio prometheus.Observer
	outcomes    map[route.Outcome]prometheus.Counter
}

// newRequests makes the children of the pools, classes and endpoints in stats.
func newRequests(v *vecs, stats []route.Stats) *requests {
	r := &requests{pools: map[string]*poolCounts{}, other: v.pool(route.Stats{Pool: unknown})}
	for _, s := range stats {
		r.pools[s.Pool] = v.pool(s)
	}
	return r
}

// with returns a copy that has these classes too. Those that r has keep their counters: requests of a class that
// has vanished may still end.
func (r *requests) with(v *vecs, classes []string) *requests {
	next := &requests{pools: map[string]*poolCounts{}, other: r.other}
	for name, p := range r.pools {
		more := *p
		more.classes = maps.Clone(p.classes)
		for _, class := range classes {
			if more.classes[class] == nil {
				more.classes[class] = v.class(name, class)
			}
		}
		next.pools[name] = &more
	}
	return next
}

// record is Admin.Record.
func (r *requests) record(d *route.Decision) {
	p := r.pools[d.Pool]
	if p == nil {
		p = r.other
	}
	c := p.classes[d.Class]
	if c == nil {
		c = p.other
	}
	n := c.outcomes[d.Outcome]
	if n == nil { // not ended: whoever counts it errs
		n = c.outcomes[route.Failed]
	}
	n.Inc()
	if d.Class != "" { // it came to the route
		p.parsed(&d.Prompt)
		if d.Outcome != route.NoReplica {
			c.wait.Observe(d.Wait.Seconds())
		}
		if d.Predicted() > 0 && (d.State == route.Picked || d.Outcome == route.Late) {
			c.ratio.Observe(float64(d.Wait) / float64(d.Predicted()))
		}
	}
	if d.State == route.Picked {
		p.picked(d)
	}
	if i := d.Status/100 - 1; i >= 0 && i < len(codes) {
		p.responses[i].Inc()
	}
}

func (p *poolCounts) parsed(q *prompt.Prompt) {
	p.prompt.Observe(float64(q.Tokens))
	p.parse[min(int(q.API), len(apis)-1)][min(int(q.Reason), len(reasons)-1)].Inc()
}

func (p *poolCounts) picked(d *route.Decision) {
	if c := p.picks[d.Choice.First.Endpoint]; c != nil {
		c.Inc()
	}
	add(p.matched, d.Choice.Cached)
	add(p.uncached, d.Choice.Load.Uncached)
	p.served[min(int(d.Served), len(serveds)-1)].Inc()
}

// add leaves out what would spoil a counter for good: NaN and infinity, or, by a panic, the process.
func add(c prometheus.Counter, v float64) {
	if v > 0 && !math.IsInf(v, 1) {
		c.Add(v)
	}
}
