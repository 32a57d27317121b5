// Package prompt reads the body of a request to a model server: which model, which prefix blocks, how many
// tokens, how long an answer, streamed or not.
//
// One scan of the JSON records where the parts of the prompt stand; one pass then writes them, in an order
// that does not depend on the client, into a chain.Hasher. That canonical stream is
//
//	a conversation  what tells how to render it, the leading messages of system and developer, the tools, and the
//	                other messages, or as ToolsPosition has it
//	                per option (options.go) FF O name, and its value or a hash of it
//	                per message
//	                FF M role  content: FF X text | FF V media | FF F name of a tool ...  [FF T a developer's tools]
//	                [FF N name]  [FF I id of the call that it answers]  [FF K task]  [FF R reasoning]
//	                tool calls: FF C name  [FF I id]  [FF A arguments]  [FF N namespace]  [FF X a custom one's input] ...
//	                per function FF T name  [FF X description]  [FF A parameters]  [FF S strict]  [FF D defer_loading],
//	                and FF T with all of it for another tool
//	other prompts   the text, or each token id as 4 bytes, little-endian
//
// A conversation is a chat's messages; instructions and input of a Responses body (responses.go); system and
// messages of an Anthropic body (anthropic.go). Other prompts are those of completions and the input of embeddings.
// A body is read as its path has it and, if it lacks what that has, by what it has instead. What a body that is
// cut makes of its chain stands in cut.go.
//
// Strings are decoded, so that escapes, whitespace and key order leave no trace. A byte FF (never part of
// UTF-8) starts every tag; an FF inside a string is written FF 00 and a lone surrogate FF 01 and its two
// bytes, so no string can imitate a tag and ("ab", "c") differs from ("a", "bc") without a length in front:
// a longer message or a longer conversation keeps all full blocks of the shorter one. A value that should be
// a string and is not, and a tool's parameters, are written token by token: FF and one of {, }, [, ], " (a string) or
// # (a number or literal, as spelled). Object keys in there keep their order, because chat templates render them
// in that order; one that stands twice in an object counts twice, which costs a match and promises none. null and absent are
// the same, and so are no tools and a list of none, no content and one that is an empty text.
//
// Tokens follow from the same stream: ceil(bytes / chain.BytesPerToken), so Tokens and the blocks of Chain
// measure the same thing, and the two or three bytes of framing stand for what a chat template adds. Token
// ids count exactly. An image, audio or file counts MediaTokens whatever its size and takes part by its hash (medium.go).
//
// A list of prompts has the chain of its first item and the tokens of all: a replica computes the batch
// together, and only a leading prefix can be looked up. It gets as many answers as it has prompts, times n.
//
// The grammar is checked only as far as finding the parts needs it: what a server refuses may be read here,
// what a server accepts is read as Python's json reads it (exact keys, the last duplicate wins). The chain
// says where to send a request, never whether to.
package prompt

import "github.com/weirproxy/weir/pkg/chain"

// API is the shape of request that a path names.
type API uint8

const (
	APIOther       API = iota // not read; routed by size
	APIChat                   // .../v1/chat/completions
	APICompletions            // .../v1/completions
	APIResponses              // .../v1/responses
	APIMessages               // .../v1/messages
	APICount                  // .../v1/messages/count_tokens
	APIEmbeddings             // .../v1/embeddings
)

var apiNames = [...]string{"other", "chat", "completions", "responses", "messages", "count_tokens", "embeddings"}

// anthropic reports whether an API has the members of Anthropic's messages.
func (a API) anthropic() bool { return a == APIMessages || a == APICount }

// String returns the API's name, one of a closed set that is safe as a metric label.
func (a API) String() string { return apiNames[min(int(a), len(apiNames)-1)] }

// Reason tells why a prompt has no chain. Its tokens are those of its size, and with ReasonStored what the body has.
type Reason uint8

const (
	ReasonNone     Reason = iota // it was read
	ReasonPath                   // the path names no API that is read
	ReasonEmpty                  // no body
	ReasonEncoding               // its content-encoding cannot be undone
	ReasonNotJSON                // no JSON object, or one cut short
	ReasonDepth                  // nested deeper than MaxDepth
	ReasonShape                  // a JSON object without a prompt that can be read, or beyond a bound
	ReasonStored                 // the prompt begins with what the server has kept of another request
	ReasonMode                   // the filter's body mode does not show the body in time
	ReasonInflated               // larger than weir takes once its content-encoding is undone
	ReasonBusy                   // no memory, worker or time to undo its content-encoding now
)

