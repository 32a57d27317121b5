package admin

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// busy is a router of one replica with one seat, which is taken, and requests held.
func busy(t *testing.T, held int) (r *route.Router, all []*route.Decision) {
	t.Helper()
	cfg, _ := pool.Default(pool.DefaultProfile)
	cfg.Seats = 1
	r = route.New(route.Default(), pool.New("llm", []string{"10.0.0.1:1"}, cfg))
	for range 1 + held {
		all = append(all, r.Route(time.Now(), &route.Request{Path: "/v1/chat/completions", Body: []byte(chatBody), Flow: "tenant"}))
	}
	return r, all
}

func TestDebugGate(t *testing.T) {
	r, all := busy(t, 10)
	if all[10].State != route.Held {
		t.Fatalf("state %v", all[10].State)
	}
	code, body := get(t, newAdmin(r), http.MethodGet, "/debug/gate")
	var got []route.GateStats
	if err := json.Unmarshal([]byte(body), &got); code != 200 || err != nil || len(got) != 1 || got[0].Pool != "llm" || len(got[0].Classes) != 2 {
		t.Fatalf("%d, %v: %s", code, err, body)
	}
	first, bulk := got[0].Classes[0], got[0].Classes[1]
	if first.Class != "interactive" || first.Held != 10 || first.Flows != 1 || first.HeldTokens <= 0 || len(first.Heads) != heads || bulk.Held != 0 || bulk.Heads == nil {
		t.Errorf("classes %s", body)
	}
	for _, h := range first.Heads {
		if h.Replica != "10.0.0.1:1" || h.Why != "seat" || h.Flow != "b1b170f5" || h.Left <= 0 || h.Left > 31 || h.Waited < 0 {
			t.Errorf("head %+v", h)
		}
	}
	if strings.Contains(body, "tenant") {
		t.Errorf("the tenant's name is shown: %s", body)
	}
}

// TestGateMetrics: predicted against actual wait, and the gate's gauges.
func TestGateMetrics(t *testing.T) {
	r, all := busy(t, 30)
	a := newAdmin(r)
	if got := values(scrape(t, a)); got["weir_held class=interactive pool=llm"] != 30 || got["weir_held_tokens class=interactive pool=llm"] <= 0 ||
		got["weir_gate_drain_tokens_per_second class=interactive pool=llm"] != 0 || got["weir_held class=bulk pool=llm"] != 0 {
		t.Errorf("with 30 held: %v", got)
	}
	now := time.Now()
	next := func(d *route.Decision) {
		now = now.Add(time.Second)
		r.Done(now, d, route.Answered)
		r.Release(now)
		a.Record(d)
	}
	for _, d := range all[:25] {
		next(d)
	}
	last := r.Route(now, &route.Request{Path: "/v1/chat/completions", Body: []byte(chatBody), Flow: "tenant"})
	if p := last.Predicted().Seconds(); p < 4 || p > 7 { // five wait, one goes each second
		t.Errorf("predicted %v s", p)
	}
	for _, d := range append(all[25:], last) {
		next(d)
	}
	got := values(scrape(t, a))
	if n := got["weir_gate_wait_ratio class=interactive pool=llm"]; n != 1 {
		t.Errorf("%v requests with a prediction", n)
	}
	if rate := got["weir_gate_drain_tokens_per_second class=interactive pool=llm"]; rate < 200 || rate > 400 { // a request's tokens
		t.Errorf("drains at %v tokens/s", rate)
	}
}
