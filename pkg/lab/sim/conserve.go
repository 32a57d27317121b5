package sim

import "fmt"

// conserve reports the first law of conservation that the simulation breaks: at the end of a run nothing is left
// anywhere, what the replicas computed is what the requests asked for, and each request has one end.
func (s *Sim) conserve() error {
	t := &s.run.total
	if t.arrived != t.answered+t.late+t.refused+t.lost {
		return fmt.Errorf("sim: of %d requests %d were answered, %d late, %d refused and %d lost", t.arrived, t.answered, t.late, t.refused, t.lost)
	}
	if len(s.live)+len(s.run.held)+s.open != 0 {
		return fmt.Errorf("sim: %d requests run, %d are held, %d are open at the end", len(s.live), len(s.run.held), s.open)
	}
	var prompt, output int64
	for i, r := range s.replicas {
		if err := r.Check(); err != nil {
			return fmt.Errorf("sim: replica %d: %w", i, err)
		}
		st := r.Stats()
		if st.Running+st.Waiting+st.Arriving+st.KVUsed != 0 {
			return fmt.Errorf("sim: replica %d is not idle at the end: %+v", i, st)
		}
		d := s.run.since(i)
		d.add(s.fates[i].gone)
		prompt, output = prompt+d.prompt, output+d.output
	}
	if prompt != t.prompt || output != t.output {
		return fmt.Errorf("sim: requests had %d prompt and %d answer tokens, replicas computed %d and %d", t.prompt, t.output, prompt, output)
	}
	return nil
}
