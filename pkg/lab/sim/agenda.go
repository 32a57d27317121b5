package sim

import (
	"math"
	"time"
)

// never is the time of an actor that has nothing to do.
const never = time.Duration(math.MaxInt64)

// agenda is when each actor acts next: a binary heap of actors that knows where each stands. Of one instant the lower
// number goes first.
type agenda struct {
	at   []time.Duration // by actor
	heap []int32
	pos  []int32 // in heap, by actor
}

func newAgenda(actors int) *agenda {
	a := &agenda{at: make([]time.Duration, actors), heap: make([]int32, actors), pos: make([]int32, actors)}
	for i := range actors {
		a.at[i], a.heap[i], a.pos[i] = never, int32(i), int32(i)
	}
	return a
}

// first is the actor that acts next, and when.
func (a *agenda) first() (actor int, at time.Duration) {
	actor = int(a.heap[0])
	return actor, a.at[actor]
}

// set changes when an actor acts next.
func (a *agenda) set(actor int, at time.Duration) {
	if a.at[actor] == at {
		return
	}
	a.at[actor] = at
	a.down(a.up(int(a.pos[actor])))
}

func (a *agenda) less(x, y int32) bool {
	return a.at[x] < a.at[y] || a.at[x] == a.at[y] && x < y
}

func (a *agenda) up(i int) int {
	for i > 0 {
		parent := (i - 1) / 2
		if !a.less(a.heap[i], a.heap[parent]) {
			break
		}
		a.swap(i, parent)
		i = parent
	}
	return i
}

func (a *agenda) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(a.heap); child++ {
			if a.less(a.heap[child], a.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		a.swap(i, least)
		i = least
	}
}

func (a *agenda) swap(i, j int) {
	a.heap[i], a.heap[j] = a.heap[j], a.heap[i]
	a.pos[a.heap[i]], a.pos[a.heap[j]] = int32(i), int32(j)
}
