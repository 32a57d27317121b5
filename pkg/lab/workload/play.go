package workload

import "time"

// play turns sessions into plain requests: it asks each Then as if its turn had ended when end says, and
// yields all requests in the order of At, with Then cleared. For looking at a workload without serving it.
func play(s Source, end func(r *Request) time.Duration) Source {
	return &player{NewQueue(s), end}
}

type player struct {
	*Queue
	end func(*Request) time.Duration
}

// Next implements Source.
func (p *player) Next() (*Request, bool) {
	r := p.Take()
	if r == nil {
		return nil, false
	}
	if r.Then != nil {
		if t := r.Then(p.end(r)); t != nil {
			p.Add(t)
		}
		r.Then = nil
	}
	return r, true
}
