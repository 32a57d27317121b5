package sim

import (
	"math"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/pool"
)

// TestTruthIsTold: what weir finds of its own predictions from the counters is what they are off by, and texts of another
// density than its first guess are learned.
func TestTruthIsTold(t *testing.T) {
	r := figuresOf(t, "W5-35", 16, Config{Routers: 1, Policy: policy.Weir + "/bytes_per_token=3.2"}, Span{Warmup: time.Minute, Until: 4 * time.Minute})
	for _, w := range []pool.What{pool.PromptTokens, pool.CachedTokens, pool.OutputTokens, pool.FirstToken} {
		e, told := r.Errors[w], r.Truth[w]
		if ratio := told.Predicted / told.Actual; math.Abs(ratio/e.Bias-1) > 0.07 {
			t.Errorf("%v: weir finds a bias of %v, it is %v", w, ratio, e.Bias)
		}
		if math.Abs(e.Bias-1) > 0.05 {
			t.Errorf("%v: bias %v", w, e.Bias)
		}
	}
	if e := r.Errors[pool.PromptTokens]; e.P90 > 0.02 || e.N < 2000 {
		t.Errorf("prompt tokens: %+v", e)
	}
	if e := r.Errors[pool.FirstToken]; e.Median > 0.15 {
		t.Errorf("time to the first token: %+v", e)
	}
}
