package load

import (
	"slices"
	"time"

	"github.com/weirproxy/weir/pkg/lab/sample"
)

// Summary is what the results of one kind come to. Percentiles are exact, over the answers that succeeded.
type Summary struct {
	Requests int
	Errors   int
	First    Percentiles // times to first token
	Total    Percentiles
	Usage    Usage // summed up
}

// Percentiles are of one series, by nearest rank; zero for an empty one.
type Percentiles struct{ P50, P99, Max time.Duration }

// Summarize sums up the results of one kind, all of them for "".
func Summarize(results []Result, kind string) Summary {
	var s Summary
	var first, total []time.Duration
	for i := range results {
		r := &results[i]
		if kind != "" && r.Kind != kind {
			continue
		}
		s.Requests++
		if r.Err != nil {
			s.Errors++
			continue
		}
		first, total = append(first, r.First), append(total, r.Total)
		s.Usage.PromptTokens += r.Usage.PromptTokens
		s.Usage.CompletionTokens += r.Usage.CompletionTokens
		s.Usage.Details.CachedTokens += r.Usage.Details.CachedTokens
	}
	s.First, s.Total = percentilesOf(first), percentilesOf(total)
	return s
}

// Lateness is how late the requests were written after their intended starts, failed ones included.
func Lateness(results []Result) Percentiles {
	late := make([]time.Duration, len(results))
	for i := range results {
		late[i] = results[i].Late
	}
	return percentilesOf(late)
}

// percentilesOf sorts the series in place.
func percentilesOf(series []time.Duration) Percentiles {
	if len(series) == 0 {
		return Percentiles{}
	}
	slices.Sort(series)
	return Percentiles{P50: sample.Rank(series, 50), P99: sample.Rank(series, 99), Max: series[len(series)-1]}
}
