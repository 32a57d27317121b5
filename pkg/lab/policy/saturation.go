package policy

import (
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/pool"
)

// saturation is how full a pool is by its last scrapes, 1 at the thresholds that routers ship with: the mean over replicas of
// the larger of waiting requests over 5 and KV in use over 0.8. It is the utilization detector of the Gateway API inference
// extension, which the llm-d router took over (pkg/epp/framework/plugins/flowcontrol/saturationdetector/utilization,
// README.md, 2026). A replica that was never scraped counts as full. There a page is old after 200 ms and is read each 50; here
// it is read each second, as for weir.
type saturation struct {
	pool    *pool.Pool
	scrapes []step.Stats
}

const (
	queueThreshold = 5.0
	kvThreshold    = 0.8
)

func newSaturation(r *weir) saturation {
	return saturation{r.pool, make([]step.Stats, len(r.pool.Replicas))}
}

// plain is the saturation that the pages tell.
func (s *saturation) plain() float64 {
	return s.mean(func(int) float64 { return 0 })
}

// corrected also counts as waiting the requests that the router has sent and no page shows, as the detector does where it is
// told of requests in flight.
func (s *saturation) corrected() float64 {
	return s.mean(func(slot int) float64 {
		return max(0, float64(s.pool.Replicas[slot].Leases()-s.scrapes[slot].Waiting-s.scrapes[slot].Running))
	})
}

func (s *saturation) mean(unseen func(slot int) float64) (sum float64) {
	for i, page := range s.scrapes {
		if page.KVBlocks == 0 {
			sum++
			continue
		}
		sum += max((float64(page.Waiting)+unseen(i))/queueThreshold, page.KVUsage()/kvThreshold)
	}
	return sum / float64(len(s.scrapes))
}
