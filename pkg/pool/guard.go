package pool

import "time"

// A replica that does not tell the gaps between its tokens has the rates of its profile. Where these are too slow, the gate
// holds back what the replica could take, and where they are too fast, the gate holds nothing. So while the gate holds
// somebody for its backlog, and no sample of its steps is known that is fresh, its own queue corrects them:
//
//	waiting = 0                        it has less to do than weir thinks      times 0.9
//	waiting >= 3, and more than V has  it has more                             times 1.05
//
// Where gaps are told this is not needed and not done: they do not depend on what weir sends, so that no error feeds itself
// (DESIGN.md 4).
const (
	guardLess    = 0.9
	guardMore    = 1.05
	guardWaiting = 3
	// guardAfter is how long a sample of steps is believed: five times what it takes to forget one.
	guardAfter = 25 * time.Second
)

// Guard corrects the rates by the queue of the last sample. It is called after Observe while the gate holds somebody.
func (r *Replica) Guard(now time.Time) {
	if s := &r.sample; !s.HasWaiting || s.At.Before(now.Add(-Stale)) || !r.learn || now.Sub(r.fit.Learned().At) < guardAfter {
		return
	}
	v := r.View(now)
	if !v.Free || v.Used >= 1 {
		return // it is not held for its backlog
	}
	switch waiting := r.sample.Waiting; {
	case waiting == 0 && v.Wait >= v.Tau/2:
		r.fit.Scale(guardLess)
	case waiting >= guardWaiting && waiting > r.queued+r.foreign:
		r.fit.Scale(guardMore)
	default:
		return
	}
	r.rates = r.fit.Rates()
	r.pace(now)
}
