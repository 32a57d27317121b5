package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weirproxy/weir/pkg/pool"
)

// The series that are read. A name that stands first is preferred to the next.
var (
	running    = []string{"vllm:num_requests_running"}
	waiting    = []string{"vllm:num_requests_waiting"}
	kv         = []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"} // the second: older vLLM
	prompts    = []string{"vllm:prompt_tokens_total", "vllm:prompt_tokens"}
	generation = []string{"vllm:generation_tokens_total", "vllm:generation_tokens"}
	answers    = []string{"vllm:request_generation_tokens_count"} // of a histogram over the finished requests
	answered   = []string{"vllm:request_generation_tokens_sum"}
	caches     = []string{"vllm:cache_config_info"}

	wanted = nameSet(running, waiting, kv, prompts, generation, answers, answered, caches)
)

func nameSet(lists ...[]string) map[string]bool {
	set := map[string]bool{}
	for _, names := range lists {
		for _, n := range names {
			set[n] = true
		}
	}
	return set
}

const (
	// MaxBody bounds a metrics page, in bytes after decompression: a recorded page of vLLM 0.32 is 50 KiB, and
	// 16 engines with some adapters stay under 4 MiB.
	MaxBody = 8 << 20
	// maxLine bounds one line of it. The longest recorded, vllm:cache_config_info, has 1.2 KiB.
	maxLine = 16 << 10
	// maxCount bounds counts: a float64 beyond it no longer counts by ones.
	maxCount = 1 << 53
	// kvSlack is how far above 1 a share may be by rounding; it is then 1.
	kvSlack = 1e-4
)

var (
	errTooLarge = fmt.Errorf("metrics page of %d MiB or more", MaxBody>>20)
	errNoSeries = errors.New("metrics page without any series that is read")
)

// Parse reads a metrics page in the Prometheus text format or OpenMetrics 1.0, as contentType says; "" is
// text. Its rules are those of the package comment. At is left to the caller. An error, for a page that is
// neither, is cut short, is larger than MaxBody or has no series that is read, comes with an empty Sample.
func Parse(r io.Reader, contentType string) (pool.Sample, error) {
	openMetrics, err := format(contentType)
	if err != nil {
		return pool.Sample{}, err
	}
	page := &io.LimitedReader{R: r, N: MaxBody}
	text, err := ownLines(page, openMetrics)
	switch {
	case page.N == 0:
		return pool.Sample{}, errTooLarge
	case err != nil:
		return pool.Sample{}, err
	case len(text) == 0:
		return pool.Sample{}, errNoSeries
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil { // it may quote the page: bounded, as it is logged
		return pool.Sample{}, fmt.Errorf("metrics page: %.200s", err)
	}
	return sampleOf(families), nil
}

// format reports whether a content type is OpenMetrics'; anything but that and text is an error.
func format(contentType string) (openMetrics bool, err error) {
	if contentType == "" {
		return false, nil
	}
	switch media, _, _ := mime.ParseMediaType(contentType); media {
	case "text/plain":
		return false, nil
	case "application/openmetrics-text":
		return true, nil
	}
	return false, fmt.Errorf("content type %.64q is no metrics page", contentType)
}

func sampleOf(families map[string]*dto.MetricFamily) (s pool.Sample) {
	s.Running, s.HasRunning = count(families, running)
	s.Waiting, s.HasWaiting = count(families, waiting)
	s.KV, s.HasKV = share(families, kv)
	s.KVTokens, s.HasSize = size(families)
	p, hasP := count(families, prompts)
	g, hasG := count(families, generation)
	if hasP && hasG {
		s.Tokens, s.HasTokens = p+g, true
	}
	n, hasN := count(families, answers)
	sum, hasSum := count(families, answered)
	if hasN && hasSum {
		s.Answers, s.AnswerTokens, s.HasAnswers = n, sum, true
	}
	return s
}

// series returns the series of the first of the names that has any.
func series(families map[string]*dto.MetricFamily, names []string) []*dto.Metric {
	for _, n := range names {
		if f := families[n]; f != nil {
			return f.Metric
		}
	}
	return nil
}

// count is the sum over a name's series: engines, models and adapters share the replica.
func count(families map[string]*dto.MetricFamily, names []string) (sum float64, ok bool) {
	all := series(families, names)
	for _, m := range all {
		v := m.GetUntyped().GetValue()
		if !(v >= 0) { // NaN too
			return 0, false
		}
		sum += v
	}
	if len(all) == 0 || sum > maxCount {
		return 0, false
	}
	return sum, true
}

// size is the tokens of KV of all engines together, from the labels of their series. It is unknown where one engine tells
// none, and above maxCount.
func size(families map[string]*dto.MetricFamily) (sum float64, ok bool) {
	all := series(families, caches)
	for _, m := range all {
		labels := map[string]float64{}
		for _, l := range m.GetLabel() {
			if n, err := strconv.ParseUint(l.GetValue(), 10, 53); err == nil {
				labels[l.GetName()] = float64(n)
			}
		}
		n := labels["kv_cache_size_tokens"]
		if n == 0 { // older vLLM
			n = labels["num_gpu_blocks"] * labels["block_size"]
		}
		if n == 0 {
			return 0, false
		}
		sum += n
	}
	return sum, len(all) > 0 && sum <= maxCount
}

// share is the maximum over a name's series: the fullest engine of a replica is the one that preempts.
func share(families map[string]*dto.MetricFamily, names []string) (most float64, ok bool) {
	all := series(families, names)
	for _, m := range all {
		v := m.GetUntyped().GetValue()
		if !(v >= 0 && v <= 1+kvSlack) {
			return 0, false
		}
		most = math.Max(most, math.Min(v, 1))
	}
	return most, len(all) > 0
}
