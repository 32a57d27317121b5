package extproc

import (
	"context"
	"errors"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weirproxy/weir/pkg/prompt"
	"github.com/weirproxy/weir/pkg/route"
	"github.com/weirproxy/weir/pkg/unpack"
)

// decide routes the request, waits if it is held, and answers with the message that reply makes, or with a refusal.
func (st *stream) decide(body []byte, reply func(*pass) *extprocv3.ProcessingResponse) error {
	st.route(body)
	return st.settle(reply)
}

// route makes the decision, a stream's only one: a second would forget the first one's lease. So whoever calls it has seen
// that none is made; in FULL_DUPLEX_STREAMED echoed and passing say so. It does not keep body.
func (st *stream) route(body []byte) {
	switch {
	case st.pool == nil:
		st.decision = route.Unrouted(st.poolName, st.begun, route.NoPool)
		return
	case len(body) > st.srv.cfg.BodyLimit:
		st.decision = route.Unrouted(st.poolName, st.begun, route.TooLarge)
		return
	}
	st.req.Size = max(st.req.Size, int64(len(body)))
	if st.req.Unread == prompt.ReasonNone {
		var free func()
		body, free, st.req.Unread = st.decoded(body)
		defer free()
	}
	st.req.Body = body
	st.decision = st.pool.Route(time.Now(), &st.req)
	st.req.Body = nil
}

// unpackTime bounds the wait for a worker and the work, which undoes 270 (br) to 1,390 MB/s (zstd) of text (go test -bench Body ./pkg/unpack).
// Envoy's message_timeout, 1 s in envoy/bootstrap.yaml, runs meanwhile.
const unpackTime = 250 * time.Millisecond

// decoded returns the body without its content-encoding, good until free, or why it cannot be undone. A path whose body
// is not read needs none. Of data that ends early, in BUFFERED_PARTIAL, the beginning decides.
func (st *stream) decoded(body []byte) (text []byte, free func(), why prompt.Reason) {
	if st.encoding == "" || prompt.APIOf(st.req.Path) == prompt.APIOther {
		return body, func() {}, prompt.ReasonNone
	}
	ctx, cancel := context.WithTimeout(st.rpc.Context(), unpackTime)
	defer cancel()
	text, free, err := st.srv.unpacker.Body(ctx, st.encoding, body)
	switch {
	case err == nil:
		return text, free, prompt.ReasonNone
	case errors.Is(err, unpack.ErrCut) && st.req.Partial && len(text) > 0: // the rest is taken to shrink as its beginning does
		st.req.Size = max(st.req.Size, int64(float64(st.req.Size)*float64(len(text))/float64(len(body))))
		return text, free, prompt.ReasonNone
	case errors.Is(err, unpack.ErrLarge):
		st.req.Size = int64(st.srv.cfg.BodyLimit)
		return body, free, prompt.ReasonInflated
	case errors.Is(err, unpack.ErrBusy):
		return body, free, prompt.ReasonBusy
	}
	return body, free, prompt.ReasonEncoding
}

// settle waits while the request is held, and answers.
func (st *stream) settle(reply func(*pass) *extprocv3.ProcessingResponse) error {
	d := st.decision
	if d.Ready() != nil {
		if err := st.wait(d); err != nil {
			return err
		}
	} else if d.Due {
		st.pool.poke()
	}
	if st.refused() {
		st.drop()
		return st.rpc.Send(refusal(d, dialectOf(st.req.Path, st.anthropic)))
	}
	return st.rpc.Send(reply(st.passed()))
}

// refuse answers a request that weir does not route: nothing is charged.
func (st *stream) refuse(o route.Outcome) error {
	st.drop()
	st.echoed = true
	st.decision = route.Unrouted(st.poolName, st.begun, o)
	if o == route.NoMemory {
		st.decision.Retry = memoryRetry
	}
	return st.rpc.Send(refusal(st.decision, dialectOf(st.req.Path, st.anthropic)))
}

// memoryRetry is when a request that found no memory may come back: what most bodies take is free in milliseconds, and
// what held ones take nobody can tell.
const memoryRetry = time.Second

// wait parks a held request until it is decided or gone, or weir stops. Envoy's per-message timer is told once, where it
// has one: there is none in FULL_DUPLEX_STREAMED.
func (st *stream) wait(d *route.Decision) error {
	st.pool.Release(time.Now()) // those ahead of it wait for other replicas, perhaps
	st.pool.poke()              // the timer must learn of the next time
	select {
	case <-d.Ready():
		return nil
	default:
	}
	if !st.duplex() {
		if err := st.rpc.Send(holdReply(d.MaxHold() + holdSlack)); err != nil {
			return errGone
		}
	}
	select {
	case <-d.Ready():
		return nil
	case <-st.srv.stopping:
		if !st.pool.Dismiss(time.Now(), d) {
			<-d.Ready() // released in the same instant
		}
		return nil
	case <-st.rpc.Context().Done():
		if !st.duplex() {
			st.cut = st.srv.cutBy(time.Since(d.Arrived), d.MaxHold()+holdSlack)
		}
		return errGone
	}
}

// holdSlack is how much longer Envoy is told to wait than any hold lasts, so that the gate decides first.
const holdSlack = 5 * time.Second

// refused reports whether the request was answered by weir: nothing more may be sent for it.
func (st *stream) refused() bool {
	d := st.decision
	return d.State == route.Refused && d.Outcome != route.NoPool && d.Outcome != route.NoBody
}

// passed is what goes back to Envoy with the reply that lets a request on.
func (st *stream) passed() *pass {
	return &pass{decision: st.decision, remove: st.client}
}
