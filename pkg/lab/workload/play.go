package workload

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// Play turns sessions into plain requests: it asks each Then as if its turn had ended when end says, and
// yields all requests in the order of At, with Then cleared. For looking at a workload without serving it.
func Play(s Source, end func(r *Request) time.Duration) Source {
	return &player{source: s, end: end}
}

type player struct {
	source Source
	end    func(*Request) time.Duration
	next   *Request // of source, not yet yielded
	turns  turnHeap
	seq    int
}

// Next implements Source.
func (p *player) Next() (*Request, bool) {
	if p.next == nil && p.source != nil {
		if p.next, _ = p.source.Next(); p.next == nil {
			p.source = nil
		}
	}
	r := p.next
	if len(p.turns) > 0 && (r == nil || p.turns[0].At < r.At) {
		r = heap.Pop(&p.turns).(turn).Request
	} else {
		p.next = nil
	}
	if r == nil {
		return nil, false
	}
	if r.Then != nil {
		if t := r.Then(p.end(r)); t != nil {
			p.seq++
			heap.Push(&p.turns, turn{t, p.seq})
		}
		r.Then = nil
	}
	return r, true
}

// turn is a session's next request; seq orders equal times.
type turn struct {
	*Request
	seq int
}

type turnHeap []turn

func (h turnHeap) Len() int { return len(h) }
func (h turnHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].At, h[j].At), cmp.Compare(h[i].seq, h[j].seq)) < 0
}
func (h turnHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *turnHeap) Push(x any)   { *h = append(*h, x.(turn)) }
func (h *turnHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	*h = slices.Delete(*h, last, last+1)
	return t
}
