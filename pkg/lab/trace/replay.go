package trace

import (
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// replay yields the rows of a checked trace. Hashes are made as they are asked for: a trace's prompts
// together take thirty times the memory of its ids.
type replay struct {
	rows  []row
	done  int
	first time.Duration
	speed float64
}

// Next implements workload.Source.
func (p *replay) Next() (*workload.Request, bool) {
	if p.done == len(p.rows) {
		return nil, false
	}
	r := &p.rows[p.done]
	p.done++
	return &workload.Request{
		At:     time.Duration(float64(r.at-p.first) / p.speed),
		Blocks: r.blocks(uint64(p.done)),
		Prompt: r.prompt, Output: r.output, Class: r.class, Flow: r.flow,
	}, true
}

// blocks is the hashes of 16 tokens each of a row, the nth of its trace.
func (r *row) blocks(n uint64) []uint64 {
	if r.block == 0 {
		return unique(n, r.prompt/step.BlockTokens)
	}
	per := r.block / step.BlockTokens
	all := make([]uint64, 0, r.named/step.BlockTokens)
	var h uint64
	for _, id := range r.ids {
		for i := 0; i < per && len(all) < cap(all); i++ {
			h = workload.Chain(h, id, uint64(i*step.BlockTokens), step.BlockTokens)
			all = append(all, h)
		}
	}
	return all
}

// unique is blocks that no other request has.
func unique(n uint64, blocks int) []uint64 {
	all := make([]uint64, blocks)
	h := n
	for i := range all {
		h = workload.Chain(h, n, uint64(i*step.BlockTokens), step.BlockTokens)
		all[i] = h
	}
	return all
}
