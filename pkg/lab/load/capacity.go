package load

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/prompt"
)

// Capacity is the requests per second of model time that n replicas complete of a workload under round robin
// when it comes faster than they can serve it. It runs the step model in virtual time: all arrivals are
// there at once, in their order, and the throughput is that of the middle six tenths of the completions,
// when caches are warm and batches not yet running dry. Such a burst tells the rate that the pool holds:
// for the Mix on four replicas it gives 21.2, and at Poisson arrivals over five minutes the median time to
// first token is that of an idle pool at 18, twice that at 20, and seconds at 22.
//
// The arrivals must be work for several times as long as one answer takes under such load: while prompts are prefilled
// without a break, answers hardly move, and what ends in the middle of a short burst is the rush after it. 1,500 of
// a Contention's small requests come to 84.7, 6,000 to 56.9.
func Capacity(p step.Profile, n int, arrivals []Arrival) (float64, error) {
	replicas := make([]*step.Replica, n)
	for i := range replicas {
		var err error
		if replicas[i], err = step.New(p); err != nil {
			return 0, err
		}
	}
	for i := range arrivals {
		s, err := Sequence(&arrivals[i])
		if err == nil {
			err = replicas[i%n].Submit(0, s)
		}
		if err != nil {
			return 0, err
		}
	}
	ends := make([]time.Duration, 0, len(arrivals))
	for _, r := range replicas {
		for _, e := range r.Advance(math.MaxInt64) {
			if e.Kind == step.Finished {
				ends = append(ends, e.At)
			}
		}
	}
	if len(ends) < 10 {
		return 0, fmt.Errorf("load: %d requests are too few for a throughput", len(ends))
	}
	slices.Sort(ends)
	from, to := len(ends)*2/10, len(ends)*8/10
	return float64(to-from) / (ends[to] - ends[from]).Seconds(), nil
}

// Sequence is an arrival as the step model computes it: prompt and prefix blocks as package prompt reads
// them, and an answer as long as the request allows. A block of the chain is several of the model's, so a
// match may be one chain block short of a real replica's.
func Sequence(a *Arrival) (*step.Seq, error) {
	var parser prompt.Parser
	var p prompt.Prompt
	parser.Parse(&p, prompt.Input{Path: a.Path, Body: a.Body})
	if p.Reason != prompt.ReasonNone || p.MaxTokens == 0 {
		return nil, errors.New("load: an arrival without a prompt or without max_tokens")
	}
	const per = chain.BlockTokens / step.BlockTokens
	s := &step.Seq{Prompt: p.Tokens, Output: p.MaxTokens, Hashes: make([]uint64, 0, per*len(p.Chain))}
	for _, h := range p.Chain {
		for i := range uint64(per) {
			s.Hashes = append(s.Hashes, uint64(h)+i)
		}
	}
	return s, nil
}
