package pool

import (
	"time"

	"github.com/weirproxy/weir/pkg/knee"
)

// Knee is where a pool stands to its knee, as /debug/knee shows it.
type Knee struct {
	Needed   Needed        `json:"needed"` // replicas, to stay below it
	Wait     Waits         `json:"wait"`
	Replicas []ReplicaKnee `json:"replicas"`
}

// Waits is the mean time before a request's prompt is computed, in seconds: as queueing theory has it for what comes, with the
// usable replicas as the servers and u*P + D as the service, and as it is. Null: no end, or nothing to tell.
type Waits struct {
	ErlangC      *float64 `json:"erlang_c"`      // M/M/c
	AllenCunneen *float64 `json:"allen_cunneen"` // G/G/c, by the variances of what comes
	Measured     *float64 `json:"measured"`      // at the gate, and by their own counters at the replicas
	Gate         float64  `json:"gate"`          // of that, at the gate
}

// ReplicaKnee is where one replica stands.
type ReplicaKnee struct {
	Endpoint    string   `json:"endpoint"`
	Below       bool     `json:"below_knee"`
	Saturation  float64  `json:"saturation"` // wait over tau: 1 is the knee
	Wait        float64  `json:"wait_seconds"`
	Tau         float64  `json:"tau_seconds"`
	Used        float64  `json:"kv_used"` // share of usable KV
	Leases      int      `json:"leases"`
	Seats       int      `json:"seats"`
	Decode      float64  `json:"step_seconds"`         // D, with what runs now
	Prefill     float64  `json:"prompt_token_seconds"` // P, with that
	RatesAge    *float64 `json:"rates_age_seconds"`    // of the last scrape that the two were learned from; null: the policy's
	StaleGauges bool     `json:"stale"`                // weir's own counts hold the knee, not the replica's gauges
}

// Knee describes the pool at now.
func (p *Pool) Knee(now time.Time) Knee {
	k := Knee{Needed: p.Needed(now), Wait: p.waits(now)}
	for _, r := range p.Replicas {
		v := r.View(now)
		e := r.Estimates(now)
		k.Replicas = append(k.Replicas, ReplicaKnee{
			Endpoint: r.Endpoint, Below: v.Below(), Saturation: v.Wait / v.Tau, Wait: v.Wait, Tau: v.Tau, Used: v.Used,
			Leases: r.leases, Seats: r.seats, Decode: r.decode, Prefill: v.Prefill, RatesAge: e.Slow.AgeSeconds,
			StaleGauges: !r.sampled || now.Sub(r.sample.At) >= Stale,
		})
	}
	return k
}

// waits is what theory says of the pool's wait, and the measurement.
func (p *Pool) waits(now time.Time) (w Waits) {
	usable, queued, tell := 0, 0.0, 0.0
	for _, r := range p.Replicas {
		if !r.health.failing() {
			usable++
		}
		if q := r.lately.queue; q.Has {
			queued += q.Sum
			tell += q.Count
		}
	}
	w.Gate = p.gateWait
	if tell > 0 {
		measured := w.Gate + queued/tell
		w.Measured = &measured
	}
	x := p.demand.read(now)
	load := x.time / p.Own()
	if x.rate <= 0 || load >= float64(usable) {
		return w
	}
	service := x.time / x.rate
	erlang := knee.QueueWait(usable, load, service)
	general := knee.AllenCunneen(usable, load, service, variation(float64(p.demand.gap), float64(p.demand.gapSquare)), variation(service, x.square/x.rate))
	w.ErlangC, w.AllenCunneen = &erlang, &general
	return w
}
