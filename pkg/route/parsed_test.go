package route

import (
	"reflect"
	"testing"

	"github.com/weirproxy/weir/pkg/prompt"
)

// TestParsed: a request that comes parsed is routed like its body, and its body is not looked at.
func TestParsed(t *testing.T) {
	cfg := Default()
	whole, parsed := newRouter(4, cfg), newRouter(4, cfg)
	for i := range 20 {
		q := chat(words(1, 300), words(i%5, 300))
		want := whole.Route(epoch, q)
		p := want.Prompt
		got := parsed.Route(epoch, &Request{Path: "/nothing", Body: []byte("{"), Parsed: &p})
		if !reflect.DeepEqual(got.Prompt, want.Prompt) || got.Prompt.API != prompt.APIChat {
			t.Fatalf("prompt %+v, want %+v", got.Prompt, want.Prompt)
		}
		if got.State != want.State || got.Choice.Cost != want.Choice.Cost || got.Choice.First.Slot != want.Choice.First.Slot {
			t.Errorf("request %d: slot %d at %v, want %d at %v", i, got.Choice.First.Slot, got.Choice.Cost, want.Choice.First.Slot, want.Choice.Cost)
		}
	}
}
