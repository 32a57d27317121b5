package workload

import (
	"math"
	"math/rand/v2"
	"time"
)

// band is a share of the requests and the quantiles of their prompt and answer tokens at fractions.
type band struct {
	share          float64
	prompt, output [8]float64
}

var fractions = [8]float64{0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1}

// conversation is fitted to the Azure LLM inference trace 2023, conversation (github.com/Azure/
// AzurePublicDataset: 19,366 requests in an hour). Answers go with prompts in no simple way (rank correlation
// 0.07, yet 400 tokens in the middle for prompts around 1,100 and 60 for those of 4,000), so each of five
// bands of prompts has quantiles of its own, with the logarithm linear between them. Largest error of the
// distribution function: 0.025 (prompts), 0.039 (answers); of the means: +0.2 % of 1,155 and -1.7 % of 211
// tokens. The trace's gaps have a coefficient of variation of 1.09; here it is 1, a Poisson process.
var conversation = []band{
	{0.1353, [8]float64{2, 45, 169, 197, 209, 226, 252, 299}, [8]float64{11, 51, 94, 152, 183, 217, 274, 1000}},
	{0.2611, [8]float64{300, 375, 387, 398, 408, 425, 485, 597}, [8]float64{7, 62, 81, 93, 107, 129, 181, 739}},
	{0.3258, [8]float64{604, 942, 1008, 1050, 1092, 1122, 1147, 1149}, [8]float64{10, 109, 388, 401, 426, 468, 649, 1000}},
	{0.1637, [8]float64{1150, 1170, 1226, 1317, 1785, 2221, 2468, 2498}, [8]float64{15, 55, 83, 144, 389, 420, 603, 992}},
	{0.1141, [8]float64{2500, 2666, 3747, 4080, 4090, 4131, 6061, 14050}, [8]float64{17, 36, 45, 62, 97, 139, 239, 757}},
}

// azure is W10: lengths as in that trace, and no two prompts share a block.
func azure() Info {
	return steady(Info{Name: "W10", Shape: "lengths as in the Azure 2023 conversation trace, unique prompts",
		Profile: "8B", Replicas: 4, Loads: []float64{20, 40, 60}}, func(p Params) Source {
		rng := source(p.Seed, ofTexts)
		return steadily(p, func(at time.Duration) *Request {
			b := pickBand(rng)
			t := text{}.with(rng.Uint64(), quantile(rng, b.prompt))
			return &Request{At: at, Blocks: t.blocks, Prompt: t.tokens, Output: quantile(rng, b.output)}
		})
	})
}

func pickBand(rng *rand.Rand) band {
	x := rng.Float64()
	for _, b := range conversation {
		if x -= b.share; x < 0 {
			return b
		}
	}
	return conversation[len(conversation)-1]
}

// quantile draws from a distribution given at fractions.
func quantile(rng *rand.Rand, at [8]float64) int {
	x := rng.Float64()
	i := 0
	for x >= fractions[i+1] {
		i++
	}
	x = (x - fractions[i]) / (fractions[i+1] - fractions[i])
	return int(math.Round(at[i] * math.Pow(at[i+1]/at[i], x)))
}
