package replica

import (
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/scrape"
)

// Everything that weir reads of a real page is on this server's, and counts what was asked of it: the same prompt twice.
func TestPageIsRead(t *testing.T) {
	url, _ := start(t, nil)
	prompt := strings.Repeat("all prompts begin alike and this one goes on for long ", 40)
	for range 2 {
		if code, answer := ask(t, url+"/v1/completions", `{"model":"tiny","prompt":"`+prompt+`","max_tokens":8,"ignore_eos":true}`); code != 200 {
			t.Fatalf("%d %s", code, answer)
		}
	}
	_, page := get(t, url+"/metrics")
	s, err := scrape.Parse(strings.NewReader(page), "text/plain; version=0.0.4; charset=utf-8")
	if err != nil {
		t.Fatal(err)
	}
	for name, has := range map[string]bool{
		"running": s.HasRunning, "waiting": s.HasWaiting, "kv": s.HasKV, "size": s.HasSize, "tokens": s.HasTokens, "answers": s.HasAnswers,
		"ttft": s.TTFT.Has, "inter-token": s.InterToken.Has, "queue": s.Queue.Has, "hits": s.Hits.Has, "preemptions": s.HasPreemptions, "started": s.HasStarted,
	} {
		if !has {
			t.Errorf("%s is unknown", name)
		}
	}
	if s.Answers != 2 || s.TTFT.Count != 2 || s.Queue.Count != 2 || s.TTFT.Sum <= 0 || s.InterToken.Count != s.AnswerTokens-2 || s.InterToken.Sum <= 0 {
		t.Errorf("of two requests: %+v", s)
	}
	if s.Hits.Sum <= 0 || s.Hits.Sum >= s.Hits.Count/2 || s.Tokens != s.Hits.Count+s.AnswerTokens {
		t.Errorf("%v of %v prompt tokens found, %v tokens in all", s.Hits.Sum, s.Hits.Count, s.Tokens)
	}
}
