package pool

import "math"

// What is something that weir predicts and that shows afterwards: a closed set, and a metric label.
type What uint8

// What is predicted. Of all but GateWait the actual is the replicas' counters', from scrape to scrape (books.go).
const (
	GateWait     What = iota // seconds at the gate, of requests that were held with a prediction
	PromptTokens             // tokens of prompts
	CachedTokens             // of those, cached on the replica
	OutputTokens             // tokens of answers
	FirstToken               // seconds from a request's charge to its first token, the wait at the gate not among them
	whats
)

var whatNames = [whats]string{"gate_wait_seconds", "prompt_tokens", "cached_tokens", "output_tokens", "first_token_seconds"}

// Whats lists all that is predicted.
func Whats() []What { return []What{GateWait, PromptTokens, CachedTokens, OutputTokens, FirstToken} }

// String returns the label.
func (w What) String() string { return whatNames[w] }

// truthMemory is the requests over which the ratio of predicted to actual is shown: what is under way at a scrape is little
// beside them.
const truthMemory = 500.0

// versus is what was predicted, and what it was, summed over requests.
type versus struct{ predicted, actual float64 }

func (p *versus) add(o versus) { p.predicted, p.actual = p.predicted+o.predicted, p.actual+o.actual }

// fade is it with a weight.
func (p versus) fade(keep float64) versus { return versus{keep * p.predicted, keep * p.actual} }

// ratio is predicted over actual; ok is false where nothing was.
func (p versus) ratio() (r float64, ok bool) { return p.predicted / p.actual, p.actual > 0 }

// truth is those of a pool.
type truth struct {
	all     [whats]versus // since the start
	shown   [whats]versus // the most that all was: requests that turn out not to be computed are taken back
	lately  [whats]versus // moving sums
	waiting [whats]versus // not yet in them, as it is too early to tell whether they are of weir's own requests
}

// add takes in an interval: what was predicted of the requests computed in it, and what was counted.
func (t *truth) add(d *books, between *told) {
	count := func(w What, predicted float64, actual Summary) {
		if actual.Has {
			t.waiting[w].add(versus{predicted, actual.Sum})
		}
	}
	count(PromptTokens, d.prompt, between.prompts)
	count(CachedTokens, d.matched, between.hits)
	count(OutputTokens, d.output, between.answers)
	count(FirstToken, d.first, between.firsts)
}

// drop forgets what is not settled.
func (t *truth) drop() { t.waiting = [whats]versus{} }

// settle takes over what was added of so many requests.
func (t *truth) settle(requests float64) {
	keep := math.Pow(1-1/truthMemory, max(requests, 0))
	for w := PromptTokens; w < whats; w++ {
		t.lately[w] = t.lately[w].fade(keep)
		t.take(w, t.waiting[w])
	}
	t.drop()
}

// take takes in what was predicted and was.
func (t *truth) take(w What, p versus) {
	t.lately[w].add(p)
	t.all[w].add(p)
	t.shown[w].predicted = max(t.shown[w].predicted, t.all[w].predicted)
	t.shown[w].actual = max(t.shown[w].actual, t.all[w].actual)
}

// Waited notes that a request was held for so many seconds, and for how many it was expected to be.
func (p *Pool) Waited(predicted, waited float64) {
	if waited >= 0 {
		p.gateWait += workGain * (waited - p.gateWait)
	}
	if !(predicted > 0) || !(waited >= 0) {
		return
	}
	p.truth.lately[GateWait] = p.truth.lately[GateWait].fade(1 - 1/truthMemory)
	p.truth.take(GateWait, versus{predicted, waited})
}

// TruthStats is what was predicted against what was, as people see it.
type TruthStats struct {
	What      string   `json:"what"`
	Predicted float64  `json:"predicted"` // sums since the start, which never go back
	Actual    float64  `json:"actual"`
	Ratio     *float64 `json:"predicted_over_actual"` // of the last 500 requests or so; null: nothing was
}

// Truth lists what is predicted against what was.
func (p *Pool) Truth() []TruthStats {
	all := make([]TruthStats, whats)
	for w := range whats {
		s := p.truth.shown[w]
		ratio, ok := p.truth.lately[w].ratio()
		all[w] = TruthStats{w.String(), s.predicted, s.actual, known(ratio, ok)}
	}
	return all
}
