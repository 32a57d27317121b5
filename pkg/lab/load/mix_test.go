package load

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/lab/sample"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/prompt"
)

var testMix = Mix{Seed: 7, Model: "m", Rate: 20, Length: 50 * time.Second}

func parsed(t *testing.T, a *Arrival) prompt.Prompt {
	t.Helper()
	var parser prompt.Parser
	var p prompt.Prompt
	if parser.Parse(&p, prompt.Input{Path: a.Path, Body: a.Body}); p.Reason != prompt.ReasonNone || !p.Stream || p.Model != "m" {
		t.Fatalf("%s: %+v", a.Kind, p)
	}
	return p
}

// TestMixIsAsDescribed holds the sizes, shares and ratios of the Mix's own comment.
func TestMixIsAsDescribed(t *testing.T) {
	arrivals := testMix.Arrivals()
	counts := map[string]float64{}
	systems, seen := map[chain.Hash]bool{}, map[chain.Hash]bool{}
	for i := range arrivals {
		a := &arrivals[i]
		if a.At < 0 || a.At >= testMix.Length || i > 0 && a.At < arrivals[i-1].At {
			t.Fatalf("arrival %d at %v after %v", i, a.At, arrivals[max(i, 1)-1].At)
		}
		counts[a.Kind]++
		p := parsed(t, a)
		ratio := float64(p.Tokens) / float64(p.MaxTokens)
		switch a.Kind {
		case Chat:
			systems[p.Chain[10]] = true // 700 tokens in: still the system prompt
			check(t, a.Kind, p.Tokens, 1030, 2000+6*150+5*240+60)
		case RAG:
			seen[p.Chain[10]] = true
			check(t, a.Kind, p.Tokens, 4000, 8000+150)
			if ratio < 19 || ratio > 49 { // the ratio is drawn over the document alone
				t.Errorf("RAG: %d prompt tokens to %d", p.Tokens, p.MaxTokens)
			}
		case Long:
			check(t, a.Kind, p.Tokens, 8000, 16000)
			check(t, a.Kind, p.MaxTokens, 300, 600)
			if a.Header.Get("x-weir-class") != "bulk" {
				t.Errorf("long: header %v", a.Header)
			}
		}
	}
	if len(systems) != assistants || len(seen) < documents*8/10 || len(seen) > documents {
		t.Errorf("%d system prompts, %d documents", len(systems), len(seen))
	}
	mean := testMix.Rate * testMix.Length.Seconds()
	for kind, share := range map[string]float64{Chat: chatShare, RAG: ragShare, Long: longShare} {
		// Five standard deviations; those of chat are wider, as a conversation's turns come together.
		if want, got := share*mean, counts[kind]; math.Abs(got-want) > 5*math.Sqrt(maxTurns*want) {
			t.Errorf("%s: %v of them, want about %v", kind, got, want)
		}
	}
	if set := testMix.WorkingSet(); set < assistants*1000+documents*4000 || set > assistants*2000+documents*8000 {
		t.Errorf("working set %d", set)
	}
}

func check(t *testing.T, what string, got, low, high int) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: %d is not between %d and %d", what, got, low, high)
	}
}

// TestTurnsExtendEachOther holds that conversations go on: a later turn's chain holds an earlier one's.
func TestTurnsExtendEachOther(t *testing.T) {
	arrivals := testMix.Arrivals()
	ends := map[chain.Hash]bool{} // the last full block of each chat so far
	extended := 0
	for i := range arrivals {
		if arrivals[i].Kind != Chat {
			continue
		}
		checkTalk(t, arrivals[i].Body)
		p := parsed(t, &arrivals[i])
		for _, h := range p.Chain[:len(p.Chain)-1] {
			if ends[h] {
				extended++
				break
			}
		}
		ends[p.Chain[len(p.Chain)-1]] = true
	}
	// With 1 to 6 turns 5 of 7 requests are no first ones; those that began before the start have lost theirs.
	if n := len(ends); extended < n*4/10 || extended > n*8/10 {
		t.Errorf("%d of %d chats extend an earlier one", extended, n)
	}
}

