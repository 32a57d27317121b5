package scrape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weirproxy/weir/pkg/pool"
)

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
	// maxStart bounds a start, in Unix seconds: the year 6325.
	maxStart = 1 << 37
)

var (
	errTooLarge = fmt.Errorf("metrics page of %d MiB or more", MaxBody>>20)
	errNoSeries = errors.New("metrics page without any series of an engine's")
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
	byName, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil { // it may quote the page: bounded, as it is logged
		return pool.Sample{}, fmt.Errorf("metrics page: %.200s", err)
	}
	if len(byName) == 1 && byName[started] != nil { // any program tells that
		return pool.Sample{}, errNoSeries
	}
	return families(byName).sample(), nil
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