var reasonNames = [...]string{"none", "path", "empty", "encoding", "not_json", "depth", "shape", "stored", "mode", "inflated", "busy"}

// String returns the reason's name, one of a closed set that is safe as a metric label.
func (r Reason) String() string { return reasonNames[min(int(r), len(reasonNames)-1)] }

const (
	// MaxDepth bounds the nesting of a body's objects and arrays, the outermost included. A chat message's
	// content part is at 5, and tool schemas seldom pass 20.
	MaxDepth = 64

	// MediaTokens is the prompt tokens of an image, audio clip or file: near one 1024 x 1024 image (765 by
	// OpenAI's published rule for high detail, 576 in LLaVA-1.5, some 1,300 in Qwen2-VL). 12 whole blocks.
	MediaTokens = 12 * chain.BlockTokens

	// MaxMedia is the parts of one prompt that count MediaTokens each; further ones count their hash only, so
	// that a small body cannot claim unbounded work.
	MaxMedia = 256

	// MaxSizeTokens bounds an estimate made from size alone: 128 Ki tokens, the context of most models served
	// (Llama 3.1, Qwen2.5). A longer prompt is refused by the server, so more would only poison a replica's load.
	MaxSizeTokens = 128 << 10

	// MaxTextTokens bounds the tokens of one prompt that was read: the longest context that models in use serve (Qwen2.5-1M).
	// A longer one is refused by the server, and until then it must not look like an hour of work.
	MaxTextTokens = 1 << 20

	// MaxNameBytes bounds model and cache_salt; a longer one is ReasonShape. Repository names stay under 200
	// bytes and a salt is a digest; the bound limits what a Parser keeps between requests.
	MaxNameBytes = 1 << 10

	// MaxParts bounds the parts recorded (roles, texts, calls) of one prompt; more is ReasonShape, of a system text
	// or of tools so many. Each costs the server at least a token, and 131,072 is beyond most contexts.
	MaxParts = 128 << 10

	// MaxAnswers bounds n, the answers to one prompt: OpenAI's bound. vLLM has none, and more are counted as so many.
	MaxAnswers = 128

	// MaxPrompts bounds the prompts of a list that count as one each, as their answers take seats: 1,024 are vLLM's most
	// running at once by default. All tokens of a longer list count.
	MaxPrompts = 1024
)

// Input is a request as it is given to Parse.
type Input struct {
	Path    string // with its query string
	Body    []byte // as its client wrote it, without any content-encoding
	Size    int64  // bytes of the whole body, where Body is not all of it or not read; 0: those of Body
	Partial bool   // Body is cut somewhere: its beginning decides
	Unread  Reason // why Body is not to be read; ReasonNone: it is

	Tools map[string]ToolsPosition // by model; those of others are ToolsAfterSystem
}

// Prompt is what routing needs to know of a request.
type Prompt struct {
	API       API
	Model     string      // as the client names it; "" if absent or unread. Not safe as a metric label
	Chain     chain.Chain // empty when Reason is set; its memory is used again by the next Parse into this Prompt
	Tokens    int         // estimated prompt tokens, of all prompts of a batch; 0 only for an empty body
	MaxTokens int         // bound on each answer in tokens, at least 1; 0: not given
	Prompts   int         // in the list that it is, 1 to MaxPrompts
	Answers   int         // asked for to each of them, 1 to MaxAnswers
	Silent    bool        // it is no request for an answer: embeddings, a count of tokens
	Stream    bool        // the answer is asked for as events
	CacheKey  string      // prompt_cache_key, as bounded as Model; "": none
	Exact     bool        // Tokens is counted, not estimated: the prompt is token ids
	Reason    Reason
}

// sizeTokens estimates tokens from size alone: chain.BytesPerToken bytes each, at most MaxSizeTokens. A body
// that is no text (multipart, audio, binary) counts as one medium at most.
func sizeTokens(size int64, text bool) int {
	n := int(min((size+chain.BytesPerToken-1)/chain.BytesPerToken, MaxSizeTokens))
	if !text {
		n = min(n, MediaTokens)
	}
	return n
}
