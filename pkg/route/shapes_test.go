package route

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/pick"
	"github.com/weirproxy/weir/pkg/prompt"
)

// shapes is a request of each kind that clients send, of about so many tokens.
func shapes(seed, tokens int) map[string]*Request {
	text := words(seed, tokens)
	all := map[string]*Request{}
	for name, one := range map[string][2]string{
		"completions": {"/v1/completions", `{"model":"m","prompt":"%s"}`},
		"chat":        {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"%s"}]}`},
		"responses":   {"/v1/responses", `{"model":"m","input":"%s"}`},
		"items":       {"/v1/responses", `{"model":"m","instructions":"%s","input":[{"role":"user","content":"q"}]}`},
		"stored":      {"/v1/responses", `{"model":"m","previous_response_id":"r","input":"%s"}`},
		"messages":    {"/v1/messages", `{"model":"m","system":"%s","messages":[{"role":"user","content":"q"}]}`},
		"blocks":      {"/v1/messages", `{"model":"m","system":[{"type":"text","text":"%s"}],"messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]}`},
		"count":       {"/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"%s"}]}`},
		"embeddings":  {"/v1/embeddings", `{"model":"m","input":["%s","b","c"]}`},
		"rerank":      {"/v1/rerank", `{"model":"m","query":"q","documents":["%s"]}`},
		"score":       {"/v1/score", `{"model":"m","text_1":"q","text_2":"%s"}`},
		"pooling":     {"/pooling", `{"model":"m","input":"%s"}`},
		"tokenize":    {"/tokenize", `{"model":"m","prompt":"%s"}`},
		"other":       {"/generate", `{"x":"%s"}`},
		"no JSON":     {"/v1/chat/completions", `%s`},
	} {
		all[name] = &Request{Path: one[0], Body: []byte(strings.Replace(one[1], "%s", text, 1))}
	}
	all["nothing"] = &Request{Path: "/v1/models"}
	all["empty"] = &Request{Path: "/v1/chat/completions"}
	all["not shown"] = &Request{Path: "/v1/chat/completions", Unread: prompt.ReasonMode, Size: int64(4 * tokens)}
	all["cut"] = &Request{Path: "/v1/chat/completions", Partial: true, Size: int64(4 * tokens), Body: []byte(`{"model":"m","messages":[{"role":"system","content":"` + text[:2*tokens])}
	return all
}

// TestEveryShapeUnderEveryPolicy: kubernetes-sigs/gateway-api-inference-extension#2394. Each is picked and given back,
// alone and beside the others, whatever the policy looks at.
func TestEveryShapeUnderEveryPolicy(t *testing.T) {
	for _, balance := range []string{pick.PendingTokens, pick.Requests, pick.None} {
		for _, affinity := range []string{pick.PromptPrefix, pick.CacheKey, "consistent_hash(header:x-session)", pick.None} {
			for _, queue := range []string{ClassesDeadlines, Classes, FIFO, NoQueue} {
				for _, rule := range []string{BelowKnee, NoRule} {
					cfg := intent(func(c *Config) {
						c.Pick, c.Queue, c.Rule = pick.Config{BalanceOn: balance, Affinity: affinity}, queue, rule
						c.ToolsPosition = map[string]prompt.ToolsPosition{"m": prompt.ToolsFirst}
					})
					r := newRouter(3, cfg)
					var open []*Decision
					for name, q := range shapes(1, 500) {
						d := r.Route(at(0), q)
						if d.State != Picked || d.Choice.Load.Uncached < 1 {
							t.Errorf("%s, %s, %s, %s: %s is %v with %+v", balance, affinity, queue, rule, name, d.State, d.Choice.Load)
						}
						open = append(open, d)
					}
					for _, d := range open {
						d.Status = 200
						r.Done(at(1), d, Answered)
					}
					idle(t, r, at(1))
				}
			}
		}
	}
}

// TestSilentRequestsAreChargedNoAnswer: nothing is expected behind the prompt, neither on the replica nor at the gate, and
// what the engine never sees is not charged its prompt either.
func TestSilentRequestsAreChargedNoAnswer(t *testing.T) {
	silent := map[string]bool{"embeddings": true, "rerank": true, "score": true, "pooling": true, "tokenize": true}
	aside := map[string]bool{"count": true, "nothing": true, "empty": true}
	for name, q := range shapes(1, 500) {
		r := newRouter(1, Default())
		d := r.Route(at(0), q)
		l := d.Choice.Load
		if none := silent[name] || aside[name]; (l.Output == 0) != none || d.ticket.Tokens != l.Prompt+l.Output {
			t.Errorf("%s: %v tokens of answer are expected, %v at the gate", name, l.Output, d.ticket.Tokens)
		}
		if l.Aside != aside[name] || (l.Prompt == 0) != aside[name] || aside[name] && (l.Uncached != 1 || len(d.Prompt.Chain) != 0) {
			t.Errorf("%s: %+v", name, l)
		}
		if name == "embeddings" && l.Answers != 3 {
			t.Errorf("a list of 3 takes %v seats", l.Answers)
		}
		d.Status = 200
		r.Done(at(1), d, Answered)
		idle(t, r, at(1))
	}
}

