package load

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/lab/sample"
)

// The kinds of the Mix, in the order in which a table shows them.
const (
	Chat = "chat"
	RAG  = "RAG"
	Long = "long"
)

// Kinds lists them.
var Kinds = []string{Chat, RAG, Long}

// Mix is the workload of a shared model server: assistants with long system prompts, questions about
// documents, and jobs for which nobody waits. The same Mix gives the same arrivals, byte for byte.
//
//	chat  of 24 assistants, each with a system prompt of 1,000 to 2,000 tokens; conversations of one to six
//	      turns, whose requests carry all turns before (36 % of requests)
//	RAG   a question about one of 120 documents of 4,000 to 8,000 tokens, picked by Zipf with exponent 0.8;
//	      19 to 47 prompt tokens per answer token (60 %)
//	long  a text of 8,000 to 16,000 tokens that nobody else sends, and 300 to 600 answer tokens, marked
//	      as bulk (4 %)
//
// Each kind's starts are a Poisson process; conversations run since before the start. The answers inside a
// conversation's later requests are the workload's own: a server that kept its answer in its cache finds the
// prompt up to that answer only.
type Mix struct {
	Seed   uint64
	Model  string
	Rate   float64       // requests per second of model time, all kinds together
	Length time.Duration // model time until the last arrival
}

const (
	chatShare, ragShare, longShare = 0.36, 0.60, 0.04

	assistants   = 24
	documents    = 120
	documentSkew = 0.8
	maxTurns     = 6
	// warming is how long before the start the first conversations began: more than a conversation lasts.
	warming = 2 * time.Minute
)

// message is one message of a chat.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// body is a request in OpenAI's API, as far as the workloads use it.
type body struct {
	Model     string          `json:"model"`
	Messages  []message       `json:"messages,omitempty"`
	Prompt    string          `json:"prompt,omitempty"`
	MaxTokens int             `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	Options   map[string]bool `json:"stream_options"`
}

// Arrivals returns the workload, ordered by time.
func (m Mix) Arrivals() []Arrival {
	all := slices.Concat(m.chats(), m.questions(), m.jobs())
	slices.SortStableFunc(all, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	return all
}

// WorkingSet is the tokens that all assistants' prompts and all documents have together: what a prefix
// cache would have to hold to miss each of them once only.
func (m Mix) WorkingSet() int {
	n := 0
	for _, t := range slices.Concat(m.systems(), m.library()) {
		n += len(t) / bytesPerToken
	}
	return n
}

// source is the randomness of one part of the workload, so that a change to one part leaves the others.
func (m Mix) source(part uint64) *rand.Rand { return rand.New(rand.NewPCG(m.Seed, part)) }

func (m Mix) systems() []string { return texts(m.source(1), assistants, 1000, 2000) }
func (m Mix) library() []string { return texts(m.source(2), documents, 4000, 8000) }

func texts(rng *rand.Rand, n, low, high int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = text(rng, sample.Between(rng, low, high))
	}
	return all
}

// poisson calls start at the times of a Poisson process of rate per second, from one time to another.
func poisson(rng *rand.Rand, rate float64, from, to time.Duration, start func(at time.Duration)) {
	gap := func() time.Duration { return time.Duration(rng.ExpFloat64() / rate * float64(time.Second)) }
	for at := from + gap(); at < to; at += gap() {
		start(at)
	}
}

func (m Mix) chats() (all []Arrival) {
	rng, systems := m.source(3), m.systems()
	popular := sample.NewZipf(assistants, 1)
	const meanTurns = (1 + maxTurns) / 2.0
	poisson(rng, chatShare*m.Rate/meanTurns, -warming, m.Length, func(at time.Duration) {
		talk := []message{{"system", systems[popular.Pick(rng)]}}
		for turns := sample.Between(rng, 1, maxTurns); turns > 0; turns-- {
			talk = append(talk, message{"user", text(rng, sample.Between(rng, 30, 150))})
			answer := sample.Between(rng, 80, 240)
			if at >= 0 && at < m.Length {
				all = append(all, chat(m.Model, Chat, at, talk, answer))
			}
			talk = append(talk, message{"assistant", text(rng, answer)})
			at += 8*time.Second + time.Duration(rng.ExpFloat64()*float64(8*time.Second)) // reading, typing
		}
	})
	return all
}

func (m Mix) questions() (all []Arrival) {
	rng, library := m.source(4), m.library()
	popular := sample.NewZipf(documents, documentSkew)
	poisson(rng, ragShare*m.Rate, 0, m.Length, func(at time.Duration) {
		document := library[popular.Pick(rng)]
		question := text(rng, sample.Between(rng, 20, 80))
		prompt := len(document) / bytesPerToken
		talk := []message{
			{"system", "Answer from the document, and from nothing else."},
			{"user", document + "\n\nQuestion: " + question},
		}
		all = append(all, chat(m.Model, RAG, at, talk, prompt/sample.Between(rng, 19, 47)))
	})
	return all
}

// bulk marks a request as one for which nobody waits.
var bulk = http.Header{"X-Weir-Class": {"bulk"}}

func (m Mix) jobs() (all []Arrival) {
	rng := m.source(5)
	poisson(rng, longShare*m.Rate, 0, m.Length, func(at time.Duration) {
		all = append(all, job(m.Model, Long, at, rng, 300, 600))
	})
	return all
}

// job is a request for which nobody waits, with an answer of least to most tokens.
func job(model, kind string, at time.Duration, rng *rand.Rand, least, most int) Arrival {
	b := body{Prompt: text(rng, sample.Between(rng, 8000, 16000)), MaxTokens: sample.Between(rng, least, most)}
	return Arrival{at, kind, "/v1/completions", bulk, encode(model, b)}
}

func chat(model, kind string, at time.Duration, talk []message, answer int) Arrival {
	return Arrival{At: at, Kind: kind, Path: "/v1/chat/completions", Body: encode(model, body{Messages: talk, MaxTokens: answer})}
}

func encode(model string, b body) []byte {
	b.Model, b.Stream, b.Options = model, true, map[string]bool{"include_usage": true}
	out, err := json.Marshal(b)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return out
}
