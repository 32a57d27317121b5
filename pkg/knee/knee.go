// Package knee is the arithmetic of one replica: how long its steps take, what a prompt token costs while it
// decodes, and where its knee lies. Pure functions of plain values, in seconds and tokens.
//
// The step model of continuous batching, with B running sequences that hold ctx tokens of context:
//
//	D = c0 + a*B + b*ctx     the step without prefill
//	P = p + D/chunk          the time of one uncached prompt token while the replica decodes
//
// A step takes all decodes first and fills what is left of the chunk with prefill, so each chunk of prompt
// tokens pays one D: that is the second term of P.
package knee

// Rates are the constants of the step model for one kind of replica. Package pool has measured ones.
type Rates struct {
	Step    float64 // c0: seconds of an empty step
	Seq     float64 // a: seconds per running sequence and step
	Context float64 // b: seconds per context token of a decoding sequence and step
	Token   float64 // p: seconds per uncached prompt token
	Chunk   float64 // prompt tokens that a step takes at most (vLLM's max_num_batched_tokens)
}

// Decode is D: the seconds of a step without prefill, for seqs running sequences with ctx tokens of context.
func (r Rates) Decode(seqs, ctx float64) float64 {
	return r.Step + r.Seq*seqs + r.Context*ctx
}

// Prefill is P: the seconds of one uncached prompt token beside steps of d seconds.
func (r Rates) Prefill(d float64) float64 {
	return r.Token + d/r.Chunk
}

// minTau is the least backlog, in seconds, that a replica may hold below its knee. Below 0.5 s, about a full chunk of
// the 32B profile, short prompts leave bubbles between two scrapes; from there to 4 s nothing changes (DESIGN.md 4).
const minTau = 0.5

// Tau is the backlog, in seconds, at which a replica with steps of d seconds reaches its knee: room for two
// full chunks, so that a step never runs dry before the next release.
func (r Rates) Tau(d float64) float64 {
	return max(minTau, 2*(r.Chunk*r.Token+d))
}

// maxMiss bounds the price of a cache miss in units of its own prefill time (DESIGN.md 4).
const maxMiss = 20

// Miss is m, the price of an uncached token over its own time: one when the pool is idle, and growing with
// the mean backlog wait over the mean work of a request, both in seconds, since a miss delays all that queue
// behind it. work <= 0 means that no request was seen yet.
func Miss(wait, work float64) float64 {
	if work <= 0 {
		return 1
	}
	return 1 + min(wait/work, maxMiss)
}
