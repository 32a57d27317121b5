package workload

import (
	"fmt"
	"time"

	"github.com/weirproxy/weir/pkg/lab/sample"
)

// W5: questions about documents. A prompt is the system prompt of one of 8 applications, one of its
// documents, and a question. An answer is 200 tokens in the mean; the document is as long as the ratio of
// prompt to answer tokens asks for.
//
// The ratios are those of the reference cluster (19 to 47) and one past it (73). Documents are read by a
// Zipf law of exponent 0.8: web pages, the best measured case of readers choosing documents, have 0.64 to
// 0.83 (Breslau et al., INFOCOM 1999). 600 documents at 35:1 are 3.8M tokens, 2.2 times what four 8B
// replicas cache, so that where a document lies matters. The rest is an assumption.
const (
	ragReplicas     = 4
	ragApps         = 8
	ragSystem       = 600 // tokens
	ragDocuments    = 600
	ragExponent     = 0.8
	ragQuestionLow  = 20
	ragQuestionHigh = 100
	ragAnswer       = 200
)

// ragAnswers is the answers' lengths: summaries and extracts, rarely long.
var ragAnswers = logNormal{mean: ragAnswer, sigma: 0.5, low: 16, high: 1000}

// rag is W5 at that many prompt tokens per answer token.
func rag(ratio int) Info {
	loads := map[int][]float64{19: {24, 36, 46}, 35: {10, 16, 20}, 47: {8, 11, 14}, 73: {4, 6, 8}}
	return steady(Info{
		Name:    fmt.Sprintf("W5-%d", ratio),
		Shape:   fmt.Sprintf("RAG, %d prompt tokens per answer token, 600 documents by Zipf, 8 system prompts", ratio),
		Profile: "8B", Replicas: ragReplicas, Loads: loads[ratio],
	}, func(p Params) Source { return ragSource(ratio, p) })
}

func ragSource(ratio int, p Params) Source {
	rng := source(p.Seed, ofTexts)
	apps := make([]text, ragApps)
	for i := range apps {
		apps[i].add(rng.Uint64(), ragSystem)
	}
	// Documents are from half to one and a half times as long as their mean.
	mean := ragAnswer*ratio - ragSystem - (ragQuestionLow+ragQuestionHigh)/2
	documents := make([]text, scaled(ragDocuments, p.Replicas, ragReplicas))
	for i := range documents {
		documents[i] = apps[rng.IntN(ragApps)].with(rng.Uint64(), sample.Between(rng, mean/2, mean*3/2))
	}
	popular, rng := sample.NewZipf(len(documents), ragExponent), source(p.Seed, ofTexts+1)
	return steadily(p, func(at time.Duration) *Request {
		t := documents[popular.Pick(rng)].with(rng.Uint64(), sample.Between(rng, ragQuestionLow, ragQuestionHigh))
		return &Request{At: at, Blocks: t.blocks, Prompt: t.tokens, Output: ragAnswers.draw(rng)}
	})
}
