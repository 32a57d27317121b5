package extproc_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weirproxy/weir/pkg/route"
)

// point is how far a stream's history goes before it ends.
type point int

const (
	afterHeaders point = iota
	midBody
	afterBody // in the gate, or picked and its reply not read
	picked    // and no answer
	answered
	failed   // the answer is a 503
	midBody2 // of the answer, which is sent in pieces
	whole
	points
)

// ending is how a stream ends.
type ending int

const (
	eof ending = iota
	cancelled
	atShutdown
	panicked
	endings
)

// history is one stream's life.
type history struct {
	*call
	rng   *rand.Rand
	until point
	ends  ending
}

// TestRandomHistories is production-stack PR#1072: whatever abort point and whatever end, every counter,
// lease, place at the gate and pinned block is back at zero, and each request has one outcome. A seat per replica
// makes most streams wait at the gate; half of the batches have faults in weir.
func TestRandomHistories(t *testing.T) {
	const batches, each = 25, 40
	for batch := range batches {
		o, allowed := options{seats: 1}, int(panicked)
		if batch%2 == 1 {
			o.intercept, allowed = faulty, int(endings)
		}
		withFake(t, o, func(f *fake) {
			rng := rand.New(rand.NewPCG(uint64(batch), 1))
			var wg sync.WaitGroup
			seen, left := 0, 0
			for range each {
				h := &history{
					rng:   rand.New(rand.NewPCG(rng.Uint64(), 2)),
					until: point(rng.IntN(int(points))), ends: ending(rng.IntN(allowed)),
				}
				var route []string
				if at := 2 + rng.IntN(6); h.ends == panicked {
					route = []string{"test-panic", strconv.Itoa(at)} // from 2 on: weir has seen the headers
				} else if h.until <= midBody {
					left++
				}
				seen++
				h.call = f.call(modes[rng.IntN(2)], route...)
				wg.Go(h.run)
			}
			wg.Wait()
			f.stop()
			f.checkOutcomes(seen, left, batch%2 == 1)
		})
	}
}

// checkOutcomes wants an outcome for each of n requests; left of them left before their body was whole.
func (f *fake) checkOutcomes(n, left int, faults bool) {
	f.t.Helper()
	all := f.take()
	if len(all) != n {
		f.t.Errorf("%d outcomes of %d requests", len(all), n)
	}
	got := outcomes(all)
	if got[route.LeftBody] < left || !faults && got[route.LeftBody] != left {
		f.t.Errorf("%d left before their body was whole, want %d", got[route.LeftBody], left)
	}
	if got[route.None] != 0 || (got[route.Failed] > 0) != faults || f.Server.Stats().Panics != int64(got[route.Failed]) {
		f.t.Errorf("outcomes %v, panics %d", got, f.Server.Stats().Panics)
	}
}

// run lives the history. Its steps fail once weir has ended the stream, which ends the history too.
func (h *history) run() {
	defer h.cancel()
	h.live()
	switch h.ends {
	case cancelled:
		return
	case atShutdown:
		time.Sleep(time.Duration(h.rng.IntN(1000)) * time.Millisecond)
		go h.f.stop()
	case eof, panicked:
		h.CloseSend()
	}
	for {
		if _, err := h.Recv(); err != nil {
			return
		}
	}
}

// live goes on to the history's last point. A pause of no length lets weir catch up: in a bubble time moves only
// when everybody waits.
func (h *history) live() {
	for at := range h.until + 1 {
		if !h.step(at) {
			return
		}
		time.Sleep(time.Duration(h.rng.IntN(20)+1) * time.Millisecond)
	}
}

func (h *history) step(at point) bool {
	switch at {
	case afterHeaders:
		return h.Send(h.tmpl["request_headers"]) == nil && (h.mode == streamed || h.expect("request_headers"))
	case midBody:
		return h.mode == buffered || h.Send(piece(strings.Repeat("x", h.rng.IntN(5000)), false)) == nil
	case afterBody:
		return h.endBody()
	case picked:
		return h.expect(map[mode]string{buffered: "request_body", streamed: "request_headers"}[h.mode])
	case answered:
		setHeader(h.tmpl["response_headers"].GetResponseHeaders().Headers, ":status", "200")
		return h.Send(h.tmpl["response_headers"]) == nil && h.expect("response_headers")
	case failed:
		if h.until != failed {
			return true
		}
		setHeader(h.tmpl["response_headers"].GetResponseHeaders().Headers, ":status", "503")
		return h.Send(h.tmpl["response_headers"]) == nil
	case midBody2, whole:
		return h.Send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
			ResponseBody: &extprocv3.HttpBody{Body: []byte("data: x\n\n"), EndOfStream: at == whole},
		}}) == nil
	}
	return false
}

// endBody ends the body, or has trailers do it; at times with a mode that is not the headers', and at times with more of
// the body behind it.
func (h *history) endBody() bool {
	trailers, twice := h.rng.IntN(3) == 0, h.rng.IntN(8) == 0
	last := piece(chatBody, !trailers || h.mode == buffered)
	if h.rng.IntN(4) == 0 {
		last.ProtocolConfig = &extprocv3.ProtocolConfiguration{RequestBodyMode: filterv3.ProcessingMode_BodySendMode(h.rng.IntN(5))}
	}
	ok := h.Send(last) == nil && (!trailers || h.Send(h.tmpl["request_trailers"]) == nil)
	return ok && (!twice || h.Send(piece("more", true)) == nil)
}

// expect receives up to the reply of a kind; false: the stream ended, or weir answered itself.
func (c *call) expect(kind string) bool {
	for {
		m, err := c.Recv()
		if err != nil || m.GetImmediateResponse() != nil {
			return false
		}
		if replyKind(m) == kind {
			return true
		}
	}
}

func piece(text string, end bool) *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
		RequestBody: &extprocv3.HttpBody{Body: []byte(text), EndOfStream: end},
	}}
}

// TestBurstSpreads is aibrix#2422: of requests that come at one instant none sees a replica as idle that an
// earlier one was just sent to.
func TestBurstSpreads(t *testing.T) {
	const burst = 256
	for _, body := range []string{chatBody, `{"model": "m", "prompt": "` + strings.Repeat("the shared prefix ", 100) + `"}`} {
		withFake(t, options{}, func(f *fake) {
			var wg sync.WaitGroup
			calls := make([]*call, burst)
			for i := range calls {
				calls[i] = f.call(buffered)
				calls[i].headers(false)
				calls[i].replies()
			}
			for _, c := range calls {
				wg.Go(func() {
					if c.Send(piece(body, true)) == nil {
						c.expect("request_body")
					}
				})
			}
			wg.Wait()
			n := f.leases()
			least, most := burst, 0
			for _, v := range n {
				least, most = min(least, v), max(most, v)
			}
			if sum(n) != burst || body == chatBody && most-least > burst/len(n)/4 {
				f.t.Errorf("leases %v of %d requests", n, burst)
			}
			for _, c := range calls {
				c.cancel()
			}
			f.take()
		})
	}
}
