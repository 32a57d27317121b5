package sim

import (
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
	"github.com/weirproxy/weir/pkg/lab/workload"
)

// Fit is what is compared of a run of the ladder (workload b2b-ladder). 0 is not known.
type Fit struct {
	At15, At20 float64 // TTFT mean of two stages, seconds
	Mean, P90  float64 // TTFT of all requests of the ladder, seconds
	Tokens     float64 // answer tokens per second, mean of the stages of 40 requests/s and more
	Last       float64 // TTFT mean of the last stage, 60 requests/s
	LastTokens float64 // answer tokens per second in it
	TPOT       float64 // seconds in it
}

// What was measured with the ladder on 8 replicas of Qwen3-32B on two H100 each: by the llm-d project, in its guides
// optimized-baseline and, of the last stage, precise-prefix-cache-aware.
var (
	MeasuredRoundRobin = Fit{At15: 0.88, At20: 18.1, Mean: 58, P90: 107, Tokens: 5700, Last: 34.9, LastTokens: 5362, TPOT: 0.0704}
	MeasuredRouted     = Fit{Mean: 0.156, P90: 0.206, Tokens: 13_900, Last: 0.192, LastTokens: 13_932, TPOT: 0.0631}
)

// Ladder is one simulated run of the ladder.
type Ladder struct {
	Policy string
	B      time.Duration // the step model's b: per context token and step
	Rates  []float64     // of the measured stages, requests per second
	Stages []*Result
	Fit    Fit
}

// LadderPolicies is what the ladder is run with: what was measured without routing, the rule that was measured, and weir.
var LadderPolicies = []string{"round-robin", "weighted", "weir"}

// LadderB is the values of b for 32B that measurements allow: 128 KB per token and GPU at the memory's full speed, the
// profile's own, and BLIS's fit.
var LadderB = []time.Duration{39 * time.Nanosecond, 50 * time.Nanosecond, 76 * time.Nanosecond}

// ownB is the place of the profile's own in LadderB.
const ownB = 1

// RunLadder replays the ladder.
func RunLadder(policy string, b time.Duration) (*Ladder, error) {
	w, err := workload.Lookup("b2b-ladder")
	if err != nil {
		return nil, err
	}
	cfg := Config{Replicas: w.Replicas, Routers: 1, Policy: policy, Seed: 1}
	if cfg.Profile, err = step.Lookup(w.Profile); err != nil {
		return nil, err
	}
	cfg.Profile.PerContext = b
	stages, err := w.Stages(workload.Params{Rate: 1, Seed: cfg.Seed})
	if err != nil {
		return nil, err
	}
	results, err := Stages(cfg, stages, Span{})
	if err != nil {
		return nil, err
	}
	l := &Ladder{Policy: policy, B: b}
	for i, r := range results {
		if r != nil {
			l.Rates, l.Stages = append(l.Rates, stages[i].Rate), append(l.Stages, r)
		}
	}
	l.fit()
	return l, nil
}

func (l *Ladder) fit() {
	f, busy := &l.Fit, 0
	for i, r := range l.Stages {
		switch l.Rates[i] {
		case 15:
			f.At15 = r.TTFTMean
		case 20:
			f.At20 = r.TTFTMean
		case 60:
			f.Last, f.LastTokens, f.TPOT = r.TTFTMean, r.OutputRate, r.TPOTMean
		}
		if l.Rates[i] >= 40 {
			f.Tokens += r.OutputRate
			busy++
		}
	}
	all := Together(l.Stages)
	f.Mean, f.P90, f.Tokens = all.TTFTMean, all.TTFTP90, f.Tokens/float64(busy)
}
