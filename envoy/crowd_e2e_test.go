package envoy_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// asked is a request of a crowd, and what came of it.
type asked struct {
	hash [sha256.Size]byte // of its body
	resp *http.Response
	text string // of the answer; empty while that has no end
	err  error
}

// crowd sends n requests of a class at once, each with a body of its own: over HTTP/2, which takes few connections. An
// answer that is a stream of events is not read.
func (r *rig) crowd(t *testing.T, n int, class, query string) (ends <-chan asked, hashes map[[sha256.Size]byte]int) {
	t.Helper()
	all := make(chan asked, n)
	hashes = map[[sha256.Size]byte]int{}
	for i := range n {
		body := fmt.Sprintf(`{"model": "m", "prompt": "number %d of class %s", "max_tokens": 16}`, i, class)
		req := newRequest(t, "POST", r.front+"/v1/completions?"+query, body)
		req.Header.Set("x-weir-class", class)
		a := asked{hash: sha256.Sum256([]byte(body))}
		hashes[a.hash] = 0
		go func() {
			if a.resp, a.err = http2Client.Do(req); a.err == nil && a.resp.Header.Get("content-type") != "text/event-stream" {
				var text []byte
				text, a.err = io.ReadAll(a.resp.Body)
				a.text = string(text)
				a.resp.Body.Close()
			}
			all <- a
		}()
	}
	t.Cleanup(http2Client.CloseIdleConnections)
	return all, hashes
}

// status of the answer; 0: none came.
func (a asked) status() int {
	if a.err != nil {
		return 0
	}
	return a.resp.StatusCode
}

// code is that of the answer's error object.
func (a asked) code() string {
	var object struct{ Error struct{ Code string } }
	if err := json.Unmarshal([]byte(a.text), &object); err != nil {
		return err.Error()
	}
	return object.Error.Code
}

// arrived counts how often each body has reached a backend since the last call, and returns the sum.
func (r *rig) arrived(hashes map[[sha256.Size]byte]int) (n int) {
	for _, s := range r.takeSeen() {
		if _, ok := hashes[s.hash]; ok {
			hashes[s.hash]++
			n++
		}
	}
	return n
}

// metric returns the value of a series of the weir process.
func (r *rig) metric(t *testing.T, name string) float64 {
	t.Helper()
	got := exchange(t, http.DefaultClient, newRequest(t, "GET", r.admin+"/metrics", ""))
	_, rest, found := strings.Cut(got.body, "\n"+name+" ")
	text, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(text, 64)
	if !found || err != nil {
		t.Fatalf("no %s: %v", name, err)
	}
	return v
}

// manyFiles raises the limit of open files for this process and those that it starts: Go raises its own only.
func manyFiles(t *testing.T, need uint64) {
	t.Helper()
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	if l.Cur = l.Max; l.Max < need {
		t.Fatalf("the hard limit of open files is %d, and %d are needed: ulimit -Hn", l.Max, need)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
}
