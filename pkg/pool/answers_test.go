package pool

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

// sequence is one answer under way at a vLLM: to it a request by itself.
type sequence struct{ first, end float64 }

// crowd is a vLLM, alone in its pool, and requests with several answers each, sent to it by weir.
type crowd struct {
	p        *Pool
	rng      *rand.Rand
	prompts  float64 // of a request
	answers  float64 // to each
	scale    float64 // tokens of a plain one
	leases   []*Lease
	ends     []float64
	live     []sequence
	page     Sample
	now      float64
	most     float64 // of others that weir saw
	unmarked bool    // weir is not told of several
	exact    bool    // the tokens of every second request are known
	sent     int
}

const (
	crowdOutput = 40.0
	crowdPrompt = 300.0 // plain tokens of each prompt
)

// send charges a request, half of whose first prompt is cached, and has the vLLM count it as it does.
func (c *crowd) send() {
	r, text, k := c.p.Replicas[0], c.p.Text("m"), c.prompts*c.answers
	words := crowdPrompt * (0.5 + c.rng.Float64())
	tokens, cached := words*c.scale, math.Floor(words*c.scale/2/chain.BlockTokens)*chain.BlockTokens
	q := Load{Prompt: c.prompts * words * text.Scale(), Text: text, Plain: c.prompts * words, Prompts: c.prompts, Answers: k}
	if c.sent++; c.exact && c.sent%2 == 0 {
		q.Prompt, q.Text, q.Plain = c.prompts*tokens, nil, 0
	}
	if c.unmarked {
		q.Prompts, q.Answers = 0, 0
	}
	q.Output = q.sequences() * c.p.OutputOf(Kind{Model: "m"})
	q.Uncached = q.Prompt - cached
	l := &Lease{}
	c.p.Charge(at(c.now), l, r, q)
	first := l.formula
	last := 0.0
	for range int(c.prompts) {
		hits := cached // of the first prompt; the copies of each find all of it, in blocks of 16
		for range int(c.answers) {
			c.page.Prompt += tokens
			c.page.Hits.Count += tokens
			c.page.Hits.Sum += hits
			hits = math.Floor((tokens-1)/16) * 16
			end := first + crowdOutput*(0.5+c.rng.Float64())*r.decode
			c.live = append(c.live, sequence{c.now + first, c.now + end})
			c.page.AnswerTokens += math.Round((end - first) / r.decode)
			c.page.TTFT.Sum += first
			last = max(last, end)
		}
		cached = 0
	}
	c.page.TTFT.Count += k
	c.page.Answers += k
	c.leases, c.ends = append(c.leases, l), append(c.ends, c.now+last)
}

// scrape ends what is over, and has weir read the page.
func (c *crowd) scrape() {
	leases, ends, live := c.leases[:0], c.ends[:0], c.live[:0]
	for i, l := range c.leases {
		if c.ends[i] > c.now {
			leases, ends = append(leases, l), append(ends, c.ends[i])
			continue
		}
		c.p.End(at(c.ends[i]), l, Kind{Model: "m"}, true, false)
		l.Release(at(c.ends[i]), true)
	}
	for _, s := range c.live {
		if s.end > c.now {
			live = append(live, s)
		}
	}
	c.leases, c.ends, c.live = leases, ends, live
	s := c.page
	s.At, s.Running, s.Tokens = at(c.now), float64(len(live)), c.page.Prompt+c.page.AnswerTokens
	s.HasRunning, s.HasWaiting, s.HasPrompt, s.HasAnswers, s.HasTokens = true, true, true, true, true
	s.Hits.Has, s.TTFT.Has = true, true
	c.p.Observe(s.At, c.p.Replicas[0], s)
	c.most = max(c.most, c.p.Replicas[0].foreign)
}

func (c *crowd) run(seconds int) {
	for range seconds {
		c.now += 0.9 // so that answers are under way at the scrape
		c.send()
		c.now += 0.1
		c.scrape()
	}
}

func newCrowd(prompts, answers float64) *crowd {
	return &crowd{p: New("p", []string{"a"}, plain), rng: rand.New(rand.NewPCG(1, 2)), prompts: prompts, answers: answers, scale: 1.4}
}

