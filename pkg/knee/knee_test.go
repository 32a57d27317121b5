package knee

import (
	"math"
	"testing"
)

// rates are round numbers, so that every wanted value below is a hand calculation.
var rates = Rates{Step: 0.010, Seq: 0.001, Context: 0.00001, Token: 0.0001, Chunk: 1000}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(1, math.Abs(b)) }

func TestDecodeIsLinear(t *testing.T) {
	for _, c := range []struct{ seqs, ctx, want float64 }{
		{0, 0, 0.010},
		{1, 0, 0.011},
		{0, 1000, 0.020},
		{10, 5000, 0.010 + 0.010 + 0.050},
	} {
		if got := rates.Decode(c.seqs, c.ctx); !near(got, c.want) {
			t.Errorf("Decode(%v, %v) = %v, want %v", c.seqs, c.ctx, got, c.want)
		}
	}
}

func TestPrefillSharesOneStepPerChunk(t *testing.T) {
	for _, c := range []struct{ d, want float64 }{
		{0, 0.0001},
		{0.010, 0.00011},
		{1, 0.0011},
	} {
		if got := rates.Prefill(c.d); !near(got, c.want) {
			t.Errorf("Prefill(%v) = %v, want %v", c.d, got, c.want)
		}
	}
}

func TestTauIsTwoChunksAndAtLeastHalfASecond(t *testing.T) {
	for _, c := range []struct {
		chunk, d, want float64
	}{
		{1000, 0, 0.5},      // 2 * 0.1 s is under the floor
		{1000, 0.149, 0.5},  // 2 * 0.249 s, still under
		{1000, 0.151, .502}, // just above it
		{8192, 0.010, 2 * (0.8192 + 0.010)},
	} {
		r := rates
		r.Chunk = c.chunk
		if got := r.Tau(c.d); !near(got, c.want) {
			t.Errorf("chunk %v: Tau(%v) = %v, want %v", c.chunk, c.d, got, c.want)
		}
	}
}

func TestMissPricesBacklogOverWorkUpToTwenty(t *testing.T) {
	for _, c := range []struct{ wait, work, want float64 }{
		{0, 0.1, 1},
		{0.05, 0.1, 1.5},
		{0.1, 0.1, 2},
		{2, 0.1, 21},
		{2.1, 0.1, 21},
		{1e9, 1e-9, 21},
		{5, 0, 1},  // nothing seen yet
		{5, -1, 1}, // nothing sensible
	} {
		if got := Miss(c.wait, c.work); !near(got, c.want) {
			t.Errorf("Miss(%v, %v) = %v, want %v", c.wait, c.work, got, c.want)
		}
	}
}
