package policy

import (
	"time"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/prefix"
)

// prefixHash sends all prompts that begin alike to one replica, whatever its load: consistent hashing of the prompt's
// first hashTokens. The rule has no word about depth. Published defaults hash the first hundred characters, which
// sends all who share a system prompt to one replica; 2,048 tokens reaches past it in every workload here.
type prefixHash struct{ *ledger }

const hashTokens = 2048

func (p *prefixHash) pick(_ time.Duration, c *Call) int {
	return p.home(c, func(int) bool { return true })
}

// home is the first replica of the key's ring that may take it, which at least one may. Rendezvous hashing gives each
// key a ring of its own.
func (l *ledger) home(c *Call, may func(slot int) bool) (home int) {
	key := l.rng.Uint64() // nothing to share: anywhere
	if blocks := c.Chain(); len(blocks) > 0 {
		key = uint64(blocks[min(len(blocks), hashTokens/chain.BlockTokens)-1])
	}
	high := uint64(0)
	for i := range l.n() {
		if s := prefix.Score(key, l.ids[i]); s >= high && may(i) {
			home, high = i, s
		}
	}
	return home
}
