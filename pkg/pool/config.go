package pool

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirproxy/weir/pkg/knee"
)

// Config is what the replicas of a pool are taken to be before their own metrics tell: one step model for all of them, a
// profile's with single constants set otherwise; and the limits that hold whatever they tell.
type Config struct {
	// Profile names the constants to start from: 8B, 32B or 70B (see profiles).
	Profile string `yaml:"profile"`
	// Step is c0 of package knee, the time of an empty step.
	Step time.Duration `yaml:"step"`
	// PerSequence is a: the time that each running sequence adds to a step.
	PerSequence time.Duration `yaml:"per_sequence"`
	// PerContextToken is b: the time that each token of context adds to a step. A fraction of a microsecond.
	PerContextToken time.Duration `yaml:"per_context_token"`
	// PerPromptToken is p: the time of an uncached prompt token.
	PerPromptToken time.Duration `yaml:"per_prompt_token"`
	// Chunk is the prompt tokens that a step takes at most: vLLM's --max-num-batched-tokens.
	Chunk int `yaml:"chunk"`
	// KVTokens is the tokens that the KV cache holds, until the replica's own metrics tell (Sample.KVTokens). weir's model of
	// the cache takes a byte for each, within 1.3x.
	KVTokens int `yaml:"kv_tokens"`
	// Seats is the sequences that run at once: vLLM's --max-num-seqs.
	Seats int `yaml:"seats"`
	// OutputTokens is the answer that a request is expected to get, in tokens, until the replicas' own counters tell
	// (Pool.Output); a smaller max_tokens of the request takes its place.
	OutputTokens int `yaml:"output_tokens"`
	// MaxKVPercent is the share of the KV cache that weir uses, 1 to 100: what is in use is a share of that everywhere, and the
	// knee is at all of it.
	MaxKVPercent int `yaml:"max_kv_percent"`
	// Learn is whether the constants of the step model are learned from each replica's own counters, from those above on, or
	// stay as they are.
	Learn bool `yaml:"learn"`
	// MaxBacklog fixes the knee: the wait behind a replica's backlog, V*P, from which on nothing more is sent there, up to an hour.
	// 0 computes it from the step model (knee.Rates.Tau), as it should be but to compare with: docs/knee.md has a sweep. Bulk
	// keeps to a quarter of it (package gate).
	MaxBacklog time.Duration `yaml:"max_backlog"`
}

// profiles are the step models of three deployments on H100, and what is alike in all of them.
// 8B on one GPU: 45 % of the roofline, step terms as fitted by BLIS. 32B on two: prefill measured by llm-d
// (2026-08-17), b fitted to its published ladder. 70B on four: prefill and KV measured by llm-d.
// seats and chunk are vLLM's defaults for them; 256 output tokens is a chat answer's order of size.
var profiles = map[string]Config{
	"8B":  {Step: 6900 * time.Microsecond, PerContextToken: 76, PerPromptToken: 27800, KVTokens: 421_000},
	"32B": {Step: 15500 * time.Microsecond, PerContextToken: 50, PerPromptToken: 55000, KVTokens: 307_000},
	"70B": {Step: 16700 * time.Microsecond, PerContextToken: 48, PerPromptToken: 61900, KVTokens: 461_000},
}

// maxTokens bounds every count of a Config, and what a replica tells of its memory.
const maxTokens = 1 << 30

// DefaultProfile is the profile of a Config that names none.
const DefaultProfile = "8B"

// Default returns the constants of a profile: the Config to decode an operator's settings onto. ok is false
// when there is no such profile.
func Default(profile string) (c Config, ok bool) {
	c, ok = profiles[profile]
	c.Profile = profile
	c.PerSequence = 4400 * time.Nanosecond // the step model's a, one for all profiles
	c.Chunk, c.Seats, c.OutputTokens, c.MaxKVPercent, c.Learn = 8192, 256, 256, 100, true
	return c, ok
}

// Validate returns every fault of c, joined; each begins with its key and a colon.
func (c Config) Validate() error {
	var errs []error
	if _, ok := profiles[c.Profile]; !ok {
		errs = append(errs, fmt.Errorf("profile: no profile %q: one of 8B, 32B, 70B", c.Profile))
	}
	for _, d := range []struct {
		key   string
		v     time.Duration
		least time.Duration
	}{
		{"step", c.Step, 1}, {"per_sequence", c.PerSequence, 0},
		{"per_context_token", c.PerContextToken, 0}, {"per_prompt_token", c.PerPromptToken, 1},
	} {
		if d.v < d.least || d.v > time.Minute {
			errs = append(errs, fmt.Errorf("%s: %v is not between %v and 1m", d.key, d.v, d.least))
		}
	}
	if c.MaxBacklog < 0 || c.MaxBacklog > time.Hour {
		errs = append(errs, fmt.Errorf("max_backlog: %v is not between 0s and 1h", c.MaxBacklog))
	}
	if c.MaxKVPercent < 1 || c.MaxKVPercent > 100 {
		errs = append(errs, fmt.Errorf("max_kv_percent: %d is not between 1 and 100", c.MaxKVPercent))
	}
	for _, n := range []struct {
		key string
		v   int
	}{{"chunk", c.Chunk}, {"kv_tokens", c.KVTokens}, {"seats", c.Seats}, {"output_tokens", c.OutputTokens}} {
		if n.v < 1 || n.v > maxTokens {
			errs = append(errs, fmt.Errorf("%s: %d is not between 1 and %d", n.key, n.v, maxTokens))
		}
	}
	return errors.Join(errs...)
}

// Rates are the step model's constants in seconds.
func (c Config) Rates() knee.Rates {
	return knee.Rates{
		Step: c.Step.Seconds(), Seq: c.PerSequence.Seconds(), Context: c.PerContextToken.Seconds(),
		Token: c.PerPromptToken.Seconds(), Chunk: float64(c.Chunk),
	}
}
