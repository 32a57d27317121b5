package workload

import (
	"cmp"
	"slices"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// top is how many shared texts Traffic lists.
const top = 5

// node is a block in the tree of all texts.
type node struct {
	parent  int32 // -1: the first block of a prompt
	prompts int32 // that have it
	on      bool  // a child has as many: the shared text goes on there
}

// tree is all blocks by their hash, each after its parent.
type tree struct {
	nodes  []node
	byHash map[uint64]int32
}

// sharing tells how much of the prompts came before, what a cache without bound finds of them, and which
// shared texts do most for it.
func sharing(all []*Request) (repeated, unbounded float64, most []Shared) {
	t := tree{byHash: map[uint64]int32{}}
	again, found, tokens := 0, 0, 0
	for _, r := range all {
		a, f := t.add(r)
		again, found, tokens = again+a, found+f, tokens+r.Prompt
	}
	most = t.shared()
	for i := range most {
		most[i].Share = float64((most[i].Requests-1)*most[i].Tokens) / float64(tokens)
	}
	most = most[:min(top, len(most))]
	return float64(again*step.BlockTokens) / float64(tokens), float64(found*step.BlockTokens) / float64(tokens), most
}

// add counts a request's blocks. It returns how many of the prompt's an earlier prompt had, and how many a
// cache has that never forgets.
func (t *tree) add(r *Request) (again, found int) {
	prompt, usable := r.promptBlocks(), r.reusable()
	parent := int32(-1)
	for k, h := range r.Blocks {
		i, ok := t.byHash[h]
		if !ok {
			i = int32(len(t.nodes))
			t.byHash[h] = i
			t.nodes = append(t.nodes, node{parent: parent})
		}
		if k < prompt {
			if t.nodes[i].prompts > 0 {
				again++
			}
			t.nodes[i].prompts++
		}
		if ok && k < usable {
			found++
		}
		parent = i
	}
	return again, found
}

// shared returns the maximal rows of blocks that the same number of prompts have, two at least, by what
// they save.
func (t *tree) shared() []Shared {
	for i := range t.nodes {
		if n := &t.nodes[i]; n.parent >= 0 && t.nodes[n.parent].prompts == n.prompts {
			t.nodes[n.parent].on = true
		}
	}
	depth := make([]int32, len(t.nodes))
	start := make([]int32, len(t.nodes)) // depth of the row's first block
	var all []Shared
	for i := range t.nodes {
		n := &t.nodes[i]
		depth[i], start[i] = 1, 1
		if n.parent >= 0 {
			depth[i] = depth[n.parent] + 1
			start[i] = depth[i]
			if t.nodes[n.parent].prompts == n.prompts {
				start[i] = start[n.parent]
			}
		}
		if n.prompts > 1 && !n.on {
			all = append(all, Shared{Requests: int(n.prompts), End: int(depth[i]) * step.BlockTokens,
				Tokens: int(depth[i]-start[i]+1) * step.BlockTokens})
		}
	}
	slices.SortStableFunc(all, func(a, b Shared) int {
		return cmp.Compare((b.Requests-1)*b.Tokens, (a.Requests-1)*a.Tokens)
	})
	return all
}

// promptBlocks is how many of Blocks lie in the prompt.
func (r *Request) promptBlocks() int { return min(len(r.Blocks), r.Prompt/step.BlockTokens) }

// reusable is how many of Blocks a replica may take from its cache: not the one with the prompt's last token.
func (r *Request) reusable() int { return min(len(r.Blocks), (r.Prompt-1)/step.BlockTokens) }
