package route

import (
	"sync"
	"time"

	"github.com/weirproxy/weir/pkg/gate"
	"github.com/weirproxy/weir/pkg/pick"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/prefix"
	"github.com/weirproxy/weir/pkg/prompt"
)

// Outcome is how a request ended: a closed set, and a metric label.
type Outcome uint8

// The outcomes. Every request has exactly one.
const (
	None       Outcome = iota // not ended
	Answered                  // response headers were seen before the stream ended
	Unanswered                // picked, but the stream ended before any response headers
	LeftHeld                  // the client left, or Envoy gave up, while held
	CutHeld                   // Envoy gave up at its message_timeout while held, as it ignored weir's override
	LeftBody                  // the stream ended before the body was complete
	Late                      // refused: the deadline passed at the gate
	Shed                      // refused at once: the deadline would pass before its turn
	Full                      // refused: its class was full
	Stopped                   // refused: weir stopped while it was held
	TooLarge                  // refused: the body passed the limit
	NoMemory                  // refused: the bodies that weir keeps have taken what they may
	Tunnel                    // refused: an upgrade or CONNECT where Envoy waits for the end of its body
	NoReplica                 // refused: the pool has no replica
	NoPool                    // passed on without a pick: weir does not know the cluster
	NoBody                    // passed on without a pick: trailers came with no body before them, and Envoy showed weir neither
	Failed                    // a fault of weir's own
	outcomes
)

var outcomeNames = [outcomes]string{
	"none", "answered", "unanswered", "left_held", "cut_held", "left_body", "late", "shed", "full", "stopped", "too_large", "no_memory", "tunnel", "no_replica", "no_pool", "no_body", "failed",
}

// String returns the outcome's label.
func (o Outcome) String() string { return outcomeNames[o] }

// Outcomes returns every outcome that a request can end with.
func Outcomes() []Outcome {
	all := make([]Outcome, 0, outcomes-1)
	for o := Answered; o < outcomes; o++ {
		all = append(all, o)
	}
	return all
}

// Served is which replica answered a request, against the pick: a closed set, and a metric label. A pick that
// Envoy did not follow became its fallback in silence.
type Served uint8

// What was served.
const (
	Unknown Served = iota // no answer, or none that named its replica
	First                 // the pick
	Second                // the pick's second, by Envoy's retry
	Other                 // neither: Envoy's fallback policy chose
	servedEnd
)

var servedNames = [servedEnd]string{"unknown", "first", "second", "other"}

// String returns the label.
func (s Served) String() string { return servedNames[s] }

// State is where a Decision stands.
type State uint8

// A Decision is Held at most once, and then Picked or Refused, unless its client leaves.
const (
	Deciding State = iota
	Held
	Picked
	Refused
)

// Unrouted is the Decision of a request that never came to a route: its client left before the body was
// complete, its body was too large, or no pool takes it.
func Unrouted(pool string, now time.Time, o Outcome) *Decision {
	return &Decision{Pool: pool, Arrived: now, State: Refused, Outcome: o, ended: true}
}

// Decision is everything weir decided about one request, and how that ended. A Held one belongs to the router until
// Ready is closed. From then on only Outcome, Status, Served, Events and Crowded change, by the goroutine that calls Serve and
// Done.
type Decision struct {
	Pool    string
	Class   string
	Prompt  prompt.Prompt
	State   State
	Outcome Outcome     // None until refused or ended
	Choice  pick.Choice // of Picked
	Arrived time.Time
	Wait    time.Duration // at the gate
	Queued  int           // requests held in the pool right after this one came, itself included
	Due     bool          // Release is due right after this one came
	Retry   time.Duration // of Refused by Late, Shed, Full, Stopped or NoMemory: when to come back
	Status  int           // HTTP status of the answer; 0: none was seen
	Served  Served        // which replica answered
	Events  bool          // it answers with an event stream, whose headers come before any work
	Crowded bool          // Envoy's own breaker refused it: no replica has seen it

	policy *policy    // that it came under
	text   *pool.Text // that the prompt's tokens are estimated by; nil: they are counted
	plain  float64    // tokens by its bytes alone
	block  float64    // tokens of a block of its chain
	query  pick.Query
	ticket gate.Ticket
	lease  pool.Lease
	ready  chan struct{}
	ended  bool
	pinned pinned
}

