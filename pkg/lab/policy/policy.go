// Package policy is the rules that a simulation compares: weir, which is the code that serves (package route), and
// what others published, each in its own file with its source.
//
// A published rule is a picker: it sees one request and what a router can know of the replicas (ledger), and names
// one of them at once. weir may also hold a request, and refuse it later.
//
// No clock, no goroutine: model time is an argument, and all chance comes from Env.Seed.
package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
	"github.com/weirproxy/weir/pkg/route"
)

// State is where a Call stands.
type State uint8

// A Call is Held at most once, and then Sent or Refused.
const (
	Held State = iota
	Sent
	Refused
)

// Call is one request on its way through a router. The engine sets Req and Seq; the router the rest.
type Call struct {
	Req     *workload.Request
	Seq     step.Seq // what the replica runs
	State   State
	Slot    int           // of the replica, when Sent
	Outcome route.Outcome // when Refused
	Lost    bool          // when it ended because its replica died, or nobody took its connection

	chain    chain.Chain
	decision *route.Decision
	charge   charge
}

// Chain is the prefix blocks of the prompt. As the hashes of 16-token blocks are chained, every fourth one names a
// block of 64 tokens and all before it.
func (c *Call) Chain() chain.Chain {
	if c.chain == nil {
		const each = chain.BlockTokens / step.BlockTokens
		c.chain = make(chain.Chain, min(c.Req.Prompt/chain.BlockTokens, len(c.Req.Blocks)/each))
		for i := range c.chain {
			c.chain[i] = chain.Hash(c.Req.Blocks[each*i+each-1])
		}
	}
	return c.chain
}

// Router is one router in front of the replicas. What it is told, and when, is what the edge tells weir:
// Release is due after each event that says so.
type Router interface {
	// Arrive takes a new call. It reports whether Release is due.
	Arrive(now time.Duration, c *Call) bool
	// Release ends waits, and appends those Sent or Refused by it to done.
	Release(now time.Duration, done []*Call) []*Call
	// Next returns when Release is due even if nothing happens; ok is false for never.
	Next() (at time.Duration, ok bool)
	// First says that the answer of a Sent call begins.
	First(now time.Duration, c *Call)
	// End says that it is over. It reports whether Release is due.
	End(now time.Duration, c *Call) bool
	// Retry says that the replica of a Sent call refused the connection. The call's Slot becomes the one that Envoy tries
	// next; false: there is none.
	Retry(now time.Duration, c *Call) bool
	// Refuse says that the replica in a slot refused the connection of a scrape. Release is due.
	Refuse(now time.Duration, slot int)
	// Observe takes a scrape of the replica in a slot. It reports whether Release is due.
	Observe(now time.Duration, slot int, s step.Stats) bool
}

// Env is what a router is made for.
type Env struct {
	Profile  step.Profile    // what routers are told that each replica is
	Replicas []*step.Replica // the truth, which only the oracle looks at; the rest count them
	Seed     uint64
	Names    uint64 // from which replicas are named, and so where homes are: alike for all routers of a run
}

// makers makes the router of each policy but weir.
var makers = map[string]func(Env) Router{
	"oracle":        func(e Env) Router { return newOracle(e) },
	"random":        rule(func(l *ledger) picker { return &random{l} }),
	"round-robin":   rule(func(l *ledger) picker { return &roundRobin{ledger: l} }),
	"least-request": rule(func(l *ledger) picker { return &leastRequest{l} }),
	"two-choices":   rule(func(l *ledger) picker { return &twoChoices{l} }),
	"least-pending": rule(func(l *ledger) picker { return &leastPending{l} }),
	"prefix-hash":   rule(func(l *ledger) picker { return &prefixHash{l} }),
	"bounded-load":  rule(func(l *ledger) picker { return &boundedLoad{l} }),
	"sticky":        rule(func(l *ledger) picker { return &sticky{l} }),
	"lmetric":       rule(func(l *ledger) picker { return &lmetric{l} }),
	"weighted":      rule(func(l *ledger) picker { return &weighted{l} }),
}

func rule(make func(*ledger) picker) func(Env) Router {
	return func(e Env) Router {
		l := newLedger(e)
		return &immediate{l, make(l)}
	}
}

// Weir is the policy that is the code that serves. Lines of its own policy may follow, each with a value of its own
// in the words of the operator's file: "weir/balance_on=requests/queue=fifo". "weir/gate=NAME" has a published gate in the place
// of weir's (gates).
const Weir = "weir"

// Usage is what a list of policies may hold, for people.
var Usage = "one or several, with commas, of " + strings.Join(Names(), ", ") + "; weir/KEY=VALUE/... sets one of " + lineKeys

// Names lists the policies.
func Names() []string { return append(slices.Sorted(maps.Keys(makers)), Weir) }

// New returns a router of the policy of that name, or an error that lists the names.
func New(name string, env Env) (Router, error) {
	if make, ok := makers[name]; ok {
		return make(env), nil
	}
	if parts := strings.Split(name, "/"); parts[0] == Weir {
		return newWeir(env, parts[1:])
	}
	return nil, fmt.Errorf("policy: no policy %q: use one of %s", name, strings.Join(Names(), ", "))
}
