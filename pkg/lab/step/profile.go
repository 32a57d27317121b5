package step

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// BlockTokens is the tokens in a KV block: vLLM's default block_size on CUDA.
const BlockTokens = 16

// Profile is a model on its hardware: the constants of the step formula and the replica's limits.
type Profile struct {
	Name       string
	Base       time.Duration // c0: a step's cost whatever it holds, mostly reading the weights
	PerSeq     time.Duration // per running sequence and step
	PerContext time.Duration // b: per context token of a decoding sequence, reading its KV
	PerPrefill time.Duration // p: per prompt token
	API        time.Duration // from arrival to the scheduler's queue: HTTP, chat template, tokenizer
	KVTokens   int           // tokens of KV memory; a multiple of BlockTokens is used, the rest is lost
	MaxBatch   int           // max_num_batched_tokens: tokens in a step, at least MaxSeqs
	MaxSeqs    int           // max_num_seqs: running sequences
}

// profiles lists what Lookup knows, all on H100. 8B: roofline at 45 % of peak, step terms as fitted by BLIS.
// 32B and 70B: the prefill rates and KV sizes that llm-d published for its 73-capacity and 37-capacity runs;
// PerContext and PerPrefill of 32B are the middle of the measured ranges (0.039-0.076 us, 48.8-62.8 us) that
// fits the published b2b-saas ladder best. API is the cost of vLLM's server before a request is queued;
// 8,192 and 256 are vLLM's defaults for an online server.
var profiles = []Profile{
	{"8B", 6900 * time.Microsecond, 4400, 76, 27800, 15 * time.Millisecond, 421_000, 8192, 256},
	{"32B", 15500 * time.Microsecond, 4400, 50, 55000, 15 * time.Millisecond, 307_000, 8192, 256},
	{"70B", 16700 * time.Microsecond, 4400, 48, 61900, 15 * time.Millisecond, 461_000, 8192, 256},
}

// Lookup returns the profile of that name (8B on one GPU, 32B on two, 70B on four), or an error that lists
// the names.
func Lookup(name string) (Profile, error) {
	names := make([]string, 0, len(profiles))
	for _, p := range profiles {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("step: no profile %q: use one of %s", name, strings.Join(names, ", "))
}

// StepTime is how long a step takes with that many running sequences, context tokens of decoding sequences
// and prompt tokens.
func (p *Profile) StepTime(running, context, prefill int) time.Duration {
	return p.Base + time.Duration(running)*p.PerSeq + time.Duration(context)*p.PerContext + time.Duration(prefill)*p.PerPrefill
}

// maxKVTokens bounds the memory that a simulated replica takes, some bytes for each: 100 times a GPU's.
const maxKVTokens = 1 << 26

// Validate reports everything that makes a profile unusable.
func (p *Profile) Validate() error {
	var errs []error
	if p.KVTokens < BlockTokens {
		errs = append(errs, fmt.Errorf("step: KV of %d tokens is less than a block of %d", p.KVTokens, BlockTokens))
	}
	if p.KVTokens > maxKVTokens {
		errs = append(errs, fmt.Errorf("step: KV of %d tokens is more than %d, the most that is simulated", p.KVTokens, maxKVTokens))
	}
	if p.MaxSeqs < 1 {
		errs = append(errs, fmt.Errorf("step: max sequences %d is less than 1", p.MaxSeqs))
	}
	if p.MaxBatch < p.MaxSeqs {
		errs = append(errs, fmt.Errorf("step: a batch of %d tokens has no room for %d decoding sequences", p.MaxBatch, p.MaxSeqs))
	}
	if p.Base <= 0 || p.PerSeq < 0 || p.PerContext < 0 || p.PerPrefill < 0 || p.API < 0 {
		errs = append(errs, errors.New("step: Base must be above zero and no other cost below it"))
	}
	return errors.Join(errs...)
}
