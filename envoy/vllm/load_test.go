//go:build vllm

package vllm

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// all asks the questions, so many at once, and returns the answers in their order when everything has settled.
func (r *rig) all(t *testing.T, at int, questions []question) []*answer {
	t.Helper()
	answers, next := make([]*answer, len(questions)), make(chan int)
	var clients sync.WaitGroup
	for range at {
		clients.Go(func() {
			for i := range next {
				answers[i] = r.ask(t.Context(), questions[i])
			}
		})
	}
	for i := range questions {
		next <- i
	}
	close(next)
	clients.Wait()
	r.settle(t)
	return answers
}

// mix asks about documents of which the two caches do not hold all, some more often than others; one in four is a chat.
// What weir expects is compared over all: its index drops the oldest as vLLM does, once it has learned how many tokens a block has.
func mix(t *testing.T, r *rig) {
	var questions []question
	for i := range 160 {
		number := int(math.Pow(28, random.Float64())) // 1 to 27, the first ones most
		text := document(100+number, 3000+1000*(number*7%23))
		ask := "\nQuestion " + strconv.Itoa(i) + ": " + corpus[i*97:i*97+40*(1+i%5)]
		q := question{prompt: text + ask, answer: 4 + i%60, stream: i%2 == 0}
		if i%4 == 3 {
			q.chat = []message{{"system", text}, {"user", ask}}
		}
		questions = append(questions, q)
	}
	answers := r.all(t, 4, questions)
	r.whole(t, answers...)
	var matched, cached, prompt, told float64
	for _, a := range answers {
		matched += a.Weir.number("matched_tokens")
		cached += float64(a.usage.Details.Cached)
		prompt += a.Weir.number("prompt_tokens")
		told += float64(a.usage.Prompt)
	}
	r.note("a mix of documents and chats", answers...)
	if share, is := matched/prompt, cached/told; is < 0.3 || is > 0.9 || share < is/1.2 || share > is*1.2 {
		t.Errorf("weir expects %.2f of the prompts' tokens in the caches, vLLM finds %.2f", share, is)
	}
}

// steady has eight long answers under way, some at each vLLM. Weir's page shows the gauges as vLLM's does, and the time between
// tokens, scrape by scrape, as vLLM counts it over all of them.
func steady(t *testing.T, r *rig) {
	before := map[*server]counters{}
	for _, s := range r.vllms {
		before[s] = s.counters(t)
	}
	var questions []question
	for i := range 8 {
		questions = append(questions, question{prompt: ids(2000), answer: 1500, stream: i%2 == 0})
	}
	ended := make(chan []*answer, 1)
	go func() { ended <- r.all(t, len(questions), questions) }()
	type told struct{ running, kv bool }
	seen, gaps := map[*server]told{}, map[*server][]float64{}
	var answers []*answer
	for answers == nil {
		for _, s := range r.vllms {
			c, p := s.counters(t), r.of(t, s)
			o := seen[s]
			n := float64(p.Leases)
			o.running = o.running || n > 1 && c["num_requests_running"] == n && *p.Scrape.Running == n && *p.Scrape.Waiting == 0 && p.Foreign == 0
			o.kv = o.kv || c["kv_cache_usage_perc"] > 0.1 && math.Abs(*p.Scrape.KV/c["kv_cache_usage_perc"]-1) < 0.1
			if gap := p.Scrape.InterToken; gap != nil && (len(gaps[s]) == 0 || gaps[s][len(gaps[s])-1] != *gap) {
				gaps[s] = append(gaps[s], *gap)
			}
			seen[s] = o
		}
		select {
		case answers = <-ended:
		case <-time.After(50 * time.Millisecond):
		}
	}
	r.whole(t, answers...)
	for _, s := range r.vllms {
		c := s.counters(t)
		mean := (c["inter_token_latency_seconds_sum"] - before[s]["inter_token_latency_seconds_sum"]) /
			(c["inter_token_latency_seconds_count"] - before[s]["inter_token_latency_seconds_count"])
		sum := 0.0
		for _, gap := range gaps[s] {
			sum += gap
		}
		if o := seen[s]; !o.running || !o.kv || len(gaps[s]) < 2 {
			t.Errorf("%s: all that run were seen: %v, their KV: %v, times between tokens: %v", s.name, o.running, o.kv, gaps[s])
		} else if ratio := sum / float64(len(gaps[s])) / mean; ratio < 0.6 || ratio > 1.6 { // a scrape is a mean over some of it
			t.Errorf("%s: between tokens weir reads %v, a mean of %.2f times vLLM's %.4f", s.name, gaps[s], ratio, mean)
		}
	}
}

