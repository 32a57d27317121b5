package replica

import (
	"math"
	"strconv"
)

// histogram counts values by upper bound, as Prometheus does.
type histogram struct {
	bounds []float64 // ascending; +Inf is implied
	counts []int64   // per bound and one for the rest, not cumulative
	sum    float64
}

func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]int64, len(bounds)+1)}
}

// observe adds n values v.
func (h *histogram) observe(v float64, n int) {
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.counts[i] += int64(n)
	h.sum += v * float64(n)
}

// metricsPage is Prometheus text under construction. Every series has the engine and model_name labels and
// a _created gauge beside it, as the Python client writes them.
type metricsPage struct {
	buf     []byte
	model   string // escaped and quoted
	created float64
}

// family opens a metric. The label set of the samples that follow is theirs.
func (p *metricsPage) family(name, kind, help string) {
	p.buf = append(p.buf, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
}

// sample writes one value. extra is a further label as name="value", or ""; labels stand in the order of
// the alphabet.
func (p *metricsPage) sample(name, extra string, v float64) {
	labels := `engine="0",model_name=` + p.model
	switch {
	case extra > "model_name":
		labels += "," + extra
	case extra != "":
		labels = `engine="0",` + extra + `,model_name=` + p.model
	}
	p.buf = append(p.buf, name+"{"+labels+"} "...)
	p.buf = append(appendFloat(p.buf, v), '\n')
}

// counter writes a whole counter of one series.
func (p *metricsPage) counter(name, help string, v float64) {
	p.family(name+"_total", "counter", help)
	p.sample(name+"_total", "", v)
	p.stamp(name, help)
}

func (p *metricsPage) gauge(name, help string, v float64) {
	p.family(name, "gauge", help)
	p.sample(name, "", v)
}

// split writes a counter with one series for each value of a label, in that order.
func (p *metricsPage) split(name, help, label string, values []string, count func(string) float64) {
	p.family(name+"_total", "counter", help)
	for _, v := range values {
		p.sample(name+"_total", label+`="`+v+`"`, count(v))
	}
	p.family(name+"_created", "gauge", help)
	for _, v := range values {
		p.sample(name+"_created", label+`="`+v+`"`, p.created)
	}
}

func (p *metricsPage) histogram(name, help string, h *histogram) {
	p.family(name, "histogram", help)
	var total int64
	for i, n := range h.counts {
		total += n
		bound := math.Inf(1)
		if i < len(h.bounds) {
			bound = h.bounds[i]
		}
		p.sample(name+"_bucket", `le="`+string(appendFloat(nil, bound))+`"`, float64(total))
	}
	p.sample(name+"_count", "", float64(total))
	p.sample(name+"_sum", "", h.sum)
	p.stamp(name, help)
}

func (p *metricsPage) stamp(name, help string) {
	p.gauge(name+"_created", help, p.created)
}

// appendFloat writes a number as the Python client does: whole ones with ".0".
func appendFloat(buf []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(buf, "+Inf"...)
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return strconv.AppendFloat(buf, v, 'f', 1, 64)
	default:
		return strconv.AppendFloat(buf, v, 'g', -1, 64)
	}
}
