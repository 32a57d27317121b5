package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/pkg/knee"
	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// settings is weir's policy and what it is told of its replicas.
type settings struct {
	route   route.Config
	gate    func(Env, *weir) Router // nil: weir's own
	profile step.Profile            // what the constants are from that it is told
	rates   float64                 // how many times as slow it is told that the replicas are
	tau     time.Duration           // the knee that it is told; 0: none
	learn   bool                    // whether it learns what they are
	gaps    bool                    // whether they tell the gaps between their tokens
	told    told
}

// maxRates bounds how wrong the rates may be that weir is told.
const maxRates = 1000

// exactly is what one is told who knows the replicas.
func exactly(p step.Profile) settings {
	return settings{route: route.Default(), profile: p, rates: 1, learn: true, gaps: true}
}

// settingsOf is that for replicas of a profile, with lines of it changed.
func settingsOf(p step.Profile, lines []string) (s settings, err error) {
	s = exactly(p)
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		if err := s.set(key, value); err != nil {
			return s, fmt.Errorf("policy: %w", err)
		}
	}
	if err := errors.Join(s.route.Validate(), s.replica().Validate()); err != nil {
		return s, fmt.Errorf("policy: %w", err)
	}
	return s, nil
}

// lineKeys are what set knows.
const lineKeys = "balance_on, affinity, queue, rule, gate, profile, rates, max_backlog, learn, gaps, bytes_per_token or kv_tokens"

func (s *settings) set(key, value string) (err error) {
	switch key {
	case "balance_on":
		s.route.Pick.BalanceOn = value
	case "affinity":
		s.route.Pick.Affinity = value
	case "queue":
		s.route.Queue = value
	case "rule":
		s.route.Rule = value
	case "gate":
		if s.gate = gates[value]; s.gate == nil {
			return fmt.Errorf("gate: %q is none of %s", value, strings.Join(slices.Sorted(maps.Keys(gates)), ", "))
		}
		s.route.Queue = route.NoQueue // it picks for those whom that gate admits
	case "profile":
		s.profile, err = step.Lookup(value)
	case "rates":
		if s.rates, err = strconv.ParseFloat(value, 64); err == nil && !(s.rates > 0 && s.rates <= maxRates) {
			err = fmt.Errorf("%v is not between 0 and %d", s.rates, maxRates)
		}
	case "max_backlog":
		s.tau, err = time.ParseDuration(value)
	case "learn":
		s.learn, err = strconv.ParseBool(value)
	case "gaps":
		s.gaps, err = strconv.ParseBool(value)
	default:
		var ok bool
		if ok, err = s.told.set(key, value); !ok {
			return fmt.Errorf("no key %q: use %s", key, lineKeys)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// replica is what an operator would set for these replicas.
func (s *settings) replica() pool.Config {
	p := s.profile
	slow := func(d time.Duration) time.Duration { return time.Duration(float64(d) * s.rates) }
	cfg, _ := pool.Default(pool.DefaultProfile)
	cfg.Step, cfg.PerSequence, cfg.PerContextToken, cfg.PerPromptToken = slow(p.Base), slow(p.PerSeq), slow(p.PerContext), slow(p.PerPrefill)
	cfg.Chunk, cfg.Seats, cfg.KVTokens, cfg.Learn, cfg.MaxBacklog = p.MaxBatch, p.MaxSeqs, p.KVTokens, s.learn, s.tau
	if s.told.kvTokens > 0 {
		cfg.KVTokens = s.told.kvTokens
	}
	return cfg
}

// constants is the step model of replicas of a profile, in seconds.
func constants(p step.Profile) knee.Rates {
	s := exactly(p)
	return s.replica().Rates()
}
