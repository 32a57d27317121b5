// Package replica serves the step model over HTTP as a vLLM 0.32 server, in real time: chats, completions, OpenAI's
// responses and embeddings, Anthropic's messages and the count of their tokens. The latter become chats, as in vLLM;
// an embedding takes the step of its prefill, and one server has both, which a real one has not.
//
// The text of a request becomes tokens at four bytes each: a chat is rendered with its roles, tools and
// tool calls, each message padded to whole tokens, and blocks of 16 tokens are hashed with the model and
// the cache salt as seed. The answer is filler of four bytes a token, and its blocks are hashed too, so a
// client that sends the answer back in its next turn finds it cached, as with a real server.
//
// One goroutine owns the model and its clock. Model time runs Config.Speed times as fast as the wall;
// whatever a client or a scraper sees, the metrics included, is wall time. A stream gets at most one event
// per step, and outside its first and last at most one per 5 ms of wall time: when steps are shorter or the
// machine is late, an event carries several tokens.
//
// Faults (POST /fault), a restart (POST /restart) and the last request (GET /debug/last) are the
// laboratory's own paths. Every other path that vLLM would not answer here (audio, rerank) reads the
// body and returns its hash, for tests of byte identity.
package replica
