package workload

import "time"

// rungs is the stages of llm-d's b2b-saas run, from the load section of its published result
// (guides/optimized-baseline/README.md of github.com/llm-d/llm-d: Poisson arrivals, the first stage to warm
// up, which sends each of the 750 prompts once).
var rungs = []struct {
	rate    float64 // requests per second
	seconds int
}{
	{15, 50},
	{3, 20}, {10, 20}, {15, 20}, {20, 38}, {22, 34}, {25, 30}, {30, 25}, {35, 21},
	{40, 38}, {43, 36}, {46, 33}, {49, 30}, {52, 29}, {55, 27}, {57, 26}, {60, 25},
}

// ladder sends W3's prompts in one order over and over, as inference-perf does (its shared_prefix data is
// shuffled once and then read modulo its length), through all stages. A stage sends rate x seconds
// requests; Params.Rate multiplies the rate and leaves their number.
func ladder(p Params) []Stage {
	prompts, next := b2b.prompts(p), 0
	stages := make([]Stage, len(rungs))
	for i, r := range rungs {
		stages[i] = Stage{Rate: r.rate * p.Rate, Warm: i == 0, Source: &arrivals{
			rng: source(p.Seed, ofArrivals<<8+uint64(i)), gap: poisson, rate: r.rate * p.Rate,
			left: int(r.rate) * r.seconds,
			make: func(at time.Duration) *Request {
				t := prompts[next%len(prompts)]
				next++
				return b2b.request(at, t)
			},
		}}
	}
	return stages
}
