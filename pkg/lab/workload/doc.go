// Package workload makes the laboratory's traffic: what arrives when, how long it is and which text it
// shares with what came before. No text exists, only the hashes of its blocks.
//
// A text is a row of pieces, each named by a number and so many tokens long: a system prompt, a document, a
// question, an answer. The hash of block i covers its 16 tokens, as pieces and the places in them, and
//
//	h_i = xxhash64(h_{i-1}, piece, first token, tokens, ...)
//
// so that two requests share exactly the blocks that their texts share from the start. A block that is not
// full has no hash, as in vLLM.
//
// A workload is a function of its rate and its seed: the same two give the same requests, and texts and
// lengths stay the same when only the rate changes. A session draws from a randomness of its own, so two
// routers get the same sessions however long they take to answer. Requests arrive in an open loop; only a
// session's next turn waits for its answer, so slow answers lower the rate of W6 and W9 (15 ms for each
// token of the answer give the rate asked for).
//
// A workload has a default number of replicas. For k times as many it makes k times as many groups,
// documents and assistants, so that what each replica could cache stays in proportion to its memory. Its
// rate is that of all replicas together, and is not scaled.
//
// A source ends after Params.Length of model time, by default Info.Length; turns that would begin later
// are not sent. The ladder ends by itself.
package workload
