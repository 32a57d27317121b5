package sim

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// BenchmarkSim is two minutes of each workload at its busiest load under weir: requests per second of wall time.
func BenchmarkSim(b *testing.B) {
	for _, name := range workload.Names() {
		w, err := workload.Lookup(name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			play(b, w, Config{Replicas: w.Replicas, Routers: 1}, w.Loads[len(w.Loads)-1], 2*time.Minute)
		})
	}
}

// BenchmarkWide is 20 s of W5-35 on as many replicas as there can be, at a load like that of four at 16 requests/s, and with
// as many routers.
func BenchmarkWide(b *testing.B) {
	w, err := workload.Lookup("W5-35")
	if err != nil {
		b.Fatal(err)
	}
	for name, cfg := range map[string]Config{
		"512 replicas":            {Replicas: MaxReplicas, Routers: 1},
		"512 replicas, 4 routers": {Replicas: MaxReplicas, Routers: MaxRouters},
		"4 routers":               {Replicas: w.Replicas, Routers: MaxRouters},
	} {
		b.Run(name, func(b *testing.B) {
			length := 20 * time.Second * time.Duration(MaxReplicas/cfg.Replicas)
			play(b, w, cfg, 4*float64(cfg.Replicas), min(length, 5*time.Minute))
		})
	}
}

// play runs a workload under weir, again and again.
func play(b *testing.B, w workload.Info, cfg Config, rate float64, length time.Duration) {
	var err error
	if cfg.Profile, err = step.Lookup(w.Profile); err != nil {
		b.Fatal(err)
	}
	cfg.Policy, cfg.Seed = policy.Weir, 1
	sent := 0
	for b.Loop() {
		stages, err := w.Stages(workload.Params{Rate: rate, Seed: 1, Length: length, Replicas: cfg.Replicas})
		if err != nil {
			b.Fatal(err)
		}
		results, err := Stages(cfg, stages, Span{})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range results {
			if r != nil {
				sent += r.Sent
			}
		}
	}
	b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "req/s")
}