// checkTalk wants the assistant's prompt, then question and answer by turns, and a question last.
func checkTalk(t *testing.T, request []byte) {
	t.Helper()
	var b body
	if err := json.Unmarshal(request, &b); err != nil {
		t.Fatal(err)
	}
	for i, m := range b.Messages {
		want := [2]string{"assistant", "user"}[i%2]
		if i == 0 {
			want = "system"
		}
		if m.Role != want || m.Content == "" {
			t.Fatalf("message %d of %d is %s's: %q", i, len(b.Messages), m.Role, m.Content)
		}
	}
	if n := len(b.Messages); n%2 != 0 || n > 2*maxTurns {
		t.Errorf("%d messages", n)
	}
}

func TestMixIsRepeatable(t *testing.T) {
	if !reflect.DeepEqual(testMix.Arrivals(), testMix.Arrivals()) {
		t.Error("the same Mix gives two workloads")
	}
	other := testMix
	other.Seed++
	if reflect.DeepEqual(testMix.Arrivals()[0].Body, other.Arrivals()[0].Body) {
		t.Error("another seed gives the same first request")
	}
}

func TestZipf(t *testing.T) {
	const n, draws = 5, 200_000
	z, rng := sample.NewZipf(n, 0.8), testMix.source(99)
	counts := make([]float64, n)
	for range draws {
		counts[z.Pick(rng)]++
	}
	for k := range counts {
		want := math.Pow(float64(k+1), -0.8) * counts[0]
		if math.Abs(counts[k]-want) > 0.03*want+5*math.Sqrt(want) {
			t.Errorf("rank %d drawn %v times, want about %v", k, counts[k], want)
		}
	}
}

// alike are n prompts of exactly 8,192 tokens with an answer of one token: one step each, nothing cached.
func alike(n int, same bool) (all []Arrival) {
	for i := range n {
		if same {
			i = 0
		}
		prompt := fmt.Sprintf("%08d%032760d", i, i) // different from the first block on
		all = append(all, Arrival{Path: "/v1/completions", Body: fmt.Appendf(nil, `{"prompt":%q,"max_tokens":1}`, prompt)})
	}
	return all
}

// TestCapacity has a workload whose capacity is known: each request is one full step.
func TestCapacity(t *testing.T) {
	p, err := step.Lookup("8B")
	if err != nil {
		t.Fatal(err)
	}
	const replicas = 3
	want := replicas / p.StepTime(1, 0, 8192).Seconds()
	got, err := Capacity(p, replicas, alike(90, false))
	if err != nil || math.Abs(got-want) > 0.06*want { // the window of 54 of 90 ends inside a round of three
		t.Errorf("capacity %v, %v; want %v", got, err, want)
	}
	if cached, err := Capacity(p, replicas, alike(90, true)); err != nil || cached < 10*want {
		t.Errorf("one prompt again and again: %v, %v; want far more than %v", cached, err, want)
	}
}

func TestCapacityRefuses(t *testing.T) {
	p, err := step.Lookup("8B")
	if err != nil {
		t.Fatal(err)
	}
	long := p
	long.KVTokens = 4096
	for name, tc := range map[string]struct {
		p        step.Profile
		arrivals []Arrival
	}{
		"no profile":    {step.Profile{}, alike(20, false)},
		"too few":       {p, alike(3, false)},
		"too long":      {long, alike(20, false)},
		"no JSON":       {p, []Arrival{{Path: "/v1/completions", Body: []byte("{")}}},
		"no max_tokens": {p, []Arrival{{Path: "/v1/completions", Body: []byte(`{"prompt":"x"}`)}}},
	} {
		if c, err := Capacity(tc.p, 2, tc.arrivals); err == nil {
			t.Errorf("%s: capacity %v", name, c)
		}
	}
}
