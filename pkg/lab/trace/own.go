package trace

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weirproxy/weir/pkg/lab/step"
)

// version is the only one of weir's own format.
const version = 1

// classes is what class may be.
var classes = []string{"", "interactive", "bulk"}

func ownRow(line string) (row, error) {
	var v struct {
		Version *int64   `json:"v"`
		At      *int64   `json:"at_us"`
		Prompt  *int64   `json:"prompt"`
		Output  *int64   `json:"output"`
		Block   *int64   `json:"block"`
		Chain   []string `json:"chain"`
		Class   string   `json:"class"`
		Tenant  string   `json:"tenant"`
	}
	if err := decode(line, &v); err != nil {
		return row{}, err
	}
	if err := given(field{"v", v.Version}, field{"at_us", v.At}, field{"prompt", v.Prompt},
		field{"output", v.Output}, field{"block", v.Block}); err != nil {
		return row{}, err
	}
	switch {
	case *v.Version != version:
		return row{}, fmt.Errorf("v is %d, and only %d is known", *v.Version, version)
	case *v.Block < step.BlockTokens || *v.Block%step.BlockTokens != 0 || *v.Block > MaxTokens:
		return row{}, fmt.Errorf("block is %d, not a multiple of %d up to %d", *v.Block, step.BlockTokens, MaxTokens)
	case !slices.Contains(classes, v.Class):
		return row{}, fmt.Errorf("class is %q, not interactive or bulk", v.Class)
	}
	r := row{prompt: tokens(*v.Prompt), output: tokens(*v.Output), block: int(*v.Block), class: v.Class, flow: v.Tenant}
	r.at = time.Duration(min(*v.At, maxTime.Microseconds()+1)) * time.Microsecond
	if low, high := r.prompt/r.block, (r.prompt+r.output)/r.block; len(v.Chain) < low || len(v.Chain) > high {
		return row{}, fmt.Errorf("chain has %d hashes, prompt and output ask for %d to %d", len(v.Chain), low, high)
	}
	var err error
	r.named = len(v.Chain) * r.block
	r.ids, err = hashes(v.Chain)
	if err == nil && v.Tenant != "" {
		_, err = hex("tenant", v.Tenant)
	}
	return r, err
}

func hashes(chain []string) ([]uint64, error) {
	ids := make([]uint64, len(chain))
	for i, s := range chain {
		if len(s) != 16 {
			return nil, fmt.Errorf("chain has %q, not 16 hex digits", s)
		}
		var err error
		if ids[i], err = hex("chain", s); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func hex(name, s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%s has %q, not up to 16 hex digits", name, s)
	}
	return n, nil
}