// pinned is what of a replica's index a Decision holds. It has a lock of its own as Release pins outside the
// critical section, while a client that leaves may already unpin.
type pinned struct {
	mu      sync.Mutex
	gone    bool // the request ended: nothing may be pinned any more
	replica *pool.Replica
	pins    prefix.Pins
}

// Ready is closed when a held decision's wait is over; nil for one that was decided at once.
func (d *Decision) Ready() <-chan struct{} { return d.ready }

// MaxHold bounds its wait, whatever policy comes while it is held.
func (d *Decision) MaxHold() time.Duration { return d.policy.MaxHold }

// Predicted is how long it was expected to be held when it came; 0: not at all, or too few were admitted to tell.
func (d *Decision) Predicted() time.Duration { return d.ticket.Predicted }

// PredictedFirst is how long it was expected to take from its pick to its first token, of Picked: V*P + u*P + D there, and
// what requests are learned to take beyond that.
func (d *Decision) PredictedFirst() time.Duration {
	return time.Duration(d.lease.First() * float64(time.Second))
}

// HeldFor is what it was held for, by the last look at it before it went; gate.Nothing: it was not held.
func (d *Decision) HeldFor() gate.Why { return d.ticket.Why }

// Endpoints returns the pick as Envoy's override_host reads it: "first,second", or one alone.
func (d *Decision) Endpoints() string {
	if d.Choice.Second == nil {
		return d.Choice.First.Endpoint
	}
	return d.Choice.First.Endpoint + "," + d.Choice.Second.Endpoint
}

// served compares the endpoint that answered with the pick.
func (d *Decision) served(endpoint string) Served {
	switch first, second := d.Choice.First, d.Choice.Second; {
	case d.State != Picked || endpoint == "":
		return Unknown
	case endpoint == first.Endpoint:
		return First
	case second != nil && endpoint == second.Endpoint:
		return Second
	}
	return Other
}

const (
	minRetry = time.Second
	maxRetry = time.Minute
)

// refuse decides against a request, inside the critical section. It may come back when those who are held have gone, but
// for as many as may wait before it: at the rate at which its class drains or, while that is not known, when the replica
// that it wants has drained to its knee.
func (r *Router) refuse(now time.Time, d *Decision, o Outcome) {
	d.State, d.Outcome, d.Wait = Refused, o, now.Sub(d.Arrived)
	if o == Late {
		r.pool.Waited(d.Predicted().Seconds(), d.Wait.Seconds())
	}
	after, ok := r.gate.Retry(now, &d.ticket, d.ticket.Deadline.Sub(d.Arrived), maxRetry)
	if !ok {
		r.best(now, &d.ticket)
		v := d.Choice.View
		after = time.Duration((v.Wait + v.Behind + v.Place() - v.Tau) * float64(time.Second))
	}
	d.Retry = min(max(after, minRetry), maxRetry)
}

// pin enters an admitted request's blocks into the index of the replica that it is charged to, at.
func (d *Decision) pin(at *pool.Replica, l pool.Load) {
	d.pinned.mu.Lock()
	defer d.pinned.mu.Unlock()
	if d.pinned.gone {
		return
	}
	d.pinned.replica, d.pinned.pins = at, at.Index.Pin(d.Prompt.Chain, d.answerBlocks(l))
}

// unpin gives them back, of which their replica has computed the first so many; last says that the request ended.
func (d *Decision) unpin(last bool, computed int) {
	d.pinned.mu.Lock()
	defer d.pinned.mu.Unlock()
	d.pinned.gone = d.pinned.gone || last
	if at := d.pinned.replica; at != nil {
		at.Index.Unpin(d.Prompt.Chain, d.pinned.pins, computed)
		d.pinned.replica = nil
	}
}

// answerBlocks is the blocks without a hash that a request takes: its answers, and for each the prompt's partial last one.
func (d *Decision) answerBlocks(l pool.Load) int { return int(l.Output/d.block + l.Answers) }
