package replica

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

const small = `{"prompt":"abcd","max_tokens":1}`

func setFault(t *testing.T, url, fault string) {
	t.Helper()
	if code, text := ask(t, url+"/fault", fault); code != 200 {
		t.Fatalf("%s: %d %s", fault, code, text)
	}
}

// fresh asks on a connection of its own, so that a cut one is not asked again.
func fresh(t *testing.T, url, body string, patience time.Duration) (int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	method := "POST"
	if body == "" {
		method = "GET"
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

func TestFailAndDrop(t *testing.T) {
	url, _ := start(t, nil)
	count := func() (failed, cut int) {
		for range 40 {
			code, err := fresh(t, url+"/v1/completions", small, time.Minute)
			switch {
			case err != nil:
				cut++
			case code == 500 || code == 503:
				failed++
			case code != 200:
				t.Errorf("status %d", code)
			}
		}
		return failed, cut
	}
	for _, c := range []struct {
		fault       string
		failed, cut int
	}{
		{`{}`, 0, 0},
		{`{"fail":0.25}`, 10, 0},
		{`{"fail":1,"fail_status":500}`, 40, 0},
		{`{"drop":0.5}`, 0, 20},
		{`{"drop":1}`, 0, 40},
		{`{"slow":1}`, 0, 0},
	} {
		setFault(t, url, c.fault)
		if failed, cut := count(); failed != c.failed || cut != c.cut {
			t.Errorf("%s: %d failed, %d cut", c.fault, failed, cut)
		}
	}
	setFault(t, url, `{"fail":1,"fail_status":500}`)
	if code, _ := fresh(t, url+"/v1/completions", small, time.Minute); code != 500 {
		t.Errorf("status %d instead of 500", code)
	}
	if code, _ := fresh(t, url+"/metrics", "", time.Minute); code != 200 {
		t.Errorf("metrics answer %d while requests fail", code)
	}
}

func TestBadFaultChangesNothing(t *testing.T) {
	url, _ := start(t, nil)
	setFault(t, url, `{"fail":0.5}`)
	for _, bad := range []string{`{"fail":2}`, `{"drop":-1}`, `{"slow":-1}`, `{"metrics":"x"}`, `{"fail_status":404}`, `{"unknown":1}`, `{`} {
		if code, _ := ask(t, url+"/fault", bad); code != 400 {
			t.Errorf("%s: %d", bad, code)
		}
	}
	if _, text := get(t, url+"/fault"); decode[Fault](t, text) != (Fault{Fail: 0.5}) {
		t.Errorf("fault is %s", text)
	}
}

// TestHang: nothing answers, running answers stand still, and both the clock and new requests go on after.
func TestHang(t *testing.T) {
	url, s := start(t, nil)
	running := make(chan int, 1)
	go func() {
		resp, err := http.Post(url+"/v1/completions", "", strings.NewReader(`{"prompt":"abcd","max_tokens":2000}`))
		if err != nil {
			running <- 0
			return
		}
		resp.Body.Close()
		running <- resp.StatusCode
	}()
	until(t, "tokens", func() bool { return stats(s).Generated > 10 })
	setFault(t, url, `{"hang":true}`)
	before := stats(s)
	for _, path := range []string{"/v1/completions", "/health", "/v1/embeddings"} {
		if code, err := fresh(t, url+path, small, 100*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %d %v", path, code, err)
		}
	}
	if after := stats(s); after != before {
		t.Errorf("the model went on: %+v, then %+v", before, after)
	}
	if code, err := fresh(t, url+"/metrics", "", time.Minute); code != 200 {
		t.Errorf("metrics: %d %v", code, err)
	}
	setFault(t, url, `{}`)
	if code, err := fresh(t, url+"/v1/completions", small, time.Minute); code != 200 {
		t.Errorf("after the hang: %d %v", code, err)
	}
	if code := <-running; code != 200 {
		t.Errorf("the request that the hang caught: %d", code)
	}
}

func TestSlow(t *testing.T) {
	url, s := start(t, nil)
	busy := func() time.Duration {
		before := stats(s)
		ask(t, url+"/v1/completions", `{"prompt":"abcd","max_tokens":50}`)
		return stats(s).Busy - before.Busy
	}
	normal := busy()
	setFault(t, url, `{"slow":3}`)
	if slow := busy(); slow < 3*normal-time.Microsecond || slow > 3*normal+time.Microsecond {
		t.Errorf("slow by 3: %v against %v", slow, normal)
	}
	setFault(t, url, `{}`)
	if again := busy(); again != normal {
		t.Errorf("healthy again: %v against %v", again, normal)
	}
}

func TestMetricsFault(t *testing.T) {
	url, _ := start(t, func(c *Config) { c.Fault.Metrics = "error" })
	if code, err := fresh(t, url+"/metrics", "", time.Minute); code != 500 {
		t.Errorf("error: %d %v", code, err)
	}
	setFault(t, url, `{"metrics":"hang"}`)
	if code, err := fresh(t, url+"/metrics", "", 100*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hang: %d %v", code, err)
	}
	if code, err := fresh(t, url+"/v1/completions", small, time.Minute); code != 200 {
		t.Errorf("a request meanwhile: %d %v", code, err)
	}
	setFault(t, url, `{}`)
	if code, err := fresh(t, url+"/metrics", "", time.Minute); code != 200 {
		t.Errorf("healthy again: %d %v", code, err)
	}
}

// TestRestart: requests are cut, the cache and the counters are gone, the start time moves.
func TestRestart(t *testing.T) {
	url, s := start(t, nil)
	long := `{"prompt":"` + strings.Repeat("word", 1000) + `","max_tokens":1}`
	began := func() float64 {
		_, page := get(t, url+"/metrics")
		return families(t, page)["process_start_time_seconds"].Metric[0].Gauge.GetValue()
	}
	cached := func() int {
		_, text := ask(t, url+"/v1/completions", long)
		return decode[answerBody](t, text).Usage.Details.Cached
	}
	cached()
	if n := cached(); n != 992 {
		t.Fatalf("warm: %d cached", n)
	}
	before := began()
	cut := make(chan error, 1)
	go func() {
		_, err := fresh(t, url+"/v1/completions", `{"prompt":"abcd","max_tokens":100000}`, time.Minute)
		cut <- err
	}()
	until(t, "running", func() bool { return stats(s).Running == 1 })
	if code, _ := ask(t, url+"/restart", ""); code != 200 {
		t.Fatalf("restart: %d", code)
	}
	if err := <-cut; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the running request ended with %v", err)
	}
	if st := stats(s); st.Queries != 0 || st.Running != 0 {
		t.Errorf("after the restart: %+v", st)
	}
	if n := cached(); n != 0 {
		t.Errorf("cold: %d cached", n)
	}
	if after := began(); after <= before {
		t.Errorf("start time %v, before %v", after, before)
	}
}
