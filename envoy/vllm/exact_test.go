//go:build vllm

package vllm

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

var sizeLabel = regexp.MustCompile(`vllm:cache_config_info{.*kv_cache_size_tokens="(\d+)"`)

// sizes wants the size of the KV cache from vLLM's labels, and not the profile's.
func sizes(t *testing.T, r *rig) {
	for _, s := range r.vllms {
		m := sizeLabel.FindStringSubmatch(s.page(t))
		if m == nil {
			t.Fatal("no size in vLLM's labels")
		}
		if told, _ := strconv.ParseFloat(m[1], 64); told != kvSize || r.of(t, s).KVTokens != told {
			t.Errorf("%s: %v tokens of KV in weir, %v in vLLM's labels, %d by its flags", s.name, r.of(t, s).KVTokens, told, kvSize)
		}
	}
}

var random = rand.New(rand.NewPCG(1, 2))

// ids is a prompt of n random token ids, without the first, which ends a text.
func ids(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = 1 + random.IntN(2047)
	}
	return all
}

// tokenIDs needs no estimate of what a text is in tokens: all but the rounding to blocks must be exact.
func tokenIDs(t *testing.T, r *rig) {
	for _, n := range []int{1, 31, 32, 33, 63, 64, 65, 500, 3000, 12000} {
		prompt := ids(n)
		first := r.must(t, question{prompt: prompt, answer: 8})
		second := r.must(t, question{prompt: prompt, answer: 8, stream: true})
		if first.Weir.number("matched_tokens") != 0 || first.usage.Details.Cached != 0 {
			t.Errorf("%d new tokens: %v matched, %d cached", n, first.Weir.number("matched_tokens"), first.usage.Details.Cached)
		}
		cachedAsMatched(t, second)
		if n >= 500 && (second.Served != first.Served || second.usage.Details.Cached < n-block) {
			t.Errorf("%d tokens again: %s after %s, %d cached", n, second.Served, first.Served, second.usage.Details.Cached)
		}
		longer := append(append([]int{}, prompt...), ids(n/3+1)...)
		cachedAsMatched(t, r.must(t, question{prompt: longer, answer: 8}))
	}
	list := [][]int{ids(700), ids(800), ids(900)}
	if a := r.must(t, question{prompt: list, answer: 8}); a.Weir.number("prompt_tokens") != 2400 || a.usage.Prompt != 2400 {
		t.Errorf("three prompts of 2,400 tokens are %v for weir, %d for vLLM", a.Weir.number("prompt_tokens"), a.usage.Prompt)
	}
	prompt := ids(2000)
	for i, salt := range []string{"", "a", "a", "b"} {
		a := r.must(t, question{prompt: prompt, salt: salt, answer: 8})
		if cachedAsMatched(t, a); (a.usage.Details.Cached > 0) != (i == 2) {
			t.Errorf("salt %q: %d cached", salt, a.usage.Details.Cached)
		}
	}
}

// cachedAsMatched wants vLLM to have found in its cache what weir expected there, but for a block of weir's: it rounds to
// these, and vLLM to its own, less one if that is all of the prompt. Only for prompts of token ids.
func cachedAsMatched(t *testing.T, a *answer) {
	t.Helper()
	cachedNear(t, a, chain.BlockTokens)
}

// cachedNear is cachedAsMatched but for so many tokens.
func cachedNear(t *testing.T, a *answer, off float64) {
	t.Helper()
	if a.Weir.number("prompt_tokens") != float64(a.usage.Prompt) {
		t.Errorf("request %d: %v prompt tokens for weir, %d for vLLM", a.id, a.Weir.number("prompt_tokens"), a.usage.Prompt)
	}
	if matched := a.Weir.number("matched_tokens"); math.Abs(matched-float64(a.usage.Details.Cached)) > off {
		t.Errorf("request %d of %d tokens: %v matched, %d cached", a.id, a.usage.Prompt, matched, a.usage.Details.Cached)
	}
}

// corpus is the texts that the tokenizer was made from.
var corpus = func() string {
	var all strings.Builder
	for _, pattern := range []string{"README.md", "DESIGN.md", "docs/*.md"} {
		names, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, name := range names {
			text, _ := os.ReadFile(name)
			all.Write(text)
		}
	}
	return all.String()
}()

// document is a text of its own from its first line on, of some bytes.
func document(number, bytes int) string {
	from := number * 9973 % len(corpus)
	return "Document " + strconv.Itoa(number) + ". " + strings.Repeat(corpus[from:]+corpus[:from], 1+bytes/len(corpus))[:bytes]
}

// matchedBytes is the bytes of a prompt that weir matched, whole blocks of its chain. Its tokens are scaled by what it has learned
// of the texts, blocks as the whole prompt.
func matchedBytes(a *answer, prompt string) int {
	share := a.Weir.number("matched_tokens") / a.Weir.number("prompt_tokens")
	return int(math.Round(share*float64(len(prompt))/chain.BlockBytes)) * chain.BlockBytes
}

// texts asks questions about documents. How many tokens a matched text is, vLLM's tokenizer tells.
func texts(t *testing.T, r *rig) {
	for i := range 6 {
		text := document(i, 4000*(i+1))
		for j := range 4 {
			prompt := text + "\nQuestion " + strconv.Itoa(j) + ": what is a weir?"
			a := r.must(t, question{prompt: prompt, answer: 8 * (j + 1), stream: j%2 == 1})
			matched := matchedBytes(a, prompt)
			least := r.vllms[0].tokens(t, prompt[:matched]) - block
			most := r.vllms[0].tokens(t, prompt[:min(matched+chain.BlockBytes, len(prompt))])
			if cached := a.usage.Details.Cached; cached < least-1 || cached > most+1 { // one: of a cut in the midst of a token
				t.Errorf("request %d: %d bytes are matched, %d to %d tokens; %d are cached", a.id, matched, least, most, cached)
			}
			if ratio := a.Weir.number("prompt_tokens") / float64(a.usage.Prompt); ratio < 0.5 || ratio > 2 {
				t.Errorf("request %d: %v prompt tokens for weir, %d for vLLM", a.id, a.Weir.number("prompt_tokens"), a.usage.Prompt)
			}
			if (j == 0) != (a.usage.Details.Cached == 0) || (j == 0) != (matched == 0) {
				t.Errorf("document %d, question %d: %d bytes matched, %d tokens cached", i, j, matched, a.usage.Details.Cached)
			}
		}
	}
	for i, text := range []string{document(10, 9000), strings.Repeat("Größe überall, naïve café, 日本語, \u2028 \"quoted\" \\ 🎉\n", 150)} {
		for j := range 3 { // as chats, whose parts weir frames otherwise than vLLM's template
			a := r.must(t, question{chat: []message{{"system", text}, {"user", "Question " + strconv.Itoa(j)}}, answer: 8, stream: j%2 == 1})
			matched, cached := a.Weir.number("matched_tokens")/a.Weir.number("prompt_tokens"), float64(a.usage.Details.Cached)/float64(a.usage.Prompt)
			if math.Abs(matched-cached) > 0.05 || (j > 0) != (cached > 0.9) {
				t.Errorf("chat %d, question %d: %.3f matched, %.3f cached", i, j, matched, cached)
			}
		}
	}
}
