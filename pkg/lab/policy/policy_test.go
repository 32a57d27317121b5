package policy

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// env is n replicas of 8B.
func env(t testing.TB, n int) Env {
	t.Helper()
	p, err := step.Lookup("8B")
	if err != nil {
		t.Fatal(err)
	}
	e := Env{Profile: p, Seed: 1}
	for range n {
		r, err := step.New(p)
		if err != nil {
			t.Fatal(err)
		}
		e.Replicas = append(e.Replicas, r)
	}
	return e
}

func mustNew(t testing.TB, name string, e Env) Router {
	t.Helper()
	r, err := New(name, e)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// call is a request for the text of that number.
func call(text, prompt int) *Call {
	c := &Call{Req: &workload.Request{Prompt: prompt, Output: 100}}
	for i := range prompt / step.BlockTokens {
		c.Req.Blocks = append(c.Req.Blocks, uint64(text)<<32|uint64(i+1))
	}
	c.Seq = step.Seq{Hashes: c.Req.Blocks, Prompt: prompt, Output: 100}
	return c
}

// send routes a call and returns its slot.
func send(t testing.TB, r Router, c *Call) int {
	t.Helper()
	if r.Arrive(0, c); c.State != Sent {
		t.Fatalf("state %v", c.State)
	}
	return c.Slot
}

// TestChain: the hash of every fourth 16-token block names a 64-token block, of the prompt alone.
func TestChain(t *testing.T) {
	for _, c := range []struct{ prompt, blocks, want int }{{63, 4, 0}, {64, 4, 1}, {127, 20, 1}, {128, 20, 2}, {200, 5, 1}, {0, 9, 0}} {
		q := &Call{Req: &workload.Request{Prompt: c.prompt}}
		for i := range c.blocks {
			q.Req.Blocks = append(q.Req.Blocks, uint64(i))
		}
		got := q.Chain()
		if len(got) != c.want {
			t.Errorf("%d tokens, %d hashes: chain of %d, want %d", c.prompt, c.blocks, len(got), c.want)
		}
		for i, h := range got {
			if h != chain.Hash(4*i+3) {
				t.Errorf("block %d is named %d", i, h)
			}
		}
	}
}

func TestUnknown(t *testing.T) {
	if _, err := New("best", env(t, 1)); err == nil || !strings.Contains(err.Error(), `"best": use one of bounded-load, `) {
		t.Error(err)
	}
}

// TestOneReplica: no rule fails where there is no choice.
func TestOneReplica(t *testing.T) {
	for _, name := range Names() {
		r := mustNew(t, name, env(t, 1))
		for range 5 {
			c := call(1, 500)
			if slot := send(t, r, c); slot != 0 {
				t.Errorf("%s: slot %d", name, slot)
			}
			r.First(0, c)
			r.End(0, c)
		}
	}
}

// TestLedgerComesBackToNothing when all requests have ended, in any order and before their first token, too.
func TestLedgerComesBackToNothing(t *testing.T) {
	l := newLedger(env(t, 2))
	r := &immediate{l, &lmetric{l}}
	var calls []*Call
	for i := range 20 {
		c := call(i%3, 640)
		send(t, r, c)
		calls = append(calls, c)
	}
	if l.total != 20 || l.live[0]+l.live[1] != 20 || l.pending[0]+l.pending[1] < 3*640 {
		t.Errorf("live %v, pending %v", l.live, l.pending)
	}
	for i := range calls {
		c := calls[(i*7)%20]
		if i%2 == 0 {
			r.First(0, c)
		}
		r.End(0, c)
	}
	if l.total != 0 || l.live[0] != 0 || l.live[1] != 0 || l.pending[0] != 0 || l.pending[1] != 0 || l.index[0].Pinned()+l.index[1].Pinned() != 0 {
		t.Errorf("live %v, pending %v", l.live, l.pending)
	}
}

// TestWeirIsConfiguredForItsReplicas: what the router believes of a replica is what the replica is.
func TestWeirIsConfiguredForItsReplicas(t *testing.T) {
	for _, name := range []string{"8B", "32B", "70B"} {
		p, err := step.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		want, ok := pool.Default(name)
		s := exactly(p)
		got := s.replica()
		got.Profile = name
		if !ok || got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestWeirHolds: requests past the knee wait, are sent when Release is called, and are late after their deadline.
func TestWeirHolds(t *testing.T) {
	r := mustNew(t, Weir, env(t, 1))
	var held []*Call
	for i := range 30 {
		c := call(i+1, 20_000)
		if r.Arrive(0, c); c.State == Held {
			held = append(held, c)
		}
	}
	if len(held) < 20 {
		t.Fatalf("%d of 30 are held", len(held))
	}
	if done := r.Release(time.Millisecond, nil); len(done) != 0 {
		t.Errorf("%d released with nothing done", len(done))
	}
	next, ok := r.Next()
	if !ok || next <= 0 || next > 2*time.Second {
		t.Errorf("next look at %v, %v", next, ok)
	}
	done := r.Release(10*time.Minute, nil)
	if len(done) != len(held) {
		t.Fatalf("%d of %d released", len(done), len(held))
	}
	for i, c := range done {
		if c != held[i] || c.State != Refused || c.Outcome != route.Late {
			t.Errorf("call %d: state %v, outcome %v", i, c.State, c.Outcome)
		}
	}
}

// TestWeirWithLines: each line of weir's policy can be changed, and a fault in one names its key.
func TestWeirWithLines(t *testing.T) {
	profile, err := step.Lookup("32B")
	if err != nil {
		t.Fatal(err)
	}
	want := exactly(profile)
	want.route.Pick.BalanceOn, want.route.Pick.Affinity, want.route.Queue, want.route.Rule = "requests", "none", "fifo", "none"
	want.tau = 250 * time.Millisecond
	got, err := settingsOf(profile, []string{"balance_on=requests", "affinity=none", "queue=fifo", "rule=none", "max_backlog=250ms"})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	other, err := step.Lookup("8B")
	if err != nil {
		t.Fatal(err)
	}
	want = exactly(other)
	want.rates, want.learn, want.gaps = 2, false, false
	if got, err = settingsOf(profile, []string{"rates=2", "learn=false", "profile=8B", "gaps=false"}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if c := got.replica(); c.Step != 2*other.Base || c.PerSequence != 2*other.PerSeq || c.PerContextToken != 2*other.PerContext ||
		c.PerPromptToken != 2*other.PerPrefill || c.KVTokens != other.KVTokens || c.Learn || c.Validate() != nil {
		t.Errorf("%+v", c)
	}
	for name, says := range map[string]string{
		"weir/balance_on=luck": "balance_on: ", "weir/affinity=x": "affinity: ", "weir/queue=lifo": "queue: ", "weir/rule": "rule: ",
		"weir/profile=9B": `no profile "9B"`, "weir/rates=0": "rates: ", "weir/learn=yes": "learn: ", "weir/gaps=": "gaps: ",
		"weir/max_backlog=much": "max_backlog: ", "weir/max_backlog=2h": "max_backlog: ", "weir/gate=open": "gate: \"open\" is none of ",
		"weir/queue=fifo/luck=good": `no key "luck"`, "weirs": `no policy "weirs"`,
		"weir/bytes_per_token=3": "bytes_per_token: ", "weir/kv_tokens=0": "kv_tokens: ",
	} {
		if _, err := New(name, env(t, 1)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
