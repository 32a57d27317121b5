package replica

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// eventGap is the least wall time between two events of one stream, its first and last aside. A write costs
// a system call here and parsing at every hop; at 200 events a second nobody sees the difference.
const eventGap = 5 * time.Millisecond

// minSleep bounds how often a fast clock wakes the engine; the model catches up several steps at once.
const minSleep = 100 * time.Microsecond

// sequence is one choice of an answer. The engine's goroutine owns it; a handler reads tokens and killed
// at any time, and Seq.Cached once tokens is above zero.
type sequence struct {
	step.Seq
	reason string        // of finishing
	wake   chan struct{} // of the request, room for one
	stream bool
	leads  bool // the first choice of its prompt

	tokens atomic.Int64 // given so far
	killed atomic.Bool  // by a restart or the end of the engine
	told   time.Time    // wake was last filled
}

// engine runs a step model in real time. All but calls and stopped belongs to run's goroutine.
type engine struct {
	calls   chan func()
	stopped chan struct{}

	cfg   *Config
	model *step.Replica
	clock clock
	live  map[*step.Seq]*sequence
	meter *meter
}

func newEngine(cfg *Config) (*engine, error) {
	model, err := step.New(cfg.Profile)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &engine{
		calls: make(chan func()), stopped: make(chan struct{}), cfg: cfg, model: model,
		clock: clock{wall: now, rate: cfg.Speed}, live: map[*step.Seq]*sequence{}, meter: newMeter(cfg, now),
	}, nil
}

// run is the engine's goroutine; it ends with ctx.
func (e *engine) run(ctx context.Context) {
	defer close(e.stopped)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := time.Now()
		e.advance(now)
		timer.Stop()
		if next, ok := e.model.Next(); ok {
			if d, ok := e.clock.until(next, now); ok {
				timer.Reset(max(d, minSleep))
			}
		}
		select {
		case call := <-e.calls:
			e.advance(time.Now()) // the model's past comes before the call
			call()
		case <-timer.C:
		case <-ctx.Done():
			e.killAll()
			return
		}
	}
}

// do runs f on the engine's goroutine and reports whether the engine still lived to do it.
func (e *engine) do(f func()) bool {
	done := make(chan struct{})
	select {
	case e.calls <- func() { f(); close(done) }:
		<-done
		return true
	case <-e.stopped:
		return false
	}
}

// submit queues the sequences of a request, all or none.
func (e *engine) submit(seqs []*sequence) (err error, alive bool) {
	alive = e.do(func() {
		now := e.clock.now(time.Now())
		for i, s := range seqs {
			if err = e.model.Submit(now, &s.Seq); err != nil {
				for _, earlier := range seqs[:i] {
					e.model.Abort(&earlier.Seq)
					delete(e.live, &earlier.Seq)
				}
				return
			}
			e.live[&s.Seq] = s
		}
	})
	return err, alive
}

// abort ends what is left of a request. For one that is over it does nothing.
func (e *engine) abort(seqs []*sequence) {
	over := true
	for _, s := range seqs {
		over = over && s.tokens.Load() == int64(s.Output)
	}
	if over {
		return
	}
	e.do(func() {
		for _, s := range seqs {
			if e.live[&s.Seq] == s {
				delete(e.live, &s.Seq)
				e.model.Abort(&s.Seq)
				e.meter.finished["abort"]++
			}
		}
	})
}

// advance brings the model to now and wakes the handlers that have something to send.
func (e *engine) advance(now time.Time) {
	events := e.model.Advance(e.clock.now(now))
	if len(events) == 0 {
		return
	}
	for i := range events {
		ev := &events[i]
		s := e.live[ev.Seq]
		e.meter.observe(ev, s)
		switch ev.Kind {
		case step.First:
			if s.stream {
				s.tell(now)
			}
		case step.Finished:
			delete(e.live, ev.Seq)
			s.tell(now)
		}
	}
	for _, s := range e.live {
		if s.stream && int64(s.Generated) > s.tokens.Load() && now.Sub(s.told) >= eventGap {
			s.tell(now)
		}
	}
}

// tell publishes how far a sequence is and wakes its handler.
func (s *sequence) tell(now time.Time) {
	s.tokens.Store(int64(s.Generated))
	s.told = now
	select {
	case s.wake <- struct{}{}:
	default: // already full: the handler looks at all its sequences
	}
}

// setFault applies the parts of a fault that concern the engine.
func (e *engine) setFault(f Fault) {
	e.do(func() {
		rate := e.cfg.Speed
		if f.Hang {
			rate = 0
		}
		e.clock.setRate(time.Now(), rate)
		e.model.SetSlow(f.Slow)
	})
}

// restart forgets everything, as a new process would: requests, cache, counters.
func (e *engine) restart(slow float64) {
	e.do(func() {
		e.killAll()
		e.model, _ = step.New(e.cfg.Profile) // the profile was valid the first time
		e.model.SetSlow(slow)
		e.meter = newMeter(e.cfg, time.Now())
	})
}

func (e *engine) killAll() {
	for _, s := range e.live {
		s.killed.Store(true)
		s.tell(time.Time{})
	}
	clear(e.live)
}

// metrics renders the page of the moment, or nil when the engine is gone.
func (e *engine) metrics() (page []byte) {
	e.do(func() { page = e.meter.page(e.model.Stats()) })
	return page
}
