package bootstrap

import (
	"time"

	"go.yaml.in/yaml/v4"
)

const (
	// holdSlack is what weir's override asks beyond max_hold: the gate decides first (package extproc).
	holdSlack = 5 * time.Second
	// shortMessage is too short for a body of 32 MiB, which takes Envoy and weir some 0.2 s on a quiet machine.
	shortMessage = 500 * time.Millisecond
	// longMessage is far beyond any pause of a weir that works.
	longMessage = 30 * time.Second
	// firstToken is allowed for the first token after a hold: the largest prompt that fits into a replica's KV
	// (421,000 tokens of 27.8 us, 461,000 of 61.9 us) takes 12 to 29 s, as much again what is ahead of it.
	firstToken = time.Minute
	// longAnswer is allowed for an answer: 10,000 tokens at 33 a second.
	longAnswer = 5 * time.Minute
)

// Envoy's defaults of the timeouts that the rules judge.
const (
	defaultMessageTimeout = 200 * time.Millisecond
	defaultIdleTimeout    = 5 * time.Minute
	defaultRouteTimeout   = 15 * time.Second
)

// holdTimeout is of BUFFERED: in FULL_DUPLEX_STREAMED Envoy runs no timer.
func holdTimeout(m *mesh, say say) {
	m.through(func(g *manager, r *route) {
		if m.policy == nil || !m.buffered(r) {
			return
		}
		most, asks := m.timeout(g.filter, "max_message_timeout", 0), m.policy.Route.MaxHold+holdSlack
		if most.known && most.value < asks {
			say(most.at, "%s: Envoy ignores weir's override of max_hold + 5s = %v, and ends a hold after message_timeout", most.text, asks)
		}
	})
}

func messageTimeout(m *mesh, say say) {
	m.through(func(g *manager, r *route) {
		if !m.buffered(r) {
			return
		}
		switch t := m.timeout(g.filter, "message_timeout", defaultMessageTimeout); {
		case !t.known, t.value == 0:
		case t.value < shortMessage:
			say(t.at, "%s: a large body, or a busy machine, takes weir longer, and the request goes on without a pick or fails; give at least %v", t.text, shortMessage)
		case t.value > longMessage:
			say(t.at, "%s: for so long each request waits for a weir that hangs; 1s is enough", t.text)
		}
	})
}

func noMessageTimeout(m *mesh, say say) {
	m.through(func(g *manager, r *route) {
		if t := m.timeout(g.filter, "message_timeout", defaultMessageTimeout); m.buffered(r) && t.known && t.value == 0 {
			say(t.at, "%s: Envoy does not wait for weir, so that each request goes on without a pick or fails; give 1s", t.text)
		}
	})
}

func idleTimeout(m *mesh, say say) {
	m.through(func(g *manager, r *route) {
		if m.policy == nil {
			return
		}
		idle := m.timeout(g.node, "stream_idle_timeout", defaultIdleTimeout)
		if m.get(r.action, "idle_timeout") != nil {
			idle = m.timeout(r.action, "idle_timeout", 0)
		}
		if least := m.policy.Route.MaxHold + firstToken; idle.known && idle.value > 0 && idle.value < least {
			say(idle.at, "%s: a request held for max_hold that then waits %v for its first token ends in 504; give at least %v", idle.text, firstToken, least)
		}
	})
}

func routeTimeout(m *mesh, say say) {
	m.through(func(_ *manager, r *route) {
		if r.action == nil {
			return
		}
		if t := m.timeout(r.action, "timeout", defaultRouteTimeout); t.known && t.value > 0 && t.value < longAnswer {
			say(t.at, "%s: it cuts an answer that takes longer; give 0s, or at least %v", t.text, longAnswer)
		}
	})
}

// streamDuration looks wherever a max_stream_duration may stand on the way of a request or of weir's stream.
func streamDuration(m *mesh, say say) {
	least := longAnswer
	if m.policy != nil {
		least += m.policy.Route.MaxHold
	}
	judge := func(n *yaml.Node) {
		if d, ok := duration(n); ok && d > 0 && d < least {
			say(n, "max_stream_duration is %v: it counts the hold and the answer; give none, or at least %v", d, least)
		}
	}
	m.through(func(g *manager, r *route) {
		judge(m.find(g.node, "common_http_protocol_options", "max_stream_duration"))
		judge(m.find(r.action, "max_stream_duration", "max_stream_duration"))
	})
	perCluster := func(c *yaml.Node) {
		judge(m.find(m.protocol(c), "common_http_protocol_options", "max_stream_duration"))
	}
	perCluster(m.clusters[m.weir])
	m.eachReached(func(t *target) { perCluster(t.at) })
}