// vLLM counts n answers as n requests, each with its prompt, all but one from the cache, and a list as its prompts. What is
// learned from its counters is right all the same, and nobody else is seen there.
func TestSeveralAnswersAreInTheBooks(t *testing.T) {
	for i, n := range [][2]float64{{1, 1}, {1, 2}, {1, 8}, {5, 1}, {3, 4}, {3, 4}} {
		c := newCrowd(n[0], n[1])
		c.exact = i == 5
		c.run(1500)
		if c.most != 0 || c.p.Own() != 1 {
			t.Errorf("%v: %v of others, own share %v", n, c.most, c.p.Own())
		}
		if got := c.p.Text("m").Scale(); math.Abs(got/c.scale-1) > 0.03 {
			t.Errorf("%v: %v tokens to a plain one, want %v", n, got, c.scale)
		}
		for w, off := range map[What]float64{PromptTokens: 0.03, OutputTokens: 0.05, FirstToken: 0.05, CachedTokens: 0.2} {
			if got := truthOf(c.p, w); got.Ratio == nil || math.Abs(*got.Ratio-1) > off {
				t.Errorf("%v: %v is %+v", n, w, got)
			}
		}
		if got := c.p.Output(); math.Abs(got/crowdOutput-1) > 0.1 {
			t.Errorf("%v: an answer has %v tokens, want %v", n, got, crowdOutput)
		}
		if got := c.p.outputs.counted / c.page.Answers; got < 0.95 || got > 1 {
			t.Errorf("%v: %v of the answers are in the books", n, got)
		}
		if got := c.p.Replicas[0].capacity.share; got != 1 {
			t.Errorf("%v: the cache holds %v of its size", n, got)
		}
	}
	c := newCrowd(1, 8) // the same, taken for one: what the books must be right about
	c.unmarked = true
	c.run(600)
	if c.most == 0 || truthOf(c.p, PromptTokens).Actual != 0 {
		t.Errorf("%v of others are seen, and %v tokens compared", c.most, truthOf(c.p, PromptTokens).Actual)
	}
}

// Answers take a seat each, share the prompt's memory, and take as long as one of them.
func TestSeveralAnswersAreThatManySequences(t *testing.T) {
	cfg := plain
	cfg.Seats = 9
	one, several := New("p", []string{"a"}, cfg).Replicas[0], New("p", []string{"a"}, cfg).Replicas[0]
	for range 8 {
		one.charge(at(0), &Lease{}, Load{Prompt: 100, Uncached: 100, Output: 30})
	}
	var l Lease
	several.charge(at(0), &l, Load{Prompt: 100, Uncached: 100, Output: 240, Prompts: 1, Answers: 8})
	a, b := one.View(at(0)), several.View(at(0))
	if !near(a.Step, b.Step) || !a.Free || !b.Free || !near(b.Backlog, 100) {
		t.Errorf("eight requests are %+v, one with eight answers %+v", a, b)
	}
	if used := several.fresh + several.promised; used != 340 {
		t.Errorf("%v tokens of memory, want the prompt once and its answers", used)
	}
	seat, _ := several.placeWait(0, 0)
	several.charge(at(0), &Lease{}, Load{Prompt: 100, Uncached: 100, Output: 240, Prompts: 2, Answers: 2})
	if full, _ := several.placeWait(0, 0); seat != 0 || full <= 0 || several.View(at(0)).Free {
		t.Errorf("with eight of nine seats a wait of %v s, with ten %v, free %v", seat, full, several.View(at(0)).Free)
	}
	l.Release(at(0), true)
	if !several.View(at(0)).Free || several.sequences != 2 {
		t.Errorf("%v sequences when the eight are over", several.sequences)
	}
}

// Of what requests hold and how long, several answers at once are as long as one of them; the first page of a replica that
// counted each with its prompt shows nothing of others.
func TestSeveralAnswersTakeAsLongAsOne(t *testing.T) {
	cfg, _ := Default("8B")
	one, several := New("p", []string{"a"}, cfg), New("p", []string{"a"}, cfg)
	r := several.Replicas[0]
	rates, step, decode := r.rates, r.step, r.decode
	one.Charge(at(0), &Lease{}, one.Replicas[0], Load{Prompt: 100, Uncached: 100, Output: 30})
	several.Charge(at(0), &Lease{}, r, Load{Prompt: 100, Uncached: 100, Output: 240, Prompts: 1, Answers: 8})
	share := r.Share(340)
	if got, want := several.KVTime(), share*30*step; !near(got, want) {
		t.Errorf("KV time %v, want %v", got, want)
	}
	a, b := one.demand.comers[0], several.demand.comers[0]
	if !near(float64(a.life), float64(b.life)) || !near(float64(b.life), 30*decode) || !near(float64(b.kv), share*30*decode) {
		t.Errorf("one lives for %v s, eight for %v", a.life, b.life)
	}
	if want := 100*rates.Token + 240*(rates.Seq+rates.Context*115); !near(float64(b.work), want) {
		t.Errorf("they take %v s of work, want %v", b.work, want)
	}
	several.Observe(at(1), r, Sample{At: at(1), Tokens: 8*100 + 240, HasTokens: true})
	if !r.Cold() {
		t.Error("a replica that computed what weir sent alone is taken to be warm")
	}
}

// Answers that end together weigh as many that end one by one.
func TestSeveralAnswersWeighAsMany(t *testing.T) {
	together, single := New("p", []string{"a"}, plain), New("p", []string{"a"}, plain)
	for range 100 {
		together.outputs.learn(at(0), Kind{}, 1, 20)
		single.outputs.learn(at(0), Kind{}, 1, 20)
	}
	together.outputs.learn(at(1), Kind{}, 8, 100)
	for range 8 {
		single.outputs.learn(at(1), Kind{}, 1, 100)
	}
	a, b := together.outputs.of(Kind{}), single.outputs.of(Kind{})
	if math.Abs(a.mean/b.mean-1) > 1e-9 || a.n != b.n {
		t.Errorf("%v tokens of %d answers, want %v of %d", a.mean, a.n, b.mean, b.n)
	}
}
