package route

import (
	"math"

	"github.com/weirproxy/weir/pkg/chain"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/prompt"
)

// measure makes the prompt's tokens what its model's texts have, as far as the pool has learned it. Those of token ids are
// counted already.
func (d *Decision) measure(p *pool.Pool) {
	d.block = chain.BlockTokens
	switch {
	case d.Prompt.Exact:
		return
	case d.Prompt.Reason != prompt.ReasonNone:
		d.text = p.Unread()
	default:
		d.text = p.Text(d.Prompt.Model)
	}
	scale := d.text.Scale()
	d.plain = float64(d.Prompt.Tokens)
	d.block *= scale
	d.Prompt.Tokens = int(math.Ceil(d.plain * scale)) // an empty body has none
}

// kind is what the length of its answer is learned by.
func (d *Decision) kind() pool.Kind { return pool.Kind{Model: d.Prompt.Model, Class: d.Class} }
