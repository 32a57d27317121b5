package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// mooncakeBlock is the tokens in a block of a Mooncake trace, mooncakeStep the resolution of its times.
const (
	mooncakeBlock = 512
	mooncakeStep  = 3 * time.Second
)

func mooncakeRow(line string) (row, error) {
	var v struct {
		Timestamp *int64  `json:"timestamp"`
		Input     *int64  `json:"input_length"`
		Output    *int64  `json:"output_length"`
		IDs       []int64 `json:"hash_ids"`
	}
	if err := decode(line, &v); err != nil {
		return row{}, err
	}
	if err := given(field{"timestamp", v.Timestamp}, field{"input_length", v.Input}, field{"output_length", v.Output}); err != nil {
		return row{}, err
	}
	r := row{prompt: tokens(*v.Input), output: tokens(*v.Output), block: mooncakeBlock}
	r.named = r.prompt
	r.at = time.Duration(min(*v.Timestamp, maxTime.Milliseconds()+1)) * time.Millisecond
	if want := (r.prompt + mooncakeBlock - 1) / mooncakeBlock; len(v.IDs) != want && r.prompt <= MaxTokens {
		return row{}, fmt.Errorf("hash_ids has %d ids, input_length asks for %d", len(v.IDs), want)
	}
	for _, id := range v.IDs {
		if id < 0 {
			return row{}, fmt.Errorf("hash_ids has %d, below 0", id)
		}
		r.ids = append(r.ids, uint64(id))
	}
	return r, nil
}

// jitter spreads the rows of one time over the time until the next, 3 s at most, and keeps their order.
func jitter(rows []row, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := 0; i < len(rows); {
		at, width := rows[i].at, mooncakeStep
		j := i
		for j < len(rows) && rows[j].at == at {
			j++
		}
		if j < len(rows) {
			width = min(width, rows[j].at-at)
		}
		places := make([]time.Duration, j-i)
		for k := range places {
			places[k] = time.Duration(rng.Int64N(int64(width)))
		}
		slices.Sort(places)
		for k, p := range places {
			rows[i+k].at += p
		}
		i = j
	}
}
