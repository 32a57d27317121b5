package pick

import (
	"slices"
	"strings"
	"testing"
)

// TestIntentListsItsValues: a value that is none of a line's is refused with a list of those that are.
func TestIntentListsItsValues(t *testing.T) {
	const balance = " is none of pending_tokens, requests, none"
	const affinity = " is none of consistent_hash(prompt_prefix), consistent_hash(header:NAME), consistent_hash(prompt_cache_key), none"
	for _, c := range []struct {
		balance, affinity string
		want              []string
	}{
		{PendingTokens, PromptPrefix, nil},
		{Requests, None, nil},
		{None, "consistent_hash(header:x-session)", nil},
		{"", PromptPrefix, []string{`balance_on: ""` + balance}},
		{"Requests", "", []string{`balance_on: "Requests"` + balance, `affinity: ""` + affinity}},
		{Requests, "consistent_hash(header:)", []string{`affinity: "consistent_hash(header:)"` + affinity}},
		{Requests, "consistent_hash(header:a b)", []string{`affinity: "consistent_hash(header:a b)"` + affinity}},
		{Requests, "consistent_hash(header:x,y)", []string{`affinity: "consistent_hash(header:x,y)"` + affinity}},
		{Requests, "consistent_hash(header:a", []string{`affinity: "consistent_hash(header:a"` + affinity}},
		{Requests, "consistent_hash(header::authority)", []string{`affinity: "consistent_hash(header::authority)"` + affinity}},
		{Requests, "prompt_prefix", []string{`affinity: "prompt_prefix"` + affinity}},
	} {
		err := Config{BalanceOn: c.balance, Affinity: c.affinity}.Validate()
		if got := lines(err); !slices.Equal(got, c.want) {
			t.Errorf("%q, %q:\ngot  %q\nwant %q", c.balance, c.affinity, got, c.want)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
}

func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func TestAffinityHeader(t *testing.T) {
	for affinity, want := range map[string]string{
		PromptPrefix: "", None: "", "": "", "consistent_hash(header:X-Session-ID)": "x-session-id",
		"consistent_hash(header:a:b)": "", "consistent_hash(header:(a))": "", "header:a": "",
	} {
		if got := (Config{Affinity: affinity}).AffinityHeader(); got != want {
			t.Errorf("%q: header %q, want %q", affinity, got, want)
		}
	}
}

// TestBalanceOn shows what each value balances: replica 0 has one request of 9,000 tokens ahead, replica 1 four of
// 50, and replica 2 one of 400. Prompts without blocks go by cost, and round where that is equal.
func TestBalanceOn(t *testing.T) {
	for balance, want := range map[string][3]bool{ // who gets some
		PendingTokens: {false, true, false},
		Requests:      {true, false, true},
		None:          {true, true, true},
	} {
		p := newPool(3)
		charge(p, epoch, 0, 9000)
		for range 4 {
			charge(p, epoch, 1, 50)
		}
		charge(p, epoch, 2, 400)
		var got [3]int
		for key := range uint64(300) {
			q := &Query{Prompt: 500, Output: 100, Home: -1, Key: key, Rule: Config{BalanceOn: balance, Affinity: PromptPrefix}.Rule()}
			q.Lookup(p)
			got[Best(epoch, p, q).First.Slot]++
		}
		for i, n := range got {
			if (n >= 60) != want[i] || !want[i] && n != 0 {
				t.Errorf("%s: %v of 300 picks by replica, want some on %v", balance, got, want)
			}
		}
	}
}

// TestBalanceKeepsAffinity: what a replica holds counts whatever is balanced on, and under requests it is worth as many
// live requests as it saves prefills of the mean one.
func TestBalanceKeepsAffinity(t *testing.T) {
	c := promptChain(1, 50) // 3,200 tokens
	for _, tc := range []struct {
		balance string
		live    int // requests of 3,200 tokens on the replica that holds the prompt
		stays   bool
	}{
		{PendingTokens, 0, true}, {PendingTokens, 5, false},
		{Requests, 0, true}, {Requests, 2, false},
		{None, 0, true}, {None, 200, true},
	} {
		p := newPool(2)
		warm(p, 0, c)
		q := query(p, c)
		q.Rule = Config{BalanceOn: tc.balance, Affinity: PromptPrefix}.Rule()
		for range tc.live {
			charge(p, epoch, 0, 3200)
		}
		if got := Best(epoch, p, q).First.Slot == 0; got != tc.stays {
			t.Errorf("%s, %d requests on the holder: picked it %v, want %v", tc.balance, tc.live, got, tc.stays)
		}
	}
}

// TestAffinity shows what each value is drawn by: replica 0 holds the whole prompt and 1 is its home.
func TestAffinity(t *testing.T) {
	c := promptChain(1, 50) // 3,200 tokens
	for _, tc := range []struct {
		affinity string
		first    int
		uncached float64
	}{
		{PromptPrefix, 0, 1},
		{"consistent_hash(header:x-session)", 1, 3200},
		{None, 2, 3200}, // Key scores highest there
	} {
		p := newPool(3)
		warm(p, 0, c)
		q := query(p, c)
		q.Rule = Config{BalanceOn: PendingTokens, Affinity: tc.affinity}.Rule()
		if q.Home = 1; tc.affinity == None {
			q.Home = -1
		}
		for q.Key = 0; p.Home(q.Key) != 2; q.Key++ {
		}
		got := Best(epoch, p, q)
		if got.First.Slot != tc.first || got.Load.Uncached != tc.uncached {
			t.Errorf("%s: picked %d with %v uncached tokens, want %d with %v", tc.affinity, got.First.Slot, got.Load.Uncached, tc.first, tc.uncached)
		}
		// Whatever drew the request, what it puts on a replica is what that must compute.
		if u := q.LoadOn(0).Uncached; u != 1 {
			t.Errorf("%s: %v uncached tokens where all is held", tc.affinity, u)
		}
	}
}

// TestAffinityToAHeaderYieldsToLoad: a session's home is preferred as if it held four fifths of the prompt, at any age of the
// router, and not at any price.
func TestAffinityToAHeaderYieldsToLoad(t *testing.T) {
	rule := Config{BalanceOn: PendingTokens, Affinity: "consistent_hash(header:x-session)"}.Rule()
	for ahead, want := range map[float64]bool{0: true, 1000: true, 2000: true, 6000: false} {
		p := newPool(4)
		for range 100 { // work of the mean request: 3,200 tokens
			charge(p, epoch, 3, 3200).Release(epoch, true)
		}
		q := query(p, promptChain(1, 50))
		q.Rule = rule
		charge(p, epoch, q.Home, ahead)
		if got := Best(epoch, p, q).First.Slot == q.Home; got != want {
			t.Errorf("%v tokens ahead of a prompt of 3,200: at home %v, want %v", ahead, got, want)
		}
	}
}

// TestDownIsLast: a replica that fails comes after every other one, whatever the rule, and those that fail are in
// their own order.
func TestDownIsLast(t *testing.T) {
	for _, balance := range []string{PendingTokens, Requests, None} {
		p := newPool(4)
		c := promptChain(1, 50)
		warm(p, 0, c)
		p.Replicas[0].Refuse(epoch)
		charge(p, epoch, 1, 17_000)
		charge(p, epoch, 1, 17_000)
		p.Replicas[2].Refuse(epoch)
		p.Replicas[3].Refuse(epoch)
		charge(p, epoch, 3, 17_000)
		q := query(p, c)
		q.Rule = Config{BalanceOn: balance, Affinity: PromptPrefix}.Rule()
		if got := Best(epoch, p, q); got.First.Slot != 1 || got.Second.Slot != 0 || got.View.Down {
			t.Errorf("%s: picked %d, then %d; want the one that works, then the warm one", balance, got.First.Slot, got.Second.Slot)
		}
		p.Replicas[1].Refuse(epoch)
		if got := Best(epoch, p, q); got.First.Slot != 0 || !got.View.Down {
			t.Errorf("%s: with all out picked %d, want the cheapest", balance, got.First.Slot)
		}
	}
}
