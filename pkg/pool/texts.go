package pool

import (
	"maps"
	"math"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
)

// How many bytes of text a token has depends on the tokenizer and on the language: about 4 in English, 2 where text is hex or
// base64. weir counts bytes, and takes chain.BytesPerToken of them for a token: a prompt's plain tokens. What that is off by is
// learned for each model, from the replicas' prompt counters:
//
//	scale = moving sum of prompt tokens counted / moving sum of plain tokens computed
//
// Where requests for several models were computed between two scrapes, each gets its part of the count by the scales so far;
// as the mix changes from scrape to scrape, each comes to its own. vLLM's counters bear the name of the base model alone,
// whatever adapter a request names, and several models of a replica are summed (package scrape): so the mix is all there is.
//
// A prefix block is cut by bytes, whatever they are worth, so that chains and homes do not change as a scale is learned; what
// changes is the tokens that a block stands for, and so how many of them a replica's cache holds.

const (
	// maxTexts bounds the scales of a pool: maxTexts - firstModel models have one of their own, those that come first.
	maxTexts   = 18
	firstModel = 2 // behind those of all other models, and of bodies that were not read

	// textMemory is the prompts over which a scale is learned: of 1,000, ten that are under way at a scrape are a percent, and
	// models that are mixed come to their own (with 200, two to one apart, one is off by a quarter). textPrior is the plain
	// tokens that the first guess counts for: some prompts.
	textMemory = 1000.0
	textPrior  = 4096.0
	// minScale and maxScale bound a scale: 16 bytes for a token, and one.
	minScale = 0.25
	maxScale = 4.0
)

// Text is the prompts for one model, whose tokens are estimated from their bytes.
type Text struct {
	name  string
	slot  int
	scale atomic.Uint64 // bits of a float64

	plain, tokens float64 // moving sums
	requests      float64
	spread        float64 // moving mean of the intervals' |scale/the mean - 1|
	at            time.Time
}

// Scale is the tokens of a plain token: 1 until something is learned. Safe outside the critical section.
func (t *Text) Scale() float64 { return math.Float64frombits(t.scale.Load()) }

func (t *Text) set() {
	t.scale.Store(math.Float64bits(min(max(t.tokens/t.plain, minScale), maxScale)))
}

// texts is the texts of a pool.
type texts struct {
	all    []*Text
	other  *Text                            // of models without one of their own
	unread *Text                            // of bodies that could not be read
	models atomic.Pointer[map[string]*Text] // copied when one is added

	block float64 // tokens that a block of the replicas' indexes stands for
	plain float64 // moving sums over all prompts, those whose tokens are known with them
	sum   float64

	rest    books // of intervals that nothing was learned from yet
	counted float64
}

func newText(name string, slot int, scale float64) *Text {
	t := &Text{name: name, slot: slot, plain: textPrior, tokens: textPrior * scale}
	t.set()
	return t
}

func (t *texts) init() {
	t.other, t.unread = newText("", 0, 1), newText("", 1, 1)
	t.all = []*Text{t.other, t.unread}
	t.models.Store(&map[string]*Text{})
	t.block, t.plain, t.sum = chain.BlockTokens, textPrior, textPrior
}

// Text returns the text of prompts for a model. Safe outside the critical section.
func (p *Pool) Text(model string) *Text {
	if t := (*p.texts.models.Load())[model]; t != nil {
		return t
	}
	return p.texts.other
}

// Unread is the text of bodies that could not be read, whose bytes are not those of a prompt.
func (p *Pool) Unread() *Text { return p.texts.unread }

// meet gives a model a scale of its own. Only a model that a replica answers for is met, so that names that clients make
// up take no place.
func (t *texts) meet(model string) {
	old := *t.models.Load()
	if old[model] != nil || len(t.all) >= maxTexts {
		return
	}
	m := newText(model, len(t.all), t.other.Scale())
	all := maps.Clone(old)
	all[model] = m
	t.all = append(t.all, m)
	t.models.Store(&all)
}

// add takes what was computed between two scrapes of a replica, and the prompt tokens that it counted meanwhile.
func (t *texts) add(d *books, counted float64) {
	t.rest = t.rest.plus(d)
	t.counted += counted
}

// drop forgets what nothing was learned from yet.
func (t *texts) drop() { t.rest, t.counted = books{}, 0 }

// learn learns from what was added. It reports whether a block of the indexes stands for another number of tokens now.
func (t *texts) learn(now time.Time) (resized bool) {
	expected, rest := 0.0, &t.rest
	for i, x := range t.all {
		if rest.text[i] < 0 {
			return false
		}
		expected += rest.text[i] * x.Scale()
	}
	estimated := t.counted - rest.exact
	if expected <= 0 || estimated <= 0 || rest.requests <= 0 || rest.exact < 0 {
		return false
	}
	plain := rest.exact
	for i, x := range t.all {
		if of := rest.text[i]; of > 0 {
			plain += of
			share := of * x.Scale() / expected
			x.learn(now, of, estimated*share, rest.requests*share)
		}
	}
	keep := math.Pow(1-1/textMemory, rest.requests)
	t.plain, t.sum = keep*t.plain+plain, keep*t.sum+t.counted
	t.drop()
	return t.fit()
}

// learn takes n prompts of so many plain tokens together that had so many tokens.
func (t *Text) learn(now time.Time, plain, tokens, n float64) {
	keep := math.Pow(1-1/textMemory, n)
	off := math.Abs(tokens/plain/(t.tokens/t.plain) - 1)
	t.spread += (1 - keep) * (min(off, maxScale) - t.spread)
	t.plain, t.tokens = keep*t.plain+plain, keep*t.tokens+tokens
	t.requests, t.at = t.requests+n, now
	t.set()
}

// blockSlack is how far the tokens of a block may be off before the indexes are sized anew.
const blockSlack = 0.03

// fit sets block, and reports whether it changed.
func (t *texts) fit() bool {
	block := chain.BlockTokens * min(max(t.sum/t.plain, minScale), maxScale)
	if math.Abs(block/t.block-1) <= blockSlack {
		return false
	}
	t.block = block
	return true
}

// TextStats is what is learned of the prompts for one model, as people see it.
type TextStats struct {
	Model         string  `json:"model"` // empty: of requests that name none, or of all models without a place of their own
	Unread        bool    `json:"unread,omitempty"`
	BytesPerToken float64 `json:"bytes_per_token"`
	Requests      float64 `json:"requests"`    // it is learned from, split by estimate where several models were computed at once
	Spread        float64 `json:"spread"`      // mean of how far one scrape is off, as a share, prompts under way included
	AgeSeconds    float64 `json:"age_seconds"` // since it was last learned
}

// Texts lists what is learned of prompts, of those sorts of which something is.
func (p *Pool) Texts(now time.Time) (all []TextStats) {
	for _, t := range p.texts.all {
		if t.requests > 0 {
			all = append(all, TextStats{t.name, t == p.texts.unread, chain.BytesPerToken / t.Scale(), t.requests, t.spread, now.Sub(t.at).Seconds()})
		}
	}
	return all
}

// BytesPerToken is the bytes of a prompt token over all prompts of the pool, those of known tokens counted with
// chain.BytesPerToken.
func (p *Pool) BytesPerToken() float64 { return chain.BytesPerToken * p.texts.plain / p.texts.sum }
