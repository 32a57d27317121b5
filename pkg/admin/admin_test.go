package admin

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weirproxy/weir/pkg/classify"
	"github.com/weirproxy/weir/pkg/pick"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/prompt"
	"github.com/weirproxy/weir/pkg/route"
)

const chatBody = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`

// router returns a router of a pool of n replicas.
func router(name string, n int) *route.Router {
	cfg, _ := pool.Default(pool.DefaultProfile)
	var endpoints []string
	for i := range n {
		endpoints = append(endpoints, fmt.Sprintf("10.0.0.%d:8000", i))
	}
	return route.New(route.Default(), pool.New(name, endpoints, cfg))
}

func newAdmin(routers ...*route.Router) *Admin {
	return New("127.0.0.1:0", routers, slog.New(slog.DiscardHandler))
}

// get serves one request and returns status and body.
func get(t *testing.T, a *Admin, method, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	a.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return w.Code, w.Body.String()
}

// scrape returns the metrics page, read by Prometheus' own parser.
func scrape(t *testing.T, a *Admin) map[string]*dto.MetricFamily {
	t.Helper()
	code, body := get(t, a, http.MethodGet, "/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if code != http.StatusOK || err != nil {
		t.Fatalf("/metrics: %d, %v", code, err)
	}
	return families
}

// values flattens weir's own series to "name label=value ..." -> value; a histogram counts its observations.
func values(families map[string]*dto.MetricFamily) map[string]float64 {
	all := map[string]float64{}
	for name, f := range families {
		if !strings.HasPrefix(name, "weir_") {
			continue
		}
		for _, m := range f.Metric {
			key := name
			for _, l := range m.Label {
				key += " " + l.GetName() + "=" + l.GetValue()
			}
			all[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// changed returns the series that differ between two pages, with the difference.
func changed(before, after map[string]float64) map[string]float64 {
	diff := map[string]float64{}
	for k, v := range after {
		if d := v - before[k]; d != 0 || !has(before, k) {
			diff[k] = d
		}
	}
	return diff
}

func has(m map[string]float64, k string) bool { _, ok := m[k]; return ok }

func TestRecordCountsARequest(t *testing.T) {
	r := router("llm", 2)
	a := newAdmin(r)
	before := values(scrape(t, a))
	now := time.Now()
	d := r.Route(now, &route.Request{Path: "/v1/chat/completions", Body: []byte(chatBody), Class: classify.Input{HeaderClass: "bulk"}})
	r.Done(now.Add(time.Second), d, route.Answered)
	d.Status, d.Served = 201, route.Second
	d.Choice.Cached, d.Choice.Load.Uncached = 192, 100
	a.Record(d)
	got := changed(before, values(scrape(t, a)))
	if owed := got["weir_gate_owed_tokens class=bulk pool=llm"]; owed >= 0 { // it had more than its share
		t.Errorf("bulk is owed %v tokens", owed)
	}
	delete(got, "weir_gate_owed_tokens class=bulk pool=llm")
	delete(got, "weir_pool_erlang_c_wait_seconds pool=llm")        // by the clock, as what follows
	for _, side := range []string{"live", "ended", "difference"} { // of Little's law: by the clock
		delete(got, "weir_little_"+side+" pool=llm")
	}
	want := map[string]float64{
		"weir_requests_total class=bulk outcome=answered pool=llm":           1,
		"weir_gate_wait_seconds class=bulk pool=llm":                         1,
		"weir_prompt_tokens pool=llm":                                        1,
		"weir_parse_total api=chat pool=llm reason=none":                     1,
		"weir_picks_total endpoint=" + d.Choice.First.Endpoint + " pool=llm": 1,
		"weir_matched_tokens_total pool=llm":                                 192,
		"weir_uncached_tokens_total pool=llm":                                100,
		"weir_served_total match=second pool=llm":                            1,
		"weir_responses_total code=2xx pool=llm":                             1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("one request changed\n%v\nwant\n%v", got, want)
	}
}

func TestRecordUnrouted(t *testing.T) {
	a := newAdmin(router("llm", 1))
	for _, o := range []route.Outcome{route.LeftBody, route.TooLarge, route.Failed} {
		before := values(scrape(t, a))
		a.Record(route.Unrouted("llm", time.Now(), o))
		got := changed(before, values(scrape(t, a)))
		if want := map[string]float64{"weir_requests_total class=none outcome=" + o.String() + " pool=llm": 1}; !maps.Equal(got, want) {
			t.Errorf("%v changed %v, want %v", o, got, want)
		}
	}
}

// TestNoClientStringBecomesALabel is what keeps the series bounded: hostile decisions add no series, keep the
// page valid, and are all counted.
func TestNoClientStringBecomesALabel(t *testing.T) {
	a := newAdmin(router("llm", 2), router("other", 1))
	before := values(scrape(t, a))
	hostile := []string{"", "x\ny", `"`, `\`, "\xff\xfe", strings.Repeat("k", 1024), "{evil=\"1\"}", "unknown", "none"}
	n := 0
	for i := range 2000 {
		s := fmt.Sprint(hostile[i%len(hostile)], i/len(hostile)%50)
		r := &pool.Replica{Endpoint: s}
		d := &route.Decision{
			Pool: s, Class: s, State: route.Picked, Outcome: route.Outcome(i % 256), Status: i*7 - 500, Served: route.Served(i % 256),
			Choice: pick.Choice{First: r, Cached: float64(-i), Load: pool.Load{Uncached: []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1}[i%4]}},
			Prompt: prompt.Prompt{Model: s, API: prompt.API(i % 256), Reason: prompt.Reason(i % 256), Tokens: -i},
			Wait:   time.Duration(math.MinInt64),
		}
		if i%2 == 0 {
			d.Pool = "llm"
		}
		a.Record(d)
		n++
	}
	after := values(scrape(t, a))
	if b, c := slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)); !slices.Equal(b, c) {
		t.Errorf("%d series became %d", len(b), len(c))
	}
	var requests, bad float64
	for k, v := range after {
		if strings.HasPrefix(k, "weir_requests_total ") {
			requests += v
		}
		if strings.Contains(k, "tokens_total ") && v != 0 {
			bad++
		}
	}
	if requests != float64(n) || bad != 0 {
		t.Errorf("%v of %d requests are counted, %v token counters spoilt", requests, n, bad)
	}
}

