package pool

import (
	"encoding/json"
	"testing"
)

// steady is a pool of one replica that is sent ten requests a second, each of 1000 plain tokens, half of them cached, and answers
// them in one with 101 tokens.
type steady struct {
	*Pool
	page Sample
	live []*Lease
}

// second is the page after one more second, which odd may change, and the next ten requests.
func (b *steady) second(now int, odd func(s *Sample)) {
	r, s := b.Replicas[0], &b.page
	s.At, s.Tokens, s.Prompt, s.Computed = at(float64(now)), s.Tokens+11_000, s.Prompt+10_000, s.Computed+5000
	s.TTFT = Summary{s.TTFT.Count + 10, s.TTFT.Sum + 5, true}
	s.InterToken = Summary{s.InterToken.Count + 1000, s.InterToken.Sum + 10, true}
	s.Hits = Summary{s.Hits.Count + 10_000, s.Hits.Sum + 5000, true}
	s.HasTokens, s.HasPrompt, s.HasComputed, s.HasAnswers = true, true, true, true
	s.Running, s.HasRunning, s.HasWaiting = 10, true, true
	for _, l := range b.live {
		b.End(s.At, l, Kind{Model: "m"}, true, false)
		l.Release(s.At, true)
		s.Answers, s.AnswerTokens = s.Answers+1, s.AnswerTokens+101
	}
	b.live = nil
	told := *s
	odd(&told)
	b.Observe(s.At, r, told)
	for range 10 {
		l := new(Lease)
		b.Arrived(s.At, false)
		b.Charge(s.At, l, r, Load{Prompt: 1000, Plain: 1000, Text: b.Text("m"), Uncached: 500, Output: 100})
		b.live = append(b.live, l)
	}
}

// TestOneJumpIsNotRemembered: a counter that jumps once, either way, or a gauge that no replica can have, changes nothing that is
// learned of many requests: it would be in it for thousands. All pages can be written.
func TestOneJumpIsNotRemembered(t *testing.T) {
	stays := func(f func(s *Sample)) func(now int, s *Sample) {
		return func(now int, s *Sample) {
			if now >= 300 {
				f(s)
			}
		}
	}
	once := func(f func(s *Sample)) func(now int, s *Sample) {
		return func(now int, s *Sample) {
			if now == 300 {
				f(s)
			}
		}
	}
	for name, odd := range map[string]func(now int, s *Sample){
		"prompts":           stays(func(s *Sample) { s.Prompt += 1e15 }),
		"tokens of answers": stays(func(s *Sample) { s.AnswerTokens += 1e15 }),
		"tokens of answers, back": func(now int, s *Sample) {
			if now < 300 {
				s.AnswerTokens += 1e9
			}
		},
		"first tokens, an epoch":     stays(func(s *Sample) { s.TTFT.Sum += 1.7e9 }),
		"first tokens, an hour each": stays(func(s *Sample) { s.TTFT.Sum += 36_000 }),
		"first tokens' count":        stays(func(s *Sample) { s.TTFT.Count += 1e15 }),
		"hits":                       stays(func(s *Sample) { s.Hits.Sum += 1e15 }),
		"gaps":                       stays(func(s *Sample) { s.InterToken.Count += 1e15 }),
		"gaps of nothing": func(now int, s *Sample) {
			switch {
			case now < 300:
				s.InterToken = Summary{float64(now), 0, true}
			case now == 300:
				s.InterToken = Summary{1000, 1e-320, true}
			default:
				s.InterToken = Summary{s.InterToken.Count - 299_000, s.InterToken.Sum - 3000, true}
			}
		},
		"running": once(func(s *Sample) { s.Running = 1e15 }),
		"waiting": func(now int, s *Sample) {
			if now == 300 || now == 301 {
				s.Waiting = 1e15
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := Default("8B")
			b := &steady{Pool: New("p", []string{"a"}, cfg)}
			for now := 1; now < 400; now++ {
				b.second(now, func(s *Sample) {
					odd(now, s)
				})
				if now < 300 {
					continue
				}
				if x := b.Text("m").Scale(); x < 0.9 || x > 1.1 {
					t.Errorf("%d s: a plain token has %.2f", now, x)
				}
				if x := b.OutputOf(Kind{Model: "m"}); !(x > 80 && x < 120) {
					t.Errorf("%d s: %.3g tokens of an answer", now, x)
				}
				if x := b.rest.mean(); x > 0.6 {
					t.Errorf("%d s: %.3g s beside the formula", now, x)
				}
				if x := b.Needed(at(float64(now))); x.Replicas != 1 && now > 310 {
					t.Errorf("%d s: %d replicas needed", now, x.Replicas)
				}
				r, n := b.Replicas[0], at(float64(now))
				if _, err := json.Marshal([]any{b.Knee(n), r.Estimates(n), r.Stats(n), b.Truth(), b.Outputs(n), b.Texts(n)}); err != nil {
					t.Errorf("%d s: %v", now, err)
				}
				if t.Failed() {
					break
				}
			}
		})
	}
}

// TestNoAnswerIsLearnedLongerThanAnyModel: whatever a replica tells of its memory and its answers, the answer that is expected
// takes an index no more blocks than a model can have it take: 16 million for each request stop weir.
func TestNoAnswerIsLearnedLongerThanAnyModel(t *testing.T) {
	cfg, _ := Default("8B")
	b := &steady{Pool: New("p", []string{"a"}, cfg)}
	for now := 1; now < 200; now++ {
		b.second(now, func(s *Sample) {
			s.KVTokens, s.HasSize = 1e15, true
			s.AnswerTokens *= 1e9
		})
		for _, l := range b.live {
			l.charged, l.begins = at(0), 0
		}
	}
	if x, kind := b.Output(), b.OutputOf(Kind{Model: "m"}); x > mostAnswer || kind > mostAnswer || kind < 1000 {
		t.Errorf("answers of %.3g tokens, and %.3g of the model, are expected", x, kind)
	}
}
