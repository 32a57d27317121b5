package policy

import "math"

// shedByChance refuses bulk with a probability that rises with saturation, min(300*s^5, 1): next to nobody up to 0.1, 10 % at
// 0.2, all from 0.32 on. It is the llm-d router's probabilistic admitter with the constants that it ships with
// (pkg/epp/framework/plugins/requestcontrol/admitter/probabilisticadmitter, README.md, 2026), which reads the pages as they are.
func shedByChance(s *saturation) float64 {
	return min(shedScale*math.Pow(s.plain(), shedPower), 1)
}

const (
	shedScale = 300
	shedPower = 5
)
