package load

import "math/rand/v2"

// bytesPerToken is how long a workload's texts are made for a given number of tokens: about what byte-pair
// encodings reach on English text, and what the simulated replica's tokenizer takes.
const bytesPerToken = 4

// words is the vocabulary of all texts: plain letters, so that JSON has nothing to escape.
var words = []string{
	"the", "of", "and", "to", "a", "in", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on",
	"not", "this", "are", "or", "from", "at", "which", "but", "an", "have", "has", "had", "they", "will",
	"river", "water", "level", "gate", "flow", "bank", "flood", "lock", "dam", "mill", "bridge", "canal",
	"valley", "stone", "timber", "season", "survey", "report", "engine", "station", "measure", "record",
	"between", "against", "during", "before", "under", "through", "without", "another", "several", "number",
	"structure", "condition", "pressure", "material", "surface", "average", "current", "direction", "result",
	"section", "height", "length", "weight", "volume", "summer", "winter", "spring", "autumn", "morning",
}

// text returns about that many tokens of words, which nobody else gets from the same source.
func text(rng *rand.Rand, tokens int) string {
	n := tokens * bytesPerToken
	b := make([]byte, 0, n+16)
	for len(b) < n {
		b = append(b, words[rng.IntN(len(words))]...)
		b = append(b, ' ')
	}
	return string(b[:n])
}