// refused sends a prompt that is too long for the model, and then its first part.
func refused(t *testing.T, r *rig) {
	long := ids(maxContext + 1000)
	a := r.ask(t.Context(), question{prompt: long, answer: 1})
	r.settle(t)
	if a.status != http.StatusBadRequest || a.Attempts != 1 || a.Served != a.Weir.text("endpoint") {
		t.Errorf("status %d, %d attempts, served by %s, weir %v", a.status, a.Attempts, a.Served, a.Weir)
	}
	cachedAsMatched(t, r.must(t, question{prompt: long[:5000], answer: 8}))
}

// cycle asks about documents in turn, twice, of which the caches hold a part: then vLLM has always just dropped the one that comes.
func cycle(t *testing.T, r *rig) {
	for round := range 2 {
		var questions []question
		for i := range 11 {
			questions = append(questions, question{prompt: document(200+i, 20_000) + "\nQuestion " + strconv.Itoa(round), answer: 4})
		}
		answers := r.all(t, 1, questions)
		r.whole(t, answers...)
		if round > 0 {
			r.note("documents in turn, more than the caches hold", answers...)
		}
	}
}

// queue sends more than the vLLMs have seats for, which weir, by its default of 256 for each, does not know. What runs and
// what waits shows on weir's page, as on vLLM's; all get their answer; and each vLLM gets as many as go by the pace that weir has
// learned of it, which differs between two alike, as a CPU's time for a prompt is not linear in its length.
func queue(t *testing.T, r *rig) {
	paces := map[*server]float64{}
	for _, s := range r.vllms {
		paces[s] = r.pace(t, s)
	}
	var questions []question
	for i := range 4 * seats { // a vLLM that looks slower gets fewer of them, and still more than it has seats for
		questions = append(questions, question{prompt: ids(100), answer: 400, stream: i%2 == 0})
	}
	ended := make(chan []*answer, 1)
	go func() { ended <- r.all(t, len(questions), questions) }()
	full, there := map[*server]string{}, map[*server]float64{} // the page that showed it, and the requests that Envoy had there
	eventually(t, "16 run at each vLLM and others wait, and weir shows it", func() bool {
		for _, s := range r.vllms {
			page, p, n := s.page(t), r.of(t, s), r.active(t, s)
			c := read(page)
			run, wait := c["num_requests_running"], c["num_requests_waiting"]
			if run == seats && wait > 0 && run+wait == n && *p.Scrape.Running == run && *p.Scrape.Waiting == wait && float64(p.Leases) == n {
				full[s], there[s] = page, n
			}
		}
		return len(full) == len(r.vllms)
	})
	answers := <-ended
	r.whole(t, answers...)
	at := map[string]int{}
	for _, a := range answers {
		at[a.Served]++
	}
	for _, s := range r.vllms {
		want := float64(len(answers)) * (1 / paces[s]) / (1/paces[r.vllms[0]] + 1/paces[r.vllms[1]])
		t.Logf("%d of %d at %s, whose prompt tokens weir takes for %.3g s each", at[s.addr], len(answers), s.name, paces[s])
		if is := float64(at[s.addr]); is < 0.6*want || is > 1.6*want {
			t.Errorf("%v at %s, by its pace %.1f", is, s.name, want)
		}
	}
	if *recording {
		s := r.vllms[0]
		record(t, "vllm-0.32.0-busy-metrics", full[s], map[string]float64{"running": seats, "waiting": there[s] - seats, "kv_tokens": kvSize})
	}
}

// active is the requests that Envoy has under way at a vLLM.
func (r *rig) active(t *testing.T, s *server) float64 {
	t.Helper()
	page, err := r.Get("/clusters")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "replicas::"+s.addr+"::rq_active::")
	text, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("Envoy tells no requests of %s: %v", s.addr, err)
	}
	return n
}
