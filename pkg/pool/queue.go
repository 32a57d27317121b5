package pool

// A request that waits for a replica is not charged to it, and yet those behind it must not think the replica free:
// each would find it cheapest, and all would wait for one while others idle. So a pass of the gate lays what waits into
// the views of those who come after it in the same pass.

// queued is what waits for one replica before the request that is looked at.
type queued struct {
	tokens   float64 // uncached prompt tokens
	requests int
}

// Queue notes that a request with so many uncached tokens waits for r, for the views until Unqueue.
func (p *Pool) Queue(r *Replica, tokens float64) {
	p.queue[r.Slot].tokens += tokens
	p.queue[r.Slot].requests++
	p.queues = true
}

// Unqueue forgets all who wait: a pass begins.
func (p *Pool) Unqueue() {
	if p.queues {
		clear(p.queue)
		p.queues = false
	}
}

// placeWait is how long a request waits for a seat on the replica, and for KV, behind those who wait already, in seconds.
// With B sequences of live leases, each of which holds its own for the mean expected answer, out*D seconds, one comes free every
// out*D/B:
//
//	seat   (B + waiting + 1 - seats) * out*D/B              while seats lack
//	room   (1 + (KV - 1)*B/KV + waiting) * out*D/B          while KV in use is all of it or more
func (r *Replica) placeWait(waiting int, kv float64) (seat, room float64) {
	if r.leases == 0 {
		return 0, 0
	}
	b := r.sequences
	each := r.output / b * r.decode / b
	if over := b + float64(waiting+1-r.seats); over > 0 {
		seat = over * each
	}
	if kv >= 1 {
		room = (1 + (kv-1)*b/kv + float64(waiting)) * each
	}
	return seat, room
}
