package policy

// shedAbove refuses bulk while the pool is saturated: what the Gateway API inference extension and the llm-d router do with
// requests of negative priority unless flow control is switched on (pkg/epp/requestcontrol/admission.go, 2026).
func shedAbove(s *saturation) float64 {
	if s.corrected() >= 1 {
		return 1
	}
	return 0
}
