package workload

import "github.com/weirproxy/weir/pkg/lab/step"

// serve is what replicas make of requests whose blocks lie in one cache with the memory of all of them. rate
// is that of the pool.
func serve(requests []*Request, pool Pool, replicas int, rate float64) Serving {
	cache := step.NewShared(replicas * (pool.KVTokens / step.BlockTokens))
	var found, prompt, output, context float64
	for _, r := range requests {
		found += float64(cache.Serve(r.Blocks, r.Prompt, r.Output))
		prompt += float64(r.Prompt)
		output += float64(r.Output)
		context += float64(r.Output) * (float64(r.Prompt) + float64(r.Output)/2)
	}
	n := float64(len(requests))
	s := Serving{Hit: found / prompt, Uncached: (prompt - found) / n}
	d := demand{Uncached: s.Uncached, Output: output / n, Context: context / output, Held: held(requests, replicas, pool.Profile)}
	each, binds := d.Knee(pool.Profile)
	s.Knee, s.Binds = each*float64(pool.Replicas), binds
	s.Prefill = rate / float64(pool.Replicas) * s.Uncached * pool.PerPrefill.Seconds()
	return s
}

// samples is how many moments held looks at.
const samples = 12

// held returns demand.Held: the KV tokens on one of the replicas while n sequences run on each, shared
// blocks once. It looks at moments of the traffic at which so many run, a request running for a time in
// proportion to its answer. Where there are too few requests, and past what the memory or the seats hold, it
// goes on linearly.
func held(requests []*Request, replicas int, p step.Profile) func(n float64) float64 {
	output, longest := 0, 0
	for _, r := range requests {
		output += r.Output
		longest = max(longest, r.Output)
	}
	mean := float64(output) / float64(len(requests))
	x, y := []float64{0}, []float64{0}
	for n := 1; n == 1 || n < 2*p.MaxSeqs && n*replicas*3 <= len(requests) && y[len(y)-1] < float64(p.KVTokens); n *= 2 {
		span := float64(n*replicas) / mean // requests that arrive while one token is given
		sum := 0.0
		for k := range samples {
			sum += float64(runningAt(requests, float64(len(requests))*(0.4+0.6*float64(k)/samples), span, longest))
		}
		x, y = append(x, float64(n)), append(y, sum/samples/float64(replicas))
	}
	return func(n float64) float64 {
		i := 1
		for i < len(x)-1 && n > x[i] {
			i++
		}
		return y[i-1] + (n-x[i-1])*(y[i]-y[i-1])/(x[i]-x[i-1])
	}
}

// runningAt is the KV tokens of the sequences that run at a moment, counted in requests from the start.
func runningAt(requests []*Request, moment, span float64, longest int) int {
	seen, tokens := map[uint64]struct{}{}, 0
	for i := min(int(moment), len(requests)-1); i >= 0; i-- {
		r := requests[i]
		so := int((moment - float64(i)) / span) // answer tokens so far
		if so >= longest {
			break
		}
		if so >= r.Output {
			continue
		}
		n := r.promptBlocks()
		tokens += r.Prompt - n*step.BlockTokens + so
		for k := n - 1; k >= 0; k-- {
			if _, ok := seen[r.Blocks[k]]; ok {
				break // and so are all before it
			}
			seen[r.Blocks[k]] = struct{}{}
			tokens += step.BlockTokens
		}
	}
	return tokens
}
