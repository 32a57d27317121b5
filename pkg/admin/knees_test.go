package admin

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/weirproxy/weir/pkg/route"
)

// The pages of what is learned and of the knees have an element for each pool and replica from the start.
func TestLearnedPages(t *testing.T) {
	a := newAdmin(router("llm", 2), router("other", 1))
	read := func(path string, into any) {
		t.Helper()
		w := httptest.NewRecorder()
		a.handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		body, err := io.ReadAll(w.Body)
		if err != nil || w.Code != 200 {
			t.Fatalf("%s: %d, %v", path, w.Code, err)
		}
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatalf("%s: %v\n%s", path, err, body)
		}
	}
	var e []route.Estimates
	if read("/debug/estimates", &e); len(e) != 2 || e[0].Pool != "llm" || len(e[0].Replicas) != 2 || e[0].Own != 1 || e[0].Replicas[0].PromptToken.Value <= 0 {
		t.Errorf("estimates: %+v", e)
	}
	var k []route.Knee
	if read("/debug/knee", &k); len(k) != 2 || k[0].Pool != "llm" || len(k[0].Replicas) != 2 || k[0].Needed.Replicas != 1 || k[0].Replicas[0].Tau <= 0 {
		t.Errorf("knees: %+v", k)
	}
	got := values(scrape(t, a))
	for _, name := range []string{"weir_pool_own", "weir_pool_replicas_needed", "weir_pool_gate_wait_seconds"} {
		if !has(got, name+" pool=llm") {
			t.Errorf("no %s", name)
		}
	}
	for _, name := range []string{"step_seconds", "context_token_seconds", "prompt_token_seconds", "slow", "slow_spread", "step_error", "step_samples_total", "saturation", "tau_seconds"} {
		if k := "weir_replica_" + name + " endpoint=10.0.0.1:8000 pool=llm"; !has(got, k) {
			t.Errorf("no %s", k)
		}
	}
}
