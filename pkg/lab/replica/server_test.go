package replica

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
)

type answerBody struct {
	Choices []struct {
		Text         string
		Message      struct{ Content string }
		FinishReason string `json:"finish_reason"`
	}
	Usage usage
}

// TestPromptForms: a completion's prompt is text or token ids, one or many, and counts exactly.
func TestPromptForms(t *testing.T) {
	url, _ := start(t, nil)
	for _, c := range []struct {
		prompt          string
		tokens, choices int
	}{
		{`"12345678"`, 2, 1},
		{`"123456789"`, 3, 1},
		{`["12345678","1234"]`, 3, 2},
		{`[101,102,103]`, 3, 1},
		{`[[101,102,103],[104]]`, 4, 2},
	} {
		code, text := ask(t, url+"/v1/completions", `{"model":"tiny","max_tokens":2,"prompt":`+c.prompt+`}`)
		a := decode[answerBody](t, text)
		if code != 200 || len(a.Choices) != c.choices || a.Usage.Prompt != c.tokens || a.Usage.Completion != 2*c.choices {
			t.Errorf("%s: %d %s", c.prompt, code, text)
		}
	}
}

func TestAnswerLength(t *testing.T) {
	for _, c := range []struct {
		name, limit string
		capped      bool
		tokens      int
		reason      string
	}{
		{"default", ``, false, 20, "stop"},
		{"max_tokens", `,"max_tokens":7`, false, 7, "length"},
		{"above the default", `,"max_tokens":30`, false, 30, "length"},
		{"capped", `,"max_tokens":30`, true, 20, "stop"},
		{"max_completion_tokens", `,"max_tokens":3,"max_completion_tokens":5`, false, 5, "length"},
	} {
		url, _ := start(t, func(cfg *Config) { cfg.DefaultOutput, cfg.CapOutput = 20, c.capped })
		_, text := ask(t, url+"/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function"}]`+c.limit+`}`)
		a := decode[answerBody](t, text)
		if a.Usage.Completion != c.tokens || len(a.Choices[0].Message.Content) != 4*c.tokens || a.Choices[0].FinishReason != c.reason {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}

func TestRefusals(t *testing.T) {
	url, s := start(t, func(c *Config) { c.MaxModelLen = 100 })
	for _, c := range []struct{ name, path, body, param string }{
		{"no messages", "chat/completions", `{"model":"tiny"}`, "body.messages"},
		{"chat on completions", "completions", `{"messages":[{"role":"user","content":"x"}]}`, "body.prompt"},
		{"wrong type", "chat/completions", `{"messages":"hi"}`, "body.messages"},
		{"empty body", "completions", ``, "body.0"},
		{"max_tokens 0", "completions", `{"prompt":"x","max_tokens":0}`, "max_tokens"},
		{"n 0", "completions", `{"prompt":"x","n":0}`, "n"},
		{"n too large", "completions", `{"prompt":["x","y"],"n":1000}`, "n"},
		{"prompt too long", "completions", `{"prompt":"` + strings.Repeat("x", 400) + `"}`, "input_tokens"},
		{"answer too long", "completions", `{"prompt":"` + strings.Repeat("x", 200) + `","max_tokens":51}`, "input_tokens"},
		{"prompt a number", "completions", `{"prompt":7}`, "prompt"},
		{"prompt empty", "completions", `{"prompt":""}`, "prompt"},
	} {
		code, text := ask(t, url+"/v1/"+c.path, c.body)
		e := decode[map[string]struct {
			Message, Type, Param string
			Code                 int
		}](t, text)["error"]
		if code != 400 || e.Code != 400 || e.Param != c.param || e.Message == "" || e.Type == "" {
			t.Errorf("%s: %d %s", c.name, code, text)
		}
	}
	if code, text := ask(t, url+"/v1/completions", `{"prompt":"`+strings.Repeat("x", 200)+`","max_tokens":50}`); code != 200 {
		t.Errorf("an answer that just fits: %d %s", code, text)
	}
	if st := stats(s); st.Finished != 1 || st.Running+st.Waiting+st.Arriving != 0 {
		t.Errorf("refused requests reached the model: %+v", st)
	}
}

// TestConversationIsCached: the next turn of a chat, which sends the answer back, finds prompt and answer.
func TestConversationIsCached(t *testing.T) {
	url, s := start(t, nil)
	turn := `{"role":"system","content":"` + strings.Repeat("be brief ", 300) + `"},{"role":"user","content":"hello"}`
	_, text := ask(t, url+"/v1/chat/completions", `{"max_tokens":200,"messages":[`+turn+`]}`)
	first := decode[answerBody](t, text)
	reply := first.Choices[0].Message.Content
	_, text = ask(t, url+"/v1/chat/completions", `{"max_tokens":1,"messages":[`+turn+`,{"role":"assistant","content":"`+reply+`"},{"role":"user","content":[{"type":"text","text":"more"}]}]}`)
	second := decode[answerBody](t, text)
	// All that the first turn computed, prompt and answer less its last token, in full blocks.
	if want := (first.Usage.Total - 1) / 16 * 16; second.Usage.Details.Cached != want || want < 800 {
		t.Errorf("cached %d of %d, want %d", second.Usage.Details.Cached, second.Usage.Prompt, want)
	}
	_, text = ask(t, url+"/v1/chat/completions", `{"max_tokens":1,"cache_salt":"other","messages":[`+turn+`]}`)
	if salted := decode[answerBody](t, text); salted.Usage.Details.Cached != 0 {
		t.Errorf("a salted prompt hit %d tokens", salted.Usage.Details.Cached)
	}
	if st := stats(s); st.Hits != int64(second.Usage.Details.Cached) || st.KVUsed != 0 {
		t.Errorf("%+v", st)
	}
}

// TestHeadersComeBeforeTheFirstToken, as vLLM's do: headers are not TTFT.
func TestHeadersComeBeforeTheFirstToken(t *testing.T) {
	url, _ := start(t, func(c *Config) { c.Speed = 1 })
	begin := time.Now()
	resp := post(t, url+"/v1/completions", `{"prompt":"`+strings.Repeat("word", 20_000)+`","max_tokens":1,"stream":true}`)
	headers := time.Since(begin)
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	first := time.Since(begin)
	if model := 15*time.Millisecond + 3*6_904_400 + 20_000*27_800; first < model {
		t.Errorf("first token after %v, sooner than the model's %v", first, model)
	}
	if headers > first/2 {
		t.Errorf("headers after %v, first token after %v", headers, first)
	}
}

// TestSpeed: model time runs faster than the wall; metrics are in wall time.
func TestSpeed(t *testing.T) {
	url, _ := start(t, func(c *Config) { c.Speed = 100 })
	begin := time.Now()
	ask(t, url+"/v1/completions", `{"prompt":"`+strings.Repeat("word", 100_000)+`","max_tokens":100}`) // 4.4 s of model time
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("took %v of wall time", took)
	}
	_, page := get(t, url+"/metrics")
	h := families(t, page)["vllm:e2e_request_latency_seconds"].Metric[0].Histogram
	if h.GetSampleCount() != 1 || h.GetSampleSum() < 0.035 || h.GetSampleSum() > 0.055 {
		t.Errorf("%d requests took %v wall seconds in all", h.GetSampleCount(), h.GetSampleSum())
	}
}

// TestLeavingAborts: a client that goes away frees its sequence at once, streamed or not, running or held.
func TestLeavingAborts(t *testing.T) {
	for _, stream := range []bool{true, false} {
		url, s := start(t, func(c *Config) { c.Speed = 1 })
		ctx, leave := context.WithCancel(t.Context())
		body := fmt.Sprintf(`{"prompt":"abc","max_tokens":100000,"n":3,"stream":%v}`, stream)
		req, _ := http.NewRequestWithContext(ctx, "POST", url+"/v1/completions", strings.NewReader(body))
		go func() {
			if resp, err := http.DefaultClient.Do(req); err == nil {
				defer resp.Body.Close()
				bufio.NewReader(resp.Body).WriteTo(new(bytes.Buffer))
			}
		}()
		until(t, "running", func() bool { st := stats(s); return st.Running == 3 && st.Generated > 3 })
		leave()
		until(t, "aborted", func() bool { st := stats(s); return st.Running == 0 && st.Aborted == 3 && st.KVUsed == 0 })
		_, page := get(t, url+"/metrics")
		if !strings.Contains(page, `vllm:request_success_total{engine="0",finished_reason="abort",model_name="tiny"} 3.0`) {
			t.Error("aborts are not counted")
		}
	}
}

// TestManyStreams: every stream gets its whole answer, whatever runs beside it.
func TestManyStreams(t *testing.T) {
	url, s := start(t, func(c *Config) { c.Profile.KVTokens, c.Profile.MaxSeqs = 8000, 16 })
	done := make(chan error)
	const streams = 60
	for i := range streams {
		go func() {
			n := 1 + i*5
			resp, err := http.Post(url+"/v1/completions", "", strings.NewReader(fmt.Sprintf(`{"prompt":"%03d %s","max_tokens":%d,"stream":true}`, i, strings.Repeat("word", i*20), n)))
			if err != nil {
				done <- err
				return
			}
			defer resp.Body.Close()
			got := ""
			for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
				if _, rest, ok := strings.Cut(sc.Text(), `"text":"`); ok {
					text, _, _ := strings.Cut(rest, `"`)
					got += text
				}
			}
			if want := string(answer(nil, 0, n)); got != want {
				err = fmt.Errorf("stream %d gave %d of %d tokens", i, len(got)/4, n)
			}
			done <- err
		}()
	}
	for range streams {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if st := stats(s); st.Finished != streams || st.KVUsed != 0 || st.Preemptions == 0 {
		t.Errorf("%+v", st)
	}
}

