// Package trace reads recorded traffic: Mooncake's JSONL, Azure's CSV, and a format of weir's own. No format
// holds any text.
//
// Mooncake (github.com/kvcache-ai/Mooncake, FAST25-release/traces): one object per line,
//
//	{"timestamp": 3000, "input_length": 1100, "output_length": 52, "hash_ids": [0, 7, 8]}
//
// timestamp in milliseconds, in steps of 3 s; one hash id for each 512 tokens of the prompt, the last one
// for what is left; an id stands for its block and all before it. An id becomes 32 hashes of 16 tokens, the
// last one as many as are full. The rows of a step keep their order and are spread over it at random.
//
// Azure (github.com/Azure/AzurePublicDataset): a header, then
//
//	TIMESTAMP,ContextTokens,GeneratedTokens
//	2023-11-16 18:15:46.6805900,374,44
//
// The trace knows nothing about texts, so no two prompts share anything.
//
// weir's own format, one object per line, can be written by whoever sees the requests, as it tells nothing
// of their texts but which of them begin alike:
//
//	{"v": 1, "at_us": 1500000, "prompt": 200, "output": 80, "block": 64, "chain": ["91b0e7f2a3c4d5e6", "07c3..."]}
//
//	v       1; other versions are refused
//	at_us   microseconds since the recording began
//	prompt  tokens, and
//	output  tokens of the answer, at least 1 each
//	block   tokens that a hash covers: a multiple of 16
//	chain   one hash for each full block of the prompt, 16 hex digits each, of the block and all before it;
//	        then, optionally, those of the answer, for a trace whose later prompts extend it. The hash must
//	        be keyed with a secret that is thrown away (HMAC-SHA-256, its first 8 bytes, will do), or short
//	        texts can be found by trying
//	class   optional: "interactive" or "bulk"
//	tenant  optional: a keyed hash of the tenant, up to 16 hex digits
//
// Every reader is strict: a fault names the file, the line and the field, and nothing is left out or
// repaired. Faults are lines that are not as above, unknown fields, sizes below 1 or above MaxTokens, times
// that go back, a list of hashes that does not match its prompt, and lines longer than MaxLine. A file may
// end with one empty line.
package trace
