package route

import (
	"fmt"
	"testing"
)

// smg-project/smg#2420, llm-d/llm-d-router#1389: no hit is counted across tenants that the replicas' caches keep apart. All go
// to one replica, so that a false match has nowhere to hide.
func TestNoHitAcrossPartitions(t *testing.T) {
	r := newRouter(1, Default())
	prompt := words(1, 3000)
	bodies := []string{
		`{"model":"base","prompt":%q}`,
		`{"model":"base","cache_salt":"a","prompt":%q}`,
		`{"prompt":%q,"cache_salt":"b","model":"base"}`,
		`{"model":"adapter","prompt":%q}`,
		`{"cache_salt":"a","prompt":%q,"model":"adapter"}`,
	}
	for round := range 2 {
		for i, body := range bodies {
			d := r.Route(epoch, &Request{Path: "/v1/completions", Body: fmt.Appendf(nil, body, prompt)})
			if round == 0 && (d.Choice.Matched != 0 || d.Choice.Load.Uncached != d.Choice.Load.Prompt) {
				t.Errorf("tenant %d, the first time: %d blocks matched", i, d.Choice.Matched)
			}
			if round == 1 && d.Choice.Matched < 40 {
				t.Errorf("tenant %d, the second time: only %d blocks matched", i, d.Choice.Matched)
			}
			d.Status = 200
			r.Done(epoch, d, Answered)
		}
	}
}
