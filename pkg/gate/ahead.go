package gate

import "time"

const (
	// slot is how finely deadlines are told apart when what stands before a ticket is counted. slots of them are 68
	// minutes: no wait is longer than an hour (route.Config.MaxHold).
	slot  = 250 * time.Millisecond
	slots = 1 << 14
)

// byDeadline is the tokens of held tickets by their deadline, as a Fenwick tree over a ring of slots: a change and a sum over the
// first slots are 14 steps each. Whole tokens, so that it comes back to zero.
type byDeadline [slots + 1]int64

func slotOf(t time.Time) int { return int(t.UnixNano()/int64(slot)) & (slots - 1) }

func (b *byDeadline) add(deadline time.Time, tokens int64) {
	for i := slotOf(deadline) + 1; i <= slots; i += i & -i {
		b[i] += tokens
	}
}

// below is the sum over the slots before i, as they lie in the ring.
func (b *byDeadline) below(i int) (sum int64) {
	for ; i > 0; i -= i & -i {
		sum += b[i]
	}
	return sum
}

// until is the tokens with a deadline up to the end of t's slot, where first is the earliest of all.
func (b *byDeadline) until(first, t time.Time) int64 {
	if t.Before(first) {
		return 0
	}
	from, to := slotOf(first), slotOf(t)+1
	n := b.below(to) - b.below(from)
	if to <= from { // around the end of the ring
		n += b.below(slots)
	}
	return n
}
