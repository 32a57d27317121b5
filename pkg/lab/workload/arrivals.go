package workload

import (
	"math/rand/v2"
	"time"
)

// arrivals is a renewal process whose arrivals become requests.
type arrivals struct {
	rng  *rand.Rand
	gap  func(rng *rand.Rand) float64 // between two arrivals, with mean 1
	rate float64                      // arrivals per second
	at   time.Duration                // of the last arrival
	end  time.Duration                // none from here on; 0: no end
	left int                          // arrivals left; negative: no bound
	make func(at time.Duration) *Request
}

// poisson is the gaps of a Poisson process.
func poisson(rng *rand.Rand) float64 { return rng.ExpFloat64() }

// bursts is the gaps of a gamma process with that coefficient of variation. vLLM's own benchmark makes its
// bursts so, with burstiness 1/cv^2. At 13, a few tens of requests come at once, then none for seconds.
func bursts(cv float64) func(*rand.Rand) float64 {
	return func(rng *rand.Rand) float64 { return gamma(rng, 1/(cv*cv)) }
}

// Next implements Source.
func (a *arrivals) Next() (*Request, bool) {
	if a.rate <= 0 || a.left == 0 {
		return nil, false
	}
	at := a.at + seconds(a.gap(a.rng)/a.rate)
	if a.end > 0 && at >= a.end {
		a.left = 0
		return nil, false
	}
	a.at = at
	a.left--
	return a.make(at), true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// list is a Source of requests made beforehand.
type list []*Request

// Next implements Source.
func (l *list) Next() (*Request, bool) {
	if len(*l) == 0 {
		return nil, false
	}
	r := (*l)[0]
	*l = (*l)[1:]
	return r, true
}

// merged yields the requests of two sources in order.
type merged struct {
	a, b         Source
	nextA, nextB *Request
	readA, readB bool
}

// Next implements Source.
func (m *merged) Next() (*Request, bool) {
	if !m.readA {
		m.nextA, _ = m.a.Next()
		m.readA = true
	}
	if !m.readB {
		m.nextB, _ = m.b.Next()
		m.readB = true
	}
	if r := m.nextA; r != nil && (m.nextB == nil || r.At <= m.nextB.At) {
		m.readA = false
		return r, true
	}
	m.readB = m.nextB == nil
	return m.nextB, m.nextB != nil
}
