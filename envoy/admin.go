package envoy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// adminClient bounds a request to the admin listener, which answers in milliseconds. It keeps no connection, so
// that a stopping Envoy need not wait for one.
var adminClient = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// Get returns the body of the admin listener's answer to a path such as "/clusters"; any status but 200 is an error.
func (p *Proc) Get(path string) ([]byte, error) {
	resp, err := adminClient.Get("http://" + p.Admin + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("envoy admin %s: %s: %s", path, resp.Status, bytes.TrimSpace(body))
	}
	return body, nil
}

// Stats returns the counters and gauges whose names begin with prefix, such as "http.front.ext_proc.", by full name.
// Histograms are left out. Envoy counts a request when it is done with it, which may be after the client has the answer.
func (p *Proc) Stats(prefix string) (map[string]float64, error) {
	body, err := p.Get("/stats?filter=" + url.QueryEscape("^"+regexp.QuoteMeta(prefix)))
	if err != nil {
		return nil, err
	}
	stats := map[string]float64{}
	for line := range strings.Lines(string(body)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			stats[name] = v
		}
	}
	return stats, nil
}
