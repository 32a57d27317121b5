package pool

import (
	"time"

	"github.com/weirproxy/weir/pkg/knee"
)

// Estimate is one number that weir learns, and how sure it is of it.
type Estimate struct {
	Value      float64  `json:"value"`
	Spread     float64  `json:"spread"`      // standard deviation, as a share of the value
	Samples    int      `json:"samples"`     // 0: Value is the policy's, or 0 where that has none
	AgeSeconds *float64 `json:"age_seconds"` // of the last sample; null: none
}

// Estimates is what weir has learned of one replica, as /debug/estimates shows it.
type Estimates struct {
	Endpoint     string   `json:"endpoint"`
	Step         Estimate `json:"step_seconds"`
	ContextToken Estimate `json:"context_token_seconds"`
	PromptToken  Estimate `json:"prompt_token_seconds"`
	Slow         Estimate `json:"slow"`           // a step of its last load over that of the policy's constants
	Error        float64  `json:"error"`          // by which steps differ from what the constants make of them, as a share: root mean square
	Queue        Estimate `json:"queue_seconds"`  // in the replica's own queue
	Asks         Estimate `json:"request_tokens"` // uncached prompt tokens of a request
	KVTokens     float64  `json:"kv_tokens"`      // that its KV cache holds
	IndexShare   float64  `json:"index_share"`    // of them, that the index takes weir's requests to have
	Little       Little   `json:"little"`         // leases
}

// Estimates describes what is learned of the replica at now.
func (r *Replica) Estimates(now time.Time) Estimates {
	l := r.fit.Learned()
	if !r.learn {
		l = knee.Learned{Rates: r.rates, Slow: 1}
	}
	of := func(value, spread float64) Estimate {
		e := Estimate{Value: value, Spread: spread, Samples: l.Samples}
		if l.Samples > 0 {
			age := now.Sub(l.At).Seconds()
			e.AgeSeconds = &age
		}
		return e
	}
	return Estimates{
		Endpoint: r.Endpoint, Step: of(l.Rates.Step, l.Spreads[0]), ContextToken: of(l.Rates.Context, l.Spreads[1]),
		PromptToken: of(l.Rates.Token, l.Spreads[2]), Slow: of(l.Slow, l.Spread), Error: l.Error,
		Queue: r.work.queue.estimate(now), Asks: r.work.asks.estimate(now),
		KVTokens: r.kvTokens, IndexShare: r.capacity.share, Little: r.littleAt(now),
	}
}
