package sim

import (
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
)

// fate is what events made of a replica.
type fate struct {
	down   bool
	since  time.Duration // when it went down
	mute   bool
	frozen bool
	page   step.Stats // of frozen
	gone   done       // by those that died in its place
}

// done is what a replica has computed.
type done struct {
	prompt, output, preemptions int64
	work                        float64
}

// deadSecond is after how long nothing should go to a dead replica any more.
const deadSecond = time.Second

// happen has the events of now happen, and sets when the next one does.
func (s *Sim) happen() {
	for len(s.events) > 0 && s.events[0].At <= s.now {
		e := s.events[0]
		s.events = s.events[1:]
		for _, i := range s.targets(e) {
			s.befall(e, i)
		}
	}
	at := never
	if len(s.events) > 0 {
		at = s.events[0].At
	}
	s.agenda.set(s.fate(), at)
}

func (s *Sim) befall(e Event, i int) {
	switch e.Kind {
	case Die:
		s.die(i)
	case Join:
		s.join(i)
	case Slow:
		s.replicas[i].SetSlow(1 / e.Speed)
	case Mute:
		s.fates[i].mute = true
	case Freeze:
		s.fates[i].frozen, s.fates[i].page = true, s.replicas[i].Stats()
	case Restart:
		s.restart(i)
	}
}

// absent takes a replica that joins later out of the start.
func (s *Sim) absent(events []Event) {
	seen := map[int]bool{}
	for _, e := range events {
		for _, i := range s.targets(e) {
			if e.Kind == Join && !seen[i] {
				s.fates[i].down, s.fates[i].since = true, -deadSecond
			}
			if e.Kind == Join || e.Kind == Die {
				seen[i] = true
			}
		}
	}
}

// die ends a replica with all that runs on it: those clients get no more, and their routers see the streams end.
func (s *Sim) die(i int) {
	f := &s.fates[i]
	if f.down {
		return
	}
	f.down, f.since = true, s.now
	var lost []*job
	for _, j := range s.live {
		if j.Slot == i {
			lost = append(lost, j)
		}
	}
	sortJobs(lost)
	for _, j := range lost {
		delete(s.live, &j.Seq)
		s.replicas[i].Abort(&j.Seq)
		s.run.lost(j)
		s.end(j)
	}
	s.agenda.set(i, never)
}

// join has a replica serve in the place of the one that died there.
func (s *Sim) join(i int) {
	f := &s.fates[i]
	if !f.down {
		return
	}
	f.down = false
	fresh, err := step.New(s.cfg.profile(i))
	if err != nil {
		s.err = err
		return
	}
	f.gone.add(s.run.since(i))
	s.replicas[i] = fresh
	s.run.begun[i] = step.Stats{}
	if s.run.warm != nil {
		s.run.warm[i] = step.Stats{}
	}
}

// restart puts a new router in the place of one. What that held is refused, and what it sent goes on, unknown to anybody.
func (s *Sim) restart(i int) {
	old := s.routers[i]
	var held []*job
	for _, j := range s.run.held {
		if j.owner == old {
			held = append(held, j)
		}
	}
	sortJobs(held)
	for _, j := range held {
		delete(s.run.held, &j.Call)
		s.open--
		s.run.refused(j, false)
	}
	s.err = s.newRouter(i)
	s.schedule(i)
}

// reach finds the replica that takes a request: its router's choice, or the one that Envoy tries after a connection that
// was refused. It reports false if that one is dead, too.
func (s *Sim) reach(j *job) bool {
	f := &s.fates[j.Slot]
	if !f.down {
		return true
	}
	if s.now-f.since > deadSecond {
		s.run.tried++
	}
	return j.owner.Retry(s.now, &j.Call) && !s.fates[j.Slot].down
}

// page is what a scrape of a replica reads; ok is false if it fails.
func (s *Sim) page(i int) (stats step.Stats, ok bool) {
	switch f := &s.fates[i]; {
	case f.down || f.mute:
		return stats, false
	case f.frozen:
		return f.page, true
	}
	return s.replicas[i].Stats(), true
}

func (d *done) add(o done) {
	d.prompt, d.output, d.preemptions, d.work = d.prompt+o.prompt, d.output+o.output, d.preemptions+o.preemptions, d.work+o.work
}

// newRouter makes the router at a place.
func (s *Sim) newRouter(i int) error {
	r, err := policy.New(s.cfg.Policy, policy.Env{Profile: s.cfg.Profile, Replicas: s.replicas, Seed: s.cfg.Seed*MaxRouters + uint64(i), Names: s.cfg.Seed})
	s.routers[i] = r
	return err
}
