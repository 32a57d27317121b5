package envoy_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/route"
)

// TestDeadReplicas closes one replica of four under load, and then a second: nobody listens there any more. Envoy's
// retry takes weir's second choice, and weir picks the dead ones no more. weir reads no metrics here: the answers alone
// tell.
func TestDeadReplicas(t *testing.T) {
	path := find(t, envoy.Newest)
	eachMode(t, path, rigOptions{}, func(t *testing.T, r *rig) {
		r.serve(t, 0)
		r.circuit(t)
		var dead []string
		for _, most := range []float64{0.01, 0.02} { // of the requests may fail
			stop := r.load(t)
			time.Sleep(500 * time.Millisecond)
			r.backends[len(dead)].CloseClientConnections()
			r.backends[len(dead)].Close()
			dead = append(dead, r.addrs[len(dead)])
			closed := time.Now()
			time.Sleep(1500 * time.Millisecond)
			sent, failed := stop()
			var picks, onDead, retried int
			for _, e := range r.take() {
				if e.Served == route.Second {
					retried++
				}
				if e.Arrived.Before(closed) {
					continue
				}
				if picks++; slices.Contains(dead, e.Choice.First.Endpoint) {
					onDead++
				}
			}
			t.Logf("%d of 4 dead: %d requests, %d fail, %d retried, %d of %d picks on a dead one", len(dead), sent, failed, retried, onDead, picks)
			if sent < 100 || float64(failed) > most*float64(sent) {
				t.Errorf("%d of 4 dead: %d of %d requests fail", len(dead), failed, sent)
			}
			if float64(onDead) > 0.05*float64(picks) {
				t.Errorf("%d of 4 dead: %d of %d picks are on a dead one", len(dead), onDead, picks)
			}
			if retried == 0 {
				t.Error("no request was retried: the replica died unnoticed")
			}
		}
		stats, err := r.Stats("cluster.replicas.upstream_rq_retry")
		if err != nil || stats["cluster.replicas.upstream_rq_retry"] == 0 || stats["cluster.replicas.upstream_rq_retry_overflow"] != 0 {
			t.Errorf("retries: %v, %v", stats, err)
		}
	})
}

// circuit holds that Envoy has the bootstrap's breakers: its own default allows three retries at once.
func (r *rig) circuit(t *testing.T) {
	t.Helper()
	page, err := r.Get("/clusters")
	if err != nil {
		t.Fatal(err)
	}
	if want := "replicas::default_priority::max_retries::1280"; !strings.Contains(string(page), want) {
		t.Errorf("no %s in /clusters", want)
	}
}

// load sends requests, some at once, until stop, which returns how many there were and how many failed.
func (r *rig) load(t *testing.T) (stop func() (sent, failed int)) {
	t.Helper()
	var mu sync.Mutex
	var sent, failed int
	done := make(chan struct{})
	var all sync.WaitGroup
	client := &http.Client{Timeout: patience}
	for worker := range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond):
				}
				body := fmt.Sprintf(`{"model": "m", "prompt": "request %d of worker %d"}`, i, worker)
				resp, err := client.Post(r.front+"/v1/completions", "application/json", strings.NewReader(body))
				ok := err == nil && resp.StatusCode == http.StatusOK
				if err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				mu.Lock()
				if sent++; !ok {
					failed++
				}
				mu.Unlock()
			}
		})
	}
	return func() (int, int) {
		close(done)
		all.Wait()
		r.drained(t)
		return sent, failed
	}
}

// drained waits until weir holds nothing, and forgets nothing.
func (r *rig) drained(t *testing.T) {
	t.Helper()
	eventually(t, "weir holds nothing", func() bool { return r.Server.Stats().Streams == 0 && r.leases() == 0 })
}