// TestBytesAreEchoed on every path: by the answer where vLLM has none, and by /debug/last.
func TestBytesAreEchoed(t *testing.T) {
	url, _ := start(t, nil)
	rng := rand.NewChaCha8([32]byte{})
	for _, path := range []string{"/rerank", "/v1/audio/transcriptions", "/", "//v1/x%20y?a=b", "/v1/chat/completions"} {
		for _, n := range []int{0, 1, 64 << 10, 10 << 20} {
			body := make([]byte, n)
			rng.Read(body)
			sum := sha256.Sum256(body)
			want := digest{hex.EncodeToString(sum[:]), n}
			req, _ := http.NewRequest("POST", url+path, bytes.NewReader(body))
			req.Header.Set("x-test", "seen")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text := read(t, resp.Body)
			resp.Body.Close()
			if path != "/v1/chat/completions" {
				if got := decode[digest](t, text); got != want || resp.StatusCode != 200 {
					t.Errorf("%s %d: %d %s", path, n, resp.StatusCode, text)
				}
			}
			_, text = get(t, url+"/debug/last")
			last := decode[struct {
				digest
				Path    string
				Headers http.Header
			}](t, text)
			if last.digest != want || last.Path != path || last.Headers.Get("x-test") != "seen" || resp.Header.Get("x-replica") != "r1" {
				t.Errorf("%s %d: last is %s", path, n, text)
			}
		}
	}
}

func TestBodyLimit(t *testing.T) {
	url, _ := start(t, nil)
	for _, path := range []string{"/v1/completions", "/other"} {
		resp, err := http.Post(url+path, "", struct{ *bytes.Reader }{bytes.NewReader(make([]byte, maxBody+1))})
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

func TestConfigRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"no model":     func(c *Config) { c.Model = "" },
		"no speed":     func(c *Config) { c.Speed = 0 },
		"no memory":    func(c *Config) { c.Profile.KVTokens = 0 },
		"bad fault":    func(c *Config) { c.Fault.Drop = 2 },
		"bad default":  func(c *Config) { c.DefaultOutput = -1 },
		"bad metrics":  func(c *Config) { c.Fault.Metrics = "off" },
		"bad status":   func(c *Config) { c.Fault.FailStatus = 200 },
		"bad slowness": func(c *Config) { c.Fault.Slow = -1 },
	} {
		cfg := Config{Model: "m", Speed: 1}
		cfg.Profile.KVTokens, cfg.Profile.MaxBatch, cfg.Profile.MaxSeqs, cfg.Profile.Base = 1000, 100, 10, 1
		if _, err := New(cfg); err != nil {
			t.Fatal(err)
		}
		spoil(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
