package extproc

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirproxy/weir/pkg/route"
)

// end releases whatever the stream holds, however it ended, and records its one Outcome.
func (st *stream) end(err *error) {
	fault := recover()
	st.fault(fault, err)
	st.drop()
	defer func() { st.fault(recover(), err) }() // of what is called below
	if !st.started {
		return
	}
	now := time.Now()
	d := st.decision
	switch {
	case d == nil && fault != nil:
		d = route.Unrouted(st.poolName, st.begun, route.Failed)
	case d == nil:
		d = route.Unrouted(st.poolName, st.begun, route.LeftBody)
	case st.left:
		st.srv.stopped.add(func() {
			var ignored error
			defer func() { st.fault(recover(), &ignored) }() // the others are still to come
			if st.pool != nil {
				st.pool.Done(time.Now(), d, st.ending(d, fault))
			}
			st.srv.record(d)
		})
		return
	case st.pool != nil && st.pool.Done(now, d, st.ending(d, fault)):
		st.pool.poke()
	}
	if !st.events.IsZero() {
		st.srv.eventStream(now.Sub(st.events))
	}
	if d.Outcome == route.CutHeld {
		st.srv.logCut(now, st.cut, d.MaxHold()+holdSlack)
	}
	st.srv.record(d)
}

// later is what is left to do when Serve has ended.
type later struct {
	mu  sync.Mutex
	all []func()
}

func (l *later) add(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, f)
}

func (l *later) run() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.all {
		f()
	}
}

// errDraining ends a stream whose answer can go on without weir.
var errDraining = errors.New("the server drains")

// receive is the next message. In FULL_DUPLEX_STREAMED Envoy cuts a live answer when weir is gone, unless weir has ended
// the stream in order: so a draining server ends each whose answer has begun. The answer goes on, and so its load stays
// until Serve ends: else every held request would find a seat free, and all go at once. A body that still passes needs weir
// until it is cut: Envoy would lose what comes of it, and the tunnel hang.
func (st *stream) receive() (*extprocv3.ProcessingRequest, error) {
	if !st.answering || !st.duplex() || !st.echoed {
		return st.rpc.Recv()
	}
	type message struct {
		m     *extprocv3.ProcessingRequest
		err   error
		fault any
	}
	next := make(chan message, 1)
	go func() { // ends with the stream, whose context ends when Process returns
		var n message
		defer func() {
			n.fault = recover()
			next <- n
		}()
		n.m, n.err = st.rpc.Recv()
	}()
	select {
	case n := <-next:
		if n.fault != nil {
			panic(n.fault) // where it is caught and counted
		}
		return n.m, n.err
	case <-st.srv.draining:
		return nil, errDraining
	}
}

// received looks at why there are no more messages. One larger than the receive limit ends the stream before weir
// sees it; gRPC has told Envoy, which then answers 500 or goes on without weir.
func (st *stream) received(err error) {
	st.left = errors.Is(err, errDraining)
	if status.Code(err) != codes.ResourceExhausted || st.decision != nil {
		return
	}
	st.decision = route.Unrouted(st.poolName, st.begun, route.TooLarge)
	st.srv.warnLarge.Do(func() {
		st.srv.log.Warn("a body is larger than body_limit and was not seen: set request_body_buffer_limit, and per_connection_buffer_limit_bytes, to body_limit at most", "err", err)
	})
}

const (
	// earlyEnd is how soon after an event stream's headers no model's answer can be over.
	earlyEnd = 50 * time.Millisecond
	// earlyMany is the early ends from which on they are no client's whim, if they are most of all.
	earlyMany = 100
)

// eventStream counts an event stream whose ext_proc stream ended so long after its headers, and warns once when
// most end with their headers.
func (s *Server) eventStream(lasted time.Duration) {
	all := s.events.Add(1)
	if lasted >= earlyEnd {
		return
	}
	if early := s.early.Add(1); early >= earlyMany && 2*early > all {
		s.warnEarly.Do(func() {
			s.log.Warn("streams end right after the headers of an event stream, so leases come back before the answer's end, and prompts are not taken to be cached: set response_trailer_mode: SEND on the ext_proc filter")
		})
	}
}

// fault counts and logs what a recover returned, and makes it the stream's error.
func (st *stream) fault(fault any, err *error) {
	if fault == nil {
		return
	}
	st.srv.panics.Add(1)
	st.srv.log.Error("a request made weir panic", "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
	*err = status.Error(codes.Internal, "internal fault")
}

// ending is how a request ended that weir did not refuse: only the state that was reached tells it.
func (st *stream) ending(d *route.Decision, fault any) route.Outcome {
	switch {
	case fault != nil:
		return route.Failed
	case st.cut != nil:
		return route.CutHeld
	case d.Status != 0:
		return route.Answered
	}
	return route.Unanswered
}
