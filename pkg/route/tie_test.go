package route

import (
	"testing"

	"github.com/weirproxy/weir/pkg/pool"
)

// Idle replicas cost the same while the rates that all are priced by are being learned, in whatever direction they go, so that
// new prompts go to their homes and not all to whichever was looked at last.
func TestIdleReplicasStayTied(t *testing.T) {
	for _, gap := range []float64{0.002, 0.02} { // faster and slower than the policy says
		r := newRouter(2, Default())
		picks := map[string]int{}
		for i := range 40 {
			now := float64(i)
			for k, rep := range r.pool.Replicas {
				s := now + 0.4*float64(k)
				r.Observe(at(s), rep.Endpoint, pool.Sample{
					At: at(s), HasTokens: true, Tokens: 1 + s, HasRunning: true, HasWaiting: true, HasKV: true,
					TTFT: pool.Summary{Count: 10 * s, Sum: s, Has: true}, InterToken: pool.Summary{Count: 200 * s, Sum: gap * 200 * s, Has: true},
					Computed: 20_000 * s, HasComputed: true,
				})
			}
			d := r.Route(at(now+0.5), ask(i, 500))
			picks[d.Choice.First.Endpoint]++
			d.Status = 200
			r.Done(at(now+0.9), d, Answered)
		}
		if a, b := picks[endpoint(0)], picks[endpoint(1)]; a < 8 || b < 8 {
			t.Errorf("steps of %v s: %d and %d of 40 new prompts", gap, a, b)
		}
	}
}
