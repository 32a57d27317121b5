// Package step models one vLLM replica as a sequence of batched steps, without a clock.
//
// Continuous batching: every step computes one token of each decoding sequence, then prompt chunks of the
// rest in the order in which they were admitted, up to Profile.MaxBatch tokens in all. A step takes
//
//	Base + PerSeq*B + PerContext*sum(context) + PerPrefill*prefill
//
// with B the running sequences (prefilling ones too), context the prompt and answer so far of each decoding
// sequence, and prefill the prompt tokens in the step. The step that computes the last prompt token gives
// the first output token, and each decode step gives one more: an answer of m tokens takes m-1 decode
// steps. Alone on an idle replica, a prompt of n tokens that fits one step gives its first token after
//
//	API + Base + PerSeq + PerPrefill*n
//
// and its next one Base + PerSeq + PerContext*(n+1) later.
//
// KV memory is blocks of 16 tokens, taken as chunks are scheduled. A block is found again by the hash of
// its text and of all text before it; only full blocks are hashed, and at least the last token of a prompt
// is computed, as vLLM does. A freed block keeps its hash until it is the least recently freed one and its
// memory is needed. When memory runs out, the sequence admitted last gives its blocks back, goes to the
// head of the queue and is computed again from its start (vLLM's recompute preemption).
//
// What the model leaves out: asynchronous scheduling, the quadratic part of prefill attention, priority
// scheduling, and second copies of one hash (vLLM keeps both; here the later copy is not hashed, which
// loses at most the last block of a repeated prompt).
//
// Time is an argument everywhere and all constants are whole nanoseconds, so a run is exact and repeatable.
package step
