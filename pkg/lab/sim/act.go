package sim

import (
	"errors"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/route"
)

// arrive gives a request to one of the routers.
func (s *Sim) arrive(j *job) {
	s.open++
	s.run.arrived(j)
	switch {
	case s.cfg.Past > 0 && s.rng.Float64() < s.cfg.Past:
		j.router = s.cfg.Routers
	case s.cfg.Routers > 1:
		j.router = s.rng.IntN(s.cfg.Routers)
	}
	j.owner = s.routers[j.router]
	due := j.owner.Arrive(s.now, &j.Call)
	if j.State == policy.Held {
		s.run.held[&j.Call] = j
	} else {
		s.decided(j)
	}
	if due {
		s.release(j.router)
	}
}

// release ends waits at a router, as the edge does after each event that can end one, and sets its timer.
func (s *Sim) release(router int) {
	r := s.routers[router]
	s.done = r.Release(s.now, s.done[:0])
	for _, c := range s.done {
		j := s.run.held[c]
		delete(s.run.held, c)
		s.decided(j)
	}
	s.schedule(router)
}

// schedule sets the timer of a router. A time that has passed is now: time does not go back.
func (s *Sim) schedule(router int) {
	at, ok := s.routers[router].Next()
	if !ok {
		at = never
	}
	s.agenda.set(s.timer(router), max(at, s.now))
}

// decided sends a request that was picked, and ends one that was refused.
func (s *Sim) decided(j *job) {
	if j.State == policy.Refused {
		s.open--
		s.run.refused(j, j.Outcome == route.Late)
		return
	}
	if !s.reach(j) {
		s.run.lost(j)
		s.end(j)
		return
	}
	r := s.replicas[j.Slot]
	if err := r.Submit(s.now, &j.Seq); err != nil {
		if !errors.Is(err, step.ErrTooLong) {
			s.err = err
		}
		s.open--
		s.run.refused(j, false)
		s.end(j)
		return
	}
	s.live[&j.Seq] = j
	s.wake(j.Slot)
}

// wake sets when a replica acts next.
func (s *Sim) wake(replica int) {
	at, ok := s.replicas[replica].Next()
	if !ok {
		at = never
	}
	s.agenda.set(replica, at)
}

// step lets a replica reach now and tells the routers what came of it.
func (s *Sim) step(replica int) {
	events := s.replicas[replica].Advance(s.now)
	s.wake(replica)
	for _, e := range events {
		switch e.Kind {
		case step.First:
			j := s.live[e.Seq]
			j.owner.First(s.now, &j.Call)
		case step.Finished:
			j := s.live[e.Seq]
			delete(s.live, e.Seq)
			s.open--
			s.run.answered(j, s.now)
			s.end(j)
		}
	}
}

// end tells a router that a request of its is over. One that restarted since is no more.
func (s *Sim) end(j *job) {
	if j.owner.End(s.now, &j.Call) && j.owner == s.routers[j.router] {
		s.release(j.router)
	}
}

// scrape reads a replica's gauges, which routers see after Stale.
func (s *Sim) scrape(replica int) {
	stats, ok := s.page(replica)
	if refused := s.fates[replica].down; ok || refused {
		s.scrapes[replica] = append(s.scrapes[replica], scrape{s.now + s.cfg.Stale, stats, refused})
		s.agenda.set(s.delivery(replica), s.scrapes[replica][0].at)
	}
	s.agenda.set(s.scraper(replica), s.now+scrapeEvery)
}

// deliver shows the oldest scrape on its way to every router.
func (s *Sim) deliver(replica int) {
	seen := s.scrapes[replica][0]
	s.scrapes[replica] = s.scrapes[replica][1:]
	next := never
	if len(s.scrapes[replica]) > 0 {
		next = s.scrapes[replica][0].at
	}
	s.agenda.set(s.delivery(replica), next)
	for i, r := range s.routers {
		if seen.refused {
			r.Refuse(s.now, replica)
		} else if !r.Observe(s.now, replica, seen.stats) {
			continue
		}
		s.release(i)
	}
}