// TestSeriesExistFromTheStart: a rate over a series that appears with its first event misses that event.
func TestSeriesExistFromTheStart(t *testing.T) {
	all := values(scrape(t, newAdmin(router("llm", 2))))
	for _, class := range []string{"interactive", "bulk", "none"} {
		for _, o := range route.Outcomes() {
			if k := fmt.Sprintf("weir_requests_total class=%s outcome=%s pool=llm", class, o); !has(all, k) {
				t.Errorf("no %s", k)
			}
		}
	}
	for _, k := range []string{
		"weir_picks_total endpoint=10.0.0.1:8000 pool=llm", "weir_served_total match=other pool=llm", "weir_responses_total code=5xx pool=llm",
		"weir_parse_total api=other pool=llm reason=path", "weir_held class=bulk pool=llm", "weir_replica_leases endpoint=10.0.0.0:8000 pool=llm",
		"weir_requests_total class=none outcome=no_pool pool=unknown",
	} {
		if !has(all, k) {
			t.Errorf("no %s", k)
		}
	}
	if len(all) > 320 {
		t.Errorf("%d series for one pool of two", len(all))
	}
}

// TestClosedSetsAreComplete fails when a value is added elsewhere and would be counted as its neighbour here.
func TestClosedSetsAreComplete(t *testing.T) {
	names := map[string]bool{}
	for i := range 256 {
		names["api "+prompt.API(i).String()] = true
		names["reason "+prompt.Reason(i).String()] = true
	}
	for i, v := range apis {
		if int(v) != i {
			t.Errorf("API %v stands at %d", v, i)
		}
	}
	for i, v := range reasons {
		if int(v) != i {
			t.Errorf("reason %v stands at %d", v, i)
		}
	}
	for i, v := range serveds {
		if int(v) != i {
			t.Errorf("served %v stands at %d", v, i)
		}
	}
	if len(names) != len(apis)+len(reasons) {
		t.Errorf("package prompt has %d APIs and reasons, %d are known here", len(names), len(apis)+len(reasons))
	}
}

func TestReplicaMetrics(t *testing.T) {
	r := router("llm", 2)
	a := newAdmin(r)
	now := time.Now()
	d := r.Route(now, &route.Request{Path: "/v1/chat/completions", Body: []byte(chatBody)})
	r.Observe(now, "10.0.0.0:8000", pool.Sample{At: now.Add(-time.Minute), KV: 0.5, HasKV: true})
	r.Observe(now, "10.0.0.1:8000", pool.Sample{At: now, KV: 0.25, HasKV: true})
	got := values(scrape(t, a))
	picked := " endpoint=" + d.Choice.First.Endpoint + " pool=llm"
	if got["weir_replica_leases"+picked] != 1 || got["weir_replica_pending_tokens"+picked] <= 0 || got["weir_replica_below_knee"+picked] != 1 {
		t.Errorf("the picked replica's load is not shown: %v", got)
	}
	const first, second = " endpoint=10.0.0.0:8000 pool=llm", " endpoint=10.0.0.1:8000 pool=llm"
	if age := got["weir_replica_scrape_age_seconds"+first]; got["weir_replica_scrape_stale"+first] != 1 || age < 60 {
		t.Errorf("a scrape of a minute ago: age %v, stale %v", age, got["weir_replica_scrape_stale"+first])
	}
	if v := got["weir_replica_kv"+second]; got["weir_replica_scrape_stale"+second] != 0 && got["weir_replica_scrape_age_seconds"+second] < 3 || v < 0.25 || v > 0.26 {
		t.Errorf("a fresh scrape: KV %v, stale %v", v, got["weir_replica_scrape_stale"+second])
	}
	fresh := values(scrape(t, newAdmin(router("llm", 1))))
	if fresh["weir_replica_scrape_stale"+first] != 1 || has(fresh, "weir_replica_scrape_age_seconds"+first) {
		t.Error("a replica that was never scraped has an age, or is not stale")
	}
}

func TestSources(t *testing.T) {
	a := newAdmin(router("llm", 1))
	n := 0.0
	a.Gauges("weir_streams", "Open streams.", nil, func(emit Emit) { emit(n) })
	a.Counters("weir_scrapes_total", "Scrapes.", []string{"pool", "endpoint"}, func(emit Emit) {
		emit(3, "llm", "a:1")
		emit(4, "llm", "b:1")
	})
	n = 7
	f := scrape(t, a)
	got := values(f)
	if got["weir_streams"] != 7 || got["weir_scrapes_total endpoint=b:1 pool=llm"] != 4 || f["weir_scrapes_total"].GetType() != dto.MetricType_COUNTER {
		t.Errorf("sources give %v", got)
	}
	a.Gauges("weir_broken", "A fault of the caller's.", []string{"a"}, func(emit Emit) { emit(1) })
	if got = values(scrape(t, a)); got["weir_streams"] != 7 {
		t.Errorf("one bad source took the page along: %v", got)
	}
}
