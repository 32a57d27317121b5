package workload

import (
	"container/heap"
	"time"
)

// Queue yields the requests of a source, and those that are added later, in the order of At. Of one instant the source's
// come first, then those added, in that order.
type Queue struct {
	source Source
	next   *Request // of source, not yet taken
	added  added
	count  int // of those ever added
}

// NewQueue returns the queue of a source.
func NewQueue(s Source) *Queue {
	q := &Queue{source: s}
	q.pull()
	return q
}

func (q *Queue) pull() { q.next, _ = q.source.Next() }

// At is when the next request comes; ok is false if none is left.
func (q *Queue) At() (at time.Duration, ok bool) {
	switch {
	case q.next == nil && len(q.added) == 0:
		return 0, false
	case q.fromSource():
		return q.next.At, true
	}
	return q.added[0].At, true
}

func (q *Queue) fromSource() bool {
	return q.next != nil && (len(q.added) == 0 || q.next.At <= q.added[0].At)
}

// Take returns the next request, nil if none is left.
func (q *Queue) Take() *Request {
	if q.fromSource() {
		r := q.next
		q.pull()
		return r
	}
	if len(q.added) == 0 {
		return nil
	}
	return heap.Pop(&q.added).(addition).Request
}

// Add puts a request into the queue. It comes no earlier than what was taken last.
func (q *Queue) Add(r *Request) {
	q.count++
	heap.Push(&q.added, addition{r, q.count})
}

// addition is a request that was added; nth orders equal times.
type addition struct {
	*Request
	nth int
}

type added []addition

func (h added) Len() int { return len(h) }
func (h added) Less(i, j int) bool {
	return h[i].At < h[j].At || h[i].At == h[j].At && h[i].nth < h[j].nth
}
func (h added) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *added) Push(x any)   { *h = append(*h, x.(addition)) }
func (h *added) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = addition{}
	*h = (*h)[:last]
	return x
}