// TestACountLeavesNothingInACache: unlike an embedding.
func TestACountLeavesNothingInACache(t *testing.T) {
	r := newRouter(1, Default())
	for i := range 2 {
		for _, name := range []string{"embeddings", "count", "nothing"} {
			d := r.Route(at(float64(i)), shapes(1, 500)[name])
			d.Status = 200
			r.Done(at(float64(i)+0.5), d, Answered)
		}
	}
	if d := r.Route(at(300), shapes(1, 500)["messages"]); d.Choice.Matched != 0 {
		t.Errorf("%d blocks match of what was only counted", d.Choice.Matched)
	}
	if d := r.Route(at(300), shapes(1, 500)["embeddings"]); d.Choice.Matched < 5 {
		t.Errorf("only %d blocks match of what was embedded", d.Choice.Matched)
	}
}

// TestAffinityOfACacheKey: requests of one key have one home, whatever they ask, and those without one have none.
func TestAffinityOfACacheKey(t *testing.T) {
	r := newRouter(6, intent(func(c *Config) { c.Pick.Affinity = pick.CacheKey }))
	home := map[string]string{}
	homes := map[string]bool{}
	none := map[string]bool{}
	for i := range 200 {
		key := fmt.Sprint("key ", i%20)
		q := shapes(i, 200)[[]string{"chat", "completions", "responses"}[i%3]]
		if i%4 > 0 {
			q.Body = []byte(strings.Replace(string(q.Body), "{", fmt.Sprintf(`{"prompt_cache_key":%q,`, key), 1))
		}
		d := r.Route(at(float64(i)), q)
		first := d.Choice.First.Endpoint
		if i%4 == 0 {
			none[first] = true
		} else if was := home[key]; was != "" && was != first {
			t.Errorf("%s was at %s and goes to %s", key, was, first)
		} else {
			home[key], homes[first] = first, true
		}
		d.Status = 200
		r.Done(at(float64(i)+0.9), d, Answered)
	}
	if len(homes) < 4 || len(none) < 4 {
		t.Errorf("homes %v; without a key %v", homes, none)
	}
}

// TestToolsPositionIsLive: a policy that is swapped holds from the next request on.
func TestToolsPositionIsLive(t *testing.T) {
	r := newRouter(1, Default())
	ask := func(tool string) *Decision {
		body := fmt.Sprintf(`{"model":"m","tools":[%q],"messages":[{"role":"system","content":%q},{"role":"user","content":"q"}]}`, words(7, 100)+tool, words(1, 1000))
		d := r.Route(at(0), &Request{Path: "/v1/chat/completions", Body: []byte(body)})
		d.Status = 200
		r.Done(at(0), d, Answered)
		return d
	}
	ask("a")
	if d := ask("b"); d.Choice.Matched < 14 {
		t.Errorf("%d blocks match behind the system text", d.Choice.Matched)
	}
	r.Configure(at(0), intent(func(c *Config) { c.ToolsPosition = map[string]prompt.ToolsPosition{"m": prompt.ToolsFirst} }))
	ask("c")
	if d := ask("d"); d.Choice.Matched > 2 {
		t.Errorf("%d blocks match where the tools come first", d.Choice.Matched)
	}
	err := intent(func(c *Config) {
		c.ToolsPosition = map[string]prompt.ToolsPosition{"n": "last", "m": ""}
	}).Validate()
	const want = "tools_position.m: \"\" is none of first, after_system, before_last_user\n" +
		"tools_position.n: \"last\" is none of first, after_system, before_last_user"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestAMediumTakesNoRoom: of a body that is one large image, a decision keeps the blocks of its chain and no more.
func TestAMediumTakesNoRoom(t *testing.T) {
	r := newRouter(1, Default())
	body := `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + strings.Repeat("iVBORw0K", 1<<20) + `"}}]}]}`
	if d := r.Route(at(0), &Request{Path: "/v1/chat/completions", Body: []byte(body)}); len(d.Prompt.Chain) != 12 || cap(d.Prompt.Chain) > 32 {
		t.Errorf("%d blocks in room for %d", len(d.Prompt.Chain), cap(d.Prompt.Chain))
	}
}

// TestACutBodyIsChargedItsSize: and matches what came of it.
func TestACutBodyIsChargedItsSize(t *testing.T) {
	r := newRouter(2, Default())
	whole := ask(1, 4000)
	d := r.Route(at(0), whole)
	d.Status = 200
	r.Done(at(1), d, Answered)
	cut := r.Route(at(2), &Request{Path: whole.Path, Body: whole.Body[:8000], Size: int64(len(whole.Body)), Partial: true})
	if l := cut.Choice.Load; cut.Choice.First != d.Choice.First || cut.Choice.Matched < 28 || l.Prompt < 4000 || l.Prompt > 4100 {
		t.Errorf("matched %d, load %+v", cut.Choice.Matched, l)
	}
}
