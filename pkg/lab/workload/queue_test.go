package workload

import (
	"testing"
	"time"
)

// TestQueue: the source's first of one instant, then what was added, as it was.
func TestQueue(t *testing.T) {
	at := func(ms int, flow string) *Request {
		return &Request{At: time.Duration(ms) * time.Millisecond, Flow: flow}
	}
	q := NewQueue(&list{at(1, "a"), at(5, "b"), at(5, "c")})
	q.Add(at(7, "h"))
	for i, c := range []struct {
		add  *Request
		want string
	}{{at(5, "d"), "a"}, {at(5, "e"), "b"}, {at(6, "g"), "c"}, {at(5, "f"), "d"}, {nil, "e"}, {nil, "f"}, {nil, "g"}, {nil, "h"}, {at(9, "i"), "i"}} {
		if c.add != nil {
			q.Add(c.add)
		}
		when, ok := q.At()
		r := q.Take()
		if !ok || r == nil || r.Flow != c.want || r.At != when {
			t.Fatalf("%d: %+v at %v, %v, want %s", i, r, when, ok, c.want)
		}
	}
	if _, ok := q.At(); ok || q.Take() != nil {
		t.Error("something is left")
	}
}
