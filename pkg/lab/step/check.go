package step

import "fmt"

// Match returns how many tokens of s's prompt the cache holds now, by the rule of an admission. It reads only.
func (r *Replica) Match(s *Seq) (tokens int) {
	for _, h := range s.reusable() {
		if r.cache.byHash.find(h) == 0 {
			break
		}
		tokens += BlockTokens
	}
	return tokens
}

// Check reports the first law of conservation that the replica breaks, nil for none:
//
//	tokens    Reused + Prefilled + Decoded = Ended + Evicted + held by running sequences
//	blocks    each is held as often as running sequences list it, or is free
func (r *Replica) Check() error {
	held, refs := 0, make([]int32, len(r.cache.blocks))
	for _, s := range r.running {
		held += s.taken()
		for _, id := range s.blocks {
			refs[id]++
		}
	}
	st := &r.stats
	if in, out := st.Reused+st.Prefilled+st.Decoded, st.Ended+st.Evicted+int64(held); in != out {
		return fmt.Errorf("step: %d tokens came in, but %d ended, %d were evicted and %d are held", in, st.Ended, st.Evicted, held)
	}
	free := 0
	for id := 1; id < len(refs); id++ {
		if refs[id] != r.cache.blocks[id].refs {
			return fmt.Errorf("step: block %d counts %d users and has %d", id, r.cache.blocks[id].refs, refs[id])
		}
		if refs[id] == 0 {
			free++
		}
	}
	if free != r.cache.free {
		return fmt.Errorf("step: %d blocks are free, %d counted", free, r.cache.free)
	}
	return nil
}
