package pool

import (
	"encoding/json"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/prefix"
)

// A hung replica whose counter comes and goes shows no progress.
func TestGapInTheCounterIsNoProgress(t *testing.T) {
	r := New("p", []string{"a"}, plain).Replicas[0]
	var l Lease
	r.charge(at(0), &l, Load{Prompt: 50_000, Uncached: 50_000})
	for s := 1.0; s < 30; s++ {
		sample := Sample{At: at(s), Tokens: 700, HasTokens: int(s)%2 == 1}
		if !sample.HasTokens {
			sample.Tokens = 0
		}
		r.Observe(at(s), sample)
	}
	if v := r.View(at(30)); !near(v.Backlog, 50_000-4*5000) { // three seconds from the first scrape
		t.Errorf("backlog %v after 30 s, want 30000", v.Backlog)
	}
}

// Scraped idle once, and then silent (gateway-api-inference-extension#1497); scraped on and on, every gauge standing
// at zero (vllm-project/vllm#49538). Either
// way what weir sent itself stays.
func TestHungReplicaNeverLooksIdle(t *testing.T) {
	idle := Sample{HasRunning: true, HasWaiting: true, HasKV: true, HasTokens: true}
	for _, frozen := range []bool{false, true} {
		r := New("p", []string{"a"}, plain).Replicas[0]
		idle.At = at(0)
		r.Observe(at(0), idle)
		var leases [3]Lease
		for i := range leases {
			r.charge(at(float64(i)), &leases[i], Load{Prompt: 20_000, Uncached: 20_000, Output: 100})
		}
		for s := 3.0; s <= 120 && frozen; s++ {
			idle.At = at(s)
			r.Observe(at(s), idle)
		}
		v := r.View(at(120))
		if !near(v.Backlog, 60_000-15_000) || v.Below() {
			t.Errorf("frozen %v: backlog %v, below its knee: %v; want 45000 and false", frozen, v.Backlog, v.Below())
		}
	}
}

func TestKVOfGaugeAndOfPins(t *testing.T) {
	gauge := func(kv float64) Sample { return Sample{KV: kv, HasKV: true} }
	load := Load{Prompt: 9000, Uncached: 4400, Output: 2000} // a tenth of 64,000 tokens
	r := New("p", []string{"a"}, plain).Replicas[0]
	r.Index.Pin(nil, 250) // a quarter of 1,000 blocks
	want := func(when string, s, kv float64) {
		t.Helper()
		if v := r.View(at(s)); !near(v.KV, kv) {
			t.Errorf("%s: KV %v, want %v", when, v.KV, kv)
		}
	}
	observe := func(s float64, sample Sample) {
		sample.At = at(s)
		r.Observe(at(s), sample)
	}
	var a, b, c Lease
	want("never scraped: pins", 0, 0.25)
	observe(1, Sample{HasRunning: true})
	want("scraped without a KV gauge: pins", 1, 0.25)
	observe(2, gauge(0.5))
	want("the gauge", 2, 0.5)
	r.charge(at(2), &a, load)
	want("and what was sent since", 2, 0.6)
	r.charge(at(2.5), &b, load)
	want("and more", 2.9, 0.7)
	b.Release(at(2.9), true)
	want("less what ended since", 2.9, 0.6)
	observe(3, gauge(0.55))
	want("a new gauge knows it", 3, 0.55)
	r.charge(at(3), &c, load)
	observe(3, gauge(0.65))
	want("a gauge at the instant of a charge knows it", 3, 0.65)
	a.Release(at(3.5), true)
	c.Release(at(3.5), true)
	want("what ended before the gauge is in it until the next", 3.5, 0.65)
	observe(4, Sample{HasWaiting: true})
	want("a scrape without the gauge: unknown", 4, 0.25)
	observe(5, gauge(0))
	want("a gauge of zero is zero", 5, 0)
	want("fresh until three seconds", 7.99, 0)
	want("stale from then on: pins", 8, 0.25)
}

func TestStats(t *testing.T) {
	p := New("p", []string{"10.0.0.1:8000"}, plain)
	r := p.Replicas[0]
	text := func(s float64) string {
		b, err := json.Marshal(r.Stats(at(s)))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const idle = `{"endpoint":"10.0.0.1:8000","leases":0,"foreign":0,"pending_tokens":0,"backlog_tokens":0,"wait_seconds":0,` +
		`"tau_seconds":0.5,"kv":0,"kv_tokens":64000,"below_knee":true,"down":false,"failing":false,"index_pinned_blocks":0,"restarts":0,"scrape":`
	const none = `"started":null,"ttft_seconds":null,"inter_token_seconds":null,"queue_seconds":null,"hit_share":null,"preemptions":null}}`
	if got := text(0); got != idle+`null}` {
		t.Errorf("never scraped: %s", got)
	}
	r.Observe(at(1), Sample{At: at(1), Waiting: 3, HasWaiting: true, Running: 9})
	if got, want := text(2), idle+`{"age_seconds":1,"stale":false,"running":null,"waiting":3,"kv":null,`+none; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := text(4), idle+`{"age_seconds":3,"stale":true,"running":null,"waiting":3,"kv":null,`+none; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var l Lease
	r.charge(at(4), &l, Load{Prompt: 1000, Uncached: 1000, Output: 50})
	s := r.Stats(at(4))
	if s.Leases != 1 || s.BacklogTokens != 1000 || s.PendingTokens != 1050 || !near(s.WaitSeconds, 0.2) || !s.Below {
		t.Errorf("Stats = %+v", s)
	}
	l.Release(at(4), true)
	if s := r.Stats(at(4)); s.Leases != 0 || s.BacklogTokens != 0 || s.PendingTokens != 0 || s.WaitSeconds != 0 {
		t.Errorf("Stats = %+v after the end", s)
	}
}

// Without a gauge the share of KV is what live leases pin, and a full cache is a full share whatever the
// configured size is modulo a block.
func TestKVWithoutGaugeReachesOne(t *testing.T) {
	for _, tokens := range []int{1, 63, 64, 127, 1000, 421_000} {
		cfg := plain
		cfg.KVTokens = tokens
		r := New("p", []string{"a"}, cfg).Replicas[0]
		if kv := r.View(at(0)).KV; kv != 0 {
			t.Errorf("%d tokens: KV %v while idle", tokens, kv)
		}
		pins := r.Index.Pin(nil, 1<<20)
		if v := r.View(at(0)); v.KV != 1 || v.Below() {
			t.Errorf("%d tokens: KV %v with every block pinned, below the knee: %v", tokens, v.KV, v.Below())
		}
		r.Index.Unpin(nil, pins, prefix.All)
	}
	if chain.BlockTokens != 64 {
		t.Error("the sizes above are chosen around blocks of 64 tokens")
	}
}
