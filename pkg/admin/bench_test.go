package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/route"
)

func TestRecordAllocatesNothing(t *testing.T) {
	r := router("llm", 4)
	a := newAdmin(r)
	d := r.Route(time.Now(), &route.Request{Path: "/v1/chat/completions", Body: []byte(chatBody)})
	r.Done(time.Now(), d, route.Answered)
	d.Status, d.Served = 200, route.First
	if n := testing.AllocsPerRun(1000, func() { a.Record(d) }); n != 0 {
		t.Errorf("Record allocates %v times", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	r := router("llm", 8)
	a := newAdmin(r)
	d := r.Route(time.Now(), &route.Request{Path: "/v1/chat/completions", Body: []byte(chatBody)})
	r.Done(time.Now(), d, route.Answered)
	d.Status, d.Served = 200, route.First
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			a.Record(d)
		}
	})
}

// BenchmarkPage is the metrics page of a pool of 512 replicas.
func BenchmarkPage(b *testing.B) {
	h := newAdmin(router("llm", 512)).handler()
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
