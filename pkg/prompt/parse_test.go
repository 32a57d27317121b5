package prompt

import (
	"slices"
	"testing"

	"github.com/weirproxy/weir/pkg/chain"
)

const (
	chatPath        = "/v1/chat/completions"
	completionsPath = "/v1/completions"
	messagesPath    = "/v1/messages"
)

// parse reads one body with a new Parser. A block of zeros is written after a prompt that was read, so that the
// chain tells its last bytes too, which make no full block of their own.
func parse(path, body string) Prompt { return parseAt(path, "", body) }

// parseAt is parse with the tools of every model at a position of their own.
func parseAt(path string, at ToolsPosition, body string) Prompt {
	var p Parser
	var dst, model Prompt
	p.Parse(&model, Input{Path: path, Body: []byte(body)})
	p.Parse(&dst, Input{Path: path, Body: []byte(body), Tools: map[string]ToolsPosition{model.Model: at}})
	if dst.Reason == ReasonNone && !p.truncated {
		p.enc.hasher.Write(make([]byte, chain.BlockBytes))
		dst.Chain = slices.Clone(p.enc.hasher.Chain())
	}
	return dst
}

// chat is a chat body of model m with the given messages.
func chat(messages string) string { return `{"model":"m","messages":[` + messages + `]}` }

// sameChain and otherChain read both bodies at path and compare whole streams.
func sameChain(t *testing.T, path, a, b string) {
	t.Helper()
	pa, pb := parse(path, a), parse(path, b)
	if pa.Reason != ReasonNone || pb.Reason != ReasonNone {
		t.Fatalf("not read: %v, %v %q, %q", pa.Reason, pb.Reason, a, b)
	}
	if !slices.Equal(pa.Chain, pb.Chain) || pa.Tokens != pb.Tokens {
		t.Errorf("chains differ: %q, %q", a, b)
	}
}

func otherChain(t *testing.T, path, a, b string) {
	t.Helper()
	pa, pb := parse(path, a), parse(path, b)
	if pa.Reason != ReasonNone || pb.Reason != ReasonNone {
		t.Fatalf("not read: %v, %v %q, %q", pa.Reason, pb.Reason, a, b)
	}
	if slices.Equal(pa.Chain, pb.Chain) {
		t.Errorf("chains are equal: %q, %q", a, b)
	}
}
