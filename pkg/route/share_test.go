package route

import (
	"slices"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
)

// loaded has interactive requests of 2,000 tokens at a multiple of what n replicas can take, for ten minutes, and from
// the twentieth second a hundred bulk ones of 6,000. again: who of those ends sends another.
func loaded(t *testing.T, n int, times float64, sharePercent int, again bool) *plant {
	cfg := Default()
	cfg.Classes[1].SharePercent = sharePercent
	replica, _ := pool.Default("8B")
	replica.OutputTokens = 50
	endpoints := make([]string, n)
	for i := range endpoints {
		endpoints[i] = endpoint(i)
	}
	r := New(cfg, pool.New("llm", endpoints, replica))
	r.start.Store(epoch.Add(-time.Hour).UnixNano())
	p := newPlant(t, r, uint64(n))
	until := at(600)
	p.stream(times*float64(n)*capacity(r, 2000, 20), until, func() *Request { return sized(2000, "", "") })
	p.run(at(20))
	clear(p.tokens) // of the time without bulk
	var next func(*Decision)
	next = func(d *Decision) {
		p.after(d.Retry, func() { // none for one that was answered
			if again && p.now.Before(until) {
				p.send(sized(6000, "bulk", ""), next)
			}
		})
	}
	for range 100 {
		p.send(sized(6000, "bulk", ""), next)
	}
	return p
}

// llm-d-router#1995: at 110 % interactive load, for as long as it lasts, bulk gets its twentieth of the tokens and interactive all
// but that; without a share bulk gets nothing, and each is refused at its deadline, 429 and not in silence.
func TestBulkKeepsItsShare(t *testing.T) {
	without := loaded(t, 1, 1.1, 0, false)
	without.run(at(600))
	for _, again := range []bool{true, false} {
		p := loaded(t, 1, 1.1, 5, again)
		end := 600.0
		if !again { // all are late by then
			end = 320
		}
		p.run(at(end))
		bulk, interactive := p.tokens["bulk"], p.tokens["interactive"]
		if share := bulk / (bulk + interactive); share < 0.0499 || share > 0.06 {
			t.Errorf("sent again %v: bulk got %.4f of the tokens, want 0.05", again, share)
		}
		if kept := interactive / without.tokens["interactive"]; again && (kept < 0.93 || kept > 0.97) {
			t.Errorf("interactive keeps %.4f of what it gets without bulk", kept)
		}
		t.Logf("sent again %v: bulk %.0f tokens, interactive %.0f, without bulk %.0f; outcomes %v", again, bulk, interactive, without.tokens["interactive"], p.ends)
		if late := p.ends["bulk"][Late]; !again && (late == 0 || late+p.ends["bulk"][Answered] != 100) {
			t.Errorf("bulk ends %v", p.ends["bulk"])
		}
	}
	p := without
	if n := p.ends["bulk"]; p.tokens["bulk"] != 0 || n[Late] != 100 || len(n) != 1 {
		t.Errorf("with no share bulk got %v tokens, and ended %v", p.tokens["bulk"], n)
	}
	if w := p.waits["late bulk"]; len(w) != 100 || slices.Min(w) != 300 || slices.Max(w) != 300 {
		t.Errorf("%d of bulk were refused after %v to %v s, want 300", len(w), slices.Min(w), slices.Max(w))
	}
}

// While bulk gets more than its share by its own rule, the share costs the others nothing: not one request goes
// otherwise.
func TestShareCostsNothingWhileBulkHasIt(t *testing.T) {
	var tokens [2]map[string]float64
	var waits [2][]float64
	for i, share := range []int{0, 5} {
		p := loaded(t, 4, 0.7, share, true)
		p.run(at(90))
		tokens[i], waits[i] = p.tokens, p.waits["interactive"]
	}
	if b := tokens[0]["bulk"] / (tokens[0]["bulk"] + tokens[0]["interactive"]); b < 0.08 {
		t.Fatalf("bulk gets %.3f of the tokens by itself: too little to tell", b)
	}
	if tokens[0]["bulk"] != tokens[1]["bulk"] || !slices.Equal(waits[0], waits[1]) {
		t.Errorf("with a share of 5 %% bulk got %v tokens, without %v", tokens[1]["bulk"], tokens[0]["bulk"])
	}
}
