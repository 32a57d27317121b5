package envoy_test

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// exchange sends a request and reads the whole answer.
func exchange(t *testing.T, c *http.Client, req *http.Request) reply {
	t.Helper()
	r, err := try(c, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// try is exchange for a goroutine of a test's, and for a request that may fail.
func try(c *http.Client, req *http.Request) (reply, error) {
	start := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body), time.Since(start)}, err
}
