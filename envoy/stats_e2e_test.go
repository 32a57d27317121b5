package envoy_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	check "github.com/weirproxy/weir/pkg/bootstrap"
	"github.com/weirproxy/weir/pkg/chain"
)

// series returns what Envoy shows to Prometheus of weir's names, by name and labels.
func (r *rig) series(t *testing.T) map[string]float64 {
	t.Helper()
	page, err := r.Get("/stats/prometheus?filter=^weir")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for line := range strings.Lines(string(page)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			all[strings.TrimPrefix(name, "envoy_weir_")+"}"] = v
		}
	}
	return all
}

// TestStatsLogger has the newest Envoy count what weir decides as examples/stats-logger.yaml says: every series has what
// weir itself knows of the requests, as far as Envoy's buckets tell.
func TestStatsLogger(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "examples", "stats-logger.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	logger := "          " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n          ") + "\n"
	r := startRig(t, find(t, envoy.Newest), rigOptions{edits: []string{atLog, logger + atLog}})
	t.Parallel() // most of the time is Envoy's pause between two merges
	for version, rules := range map[check.Version][]string{check.Oldest: {"newer-envoy"}, {Major: 1, Minor: 39}: nil} {
		if got := rulesOf(t, filepath.Join(r.Dir, "envoy.yaml"), version); !slices.Equal(got, rules) {
			t.Errorf("Envoy %v: weir check finds %v", version, got)
		}
	}
	r.serve(t, 2)
	var before map[string]float64
	eventually(t, "Envoy has merged its histograms", func() bool { // every 5 s
		before = r.series(t)
		return before["uncached_tokens_count{}"] > 0
	})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	body := `{"model": "m", "max_tokens": 9, "prompt": "` + strings.Repeat("words ", 40_000) + `"}`
	for range 2 { // the second finds the first's prompt cached, and waits until little enough of it is ahead
		r.begin(t, ctx, "/v1/completions?"+endless, body)
	}
	for r.leases() < 2*len(r.addrs) {
		r.stream(t, ctx, endless)
	}
	interactive, bulk := r.send(t, t.Context()), r.send(t, t.Context(), "x-weir-class", "bulk")
	eventually(t, "two are held", func() bool { return r.held() == 2 })
	time.Sleep(200 * time.Millisecond)
	leave()
	<-interactive
	<-bulk
	want := map[string]float64{}
	add := func(name, labels string, v float64) {
		if v > 0 {
			want[name+"_sum{"+labels+"}"] += v
			want[name+"_count{"+labels+"}"]++
		}
	}
	for _, e := range r.drainedEnds(t) {
		c, class := e.Choice, fmt.Sprintf("class=%q", e.Class)
		want[fmt.Sprintf(`requests{endpoint=%q,%s,decision="picked",code="200"}`, c.First.Endpoint, class)]++
		add("wait", class, float64(e.Wait.Microseconds())/1000)
		add("queue_depth", "", float64(e.Queued))
		add("saturation", "", c.View.Wait/c.View.Tau)
		add("backlog_tokens", "", c.View.Backlog)
		add("matched_tokens", "", float64(c.Matched*chain.BlockTokens))
		add("uncached_tokens", "", c.Load.Uncached)
	}
	var got map[string]float64
	eventually(t, "Envoy has the last", func() bool {
		got = r.series(t)
		return got["uncached_tokens_count{}"]-before["uncached_tokens_count{}"] == want["uncached_tokens_count{}"]
	})
	for name, v := range want {
		if is := got[name] - before[name]; math.Abs(is-v) > 0.1*v {
			t.Errorf("%s is %v, want %v", name, is, v)
		}
	}
	if len(want) < 16 {
		t.Errorf("the test's own requests have %v", want)
	}
	req := inChunks(t, r.front+"/v1/completions", bytes.NewReader(make([]byte, 32<<20+1))) // with a length weir itself refuses it
	if got, err := try(&http.Client{Timeout: patience}, req); err != nil || got.status != 413 {
		t.Fatalf("Envoy's own refusal: %d, %v", got.status, err)
	}
	const past = `requests{endpoint="",class="",decision="",code="413"}`
	eventually(t, "what Envoy itself refused has empty labels", func() bool { return r.series(t)[past] == 1 })
}
