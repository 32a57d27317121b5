package scrape

import (
	"math"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/weirproxy/weir/pkg/pool"
)

// families are the series of a page by name, each an untyped value: types were cut off.
type families map[string]*dto.MetricFamily

func (f families) sample() (s pool.Sample) {
	s.Running, s.HasRunning = f.count(running...)
	s.Waiting, s.HasWaiting = f.count(waiting...)
	s.KV, s.HasKV = f.share(kv)
	s.KVTokens, s.HasSize = f.size()
	s.Tokens, s.HasTokens = f.tokens()
	s.Prompt, s.HasPrompt = f.count(allPrompts...)
	a := f.summary(answers)
	s.Answers, s.AnswerTokens, s.HasAnswers = a.Count, a.Sum, a.Has
	s.TTFT, s.InterToken, s.Queue, s.Hits = f.summary(first), f.summary(gaps), f.summary(queues), f.summary(hits)
	s.Computed, s.HasComputed = f.computed(s.Hits)
	s.Preemptions, s.HasPreemptions = f.count(preemptions...)
	s.Started, s.HasStarted = f.start()
	return s
}

// tokens is what the engine has worked through, counted while it does.
func (f families) tokens() (sum float64, ok bool) {
	p, hasP := f.count(prompts...)
	g, hasG := f.count(generation...)
	if hasP && hasG {
		return p + g, true
	}
	return f.count(realtime...)
}

// computed is the uncached prompt tokens that the engine has worked through. SGLang counts them as it does. vLLM tells how many
// those of the prompts are that it has begun, and of those that it has done: what is computed lies between, and for a prompt
// that takes seconds the mean of both is right in the middle of them. Older vLLM tells the first alone.
func (f families) computed(hits pool.Summary) (sum float64, ok bool) {
	if n, ok := count(with(f.series(realtime...), "mode", "prefill_compute")); ok {
		return n, true
	}
	if !hits.Has {
		return 0, false
	}
	begun := max(hits.Count-hits.Sum, 0)
	if done, ok := count(with(f.series(done...), "source", "local_compute")); ok {
		return (begun + done) / 2, true
	}
	return begun, true
}

// with returns the series that have the label's value.
func with(all []*dto.Metric, label, value string) (some []*dto.Metric) {
	for _, m := range all {
		if v, _ := labelOf(m, label); v == value {
			some = append(some, m)
		}
	}
	return some
}

// series returns the series of the first of the names that has any.
func (f families) series(names ...string) []*dto.Metric {
	for _, n := range names {
		if family := f[n]; family != nil {
			return family.Metric
		}
	}
	return nil
}

// count is the sum over a name's series: engines, models and adapters share the replica. Of the ranks of one engine, which
// tell of the same requests, the largest counts. SGLang with priorities tells the total of an empty priority, and each
// priority's part beside it.
func (f families) count(names ...string) (sum float64, ok bool) { return count(f.series(names...)) }

func count(all []*dto.Metric) (sum float64, ok bool) {
	total := false
	for _, m := range all {
		p, has := labelOf(m, "priority")
		total = total || has && p == ""
	}
	ranks := map[string]float64{}
	for _, m := range all {
		v := m.GetUntyped().GetValue()
		if !(v >= 0) { // NaN too
			return 0, false
		}
		if p, _ := labelOf(m, "priority"); total && p != "" {
			continue
		}
		key := ""
		if len(all) > 1 {
			key = engine(m)
		}
		if more := v - ranks[key]; more > 0 {
			ranks[key] = v
			sum += more
		}
	}
	if len(all) == 0 || sum > maxCount {
		return 0, false
	}
	return sum, true
}

func labelOf(m *dto.Metric, name string) (value string, has bool) {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue(), true
		}
	}
	return "", false
}

// engine is the labels of a series but its rank in the engine. Data-parallel ranks are engines.
func engine(m *dto.Metric) string {
	var key strings.Builder
	for _, l := range m.GetLabel() {
		switch n := l.GetName(); n {
		case "tp_rank", "pp_rank", "moe_ep_rank":
		default:
			key.WriteString(n + "\x00" + l.GetValue() + "\x00")
		}
	}
	return key.String()
}

// summary is the first of the pairs that counts anything.
func (f families) summary(pairs []pair) (s pool.Summary) {
	for _, p := range pairs {
		if f[p.count] == nil {
			continue
		}
		n, hasN := f.count(p.count)
		sum, hasSum := f.count(p.sum)
		if hasN && hasSum {
			return pool.Summary{Count: n, Sum: sum, Has: true}
		}
		return s
	}
	return s
}

// size is the tokens of KV of all engines together.
func (f families) size() (sum float64, ok bool) {
	all := f.series(caches...)
	if all == nil {
		sum, ok = f.count(sizes...)
		return sum, ok && sum > 0
	}
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
	return sum, sum <= maxCount
}

// share is the maximum over a name's series: the fullest engine of a replica is the one that preempts.
func (f families) share(names []string) (most float64, ok bool) {
	all := f.series(names...)
	for _, m := range all {
		v := m.GetUntyped().GetValue()
		if !(v >= 0 && v <= 1+kvSlack) {
			return 0, false
		}
		most = math.Max(most, math.Min(v, 1))
	}
	return most, len(all) > 0
}

// start is when the last of the processes that a page tells of started.
func (f families) start() (last float64, ok bool) {
	all := f.series(started)
	for _, m := range all {
		v := m.GetUntyped().GetValue()
		if !(v > 0 && v < maxStart) {
			return 0, false
		}
		last = math.Max(last, v)
	}
	return last, len(all) > 0
}
