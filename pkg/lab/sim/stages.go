package sim

import "github.com/weirproxy/weir/pkg/lab/workload"

// Stages runs a workload on a new deployment and returns each stage's result, nil for the stages that only warm up.
// span is that of a workload of one stage; several are each measured whole, until the last answer.
func Stages(cfg Config, stages []workload.Stage, span Span) ([]*Result, error) {
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if len(stages) > 1 {
		span = Span{}
	}
	results := make([]*Result, len(stages))
	for i, stage := range stages {
		r, err := s.Run(stage.Source, span)
		if err != nil {
			return nil, err
		}
		if !stage.Warm {
			results[i] = r
		}
	}
	return results, nil
}
