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
			p, err := step.Lookup(w.Profile)
			if err != nil {
				b.Fatal(err)
			}
			sent := 0
			for b.Loop() {
				stages, err := w.Stages(workload.Params{Rate: w.Loads[len(w.Loads)-1], Seed: 1, Length: 2 * time.Minute})
				if err != nil {
					b.Fatal(err)
				}
				results, err := Stages(Config{Profile: p, Replicas: w.Replicas, Routers: 1, Policy: policy.Weir, Seed: 1}, stages, Span{})
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
		})
	}
}
