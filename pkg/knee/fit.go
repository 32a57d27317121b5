package knee

import (
	"math"
	"time"
)

// A Fit learns the constants of one replica's steps from what its own counters tell between two scrapes. With the mean gap g
// between two tokens of an answer, B sequences that decode with ctx tokens of context, and q uncached prompt tokens computed
// in a second, a step takes
//
//	g = x0*(c0 + a*B) + xb*b*ctx + xp*p*q*g
//
// c0 to p are those from which it began; x0, xb and xp, 1 at first, are what it learns, by a Kalman filter: each x is a
// random walk, and a sample tells of their sum, weighted by the parts of g. What all three have in common, how fast the
// replica is, moves soon and is told by every sample; what tells them apart moves slowly and needs samples of different
// load. Where the load never changes they keep their ratio, and their sum is right.
type Fit struct {
	from    Rates
	x       [3]float64
	cov     [3][3]float64
	bias    float64    // moving mean of the logarithm of samples over their predictions,
	off     float64    // and of its square around that
	parts   [3]float64 // of the last sample: they sum to 1
	n       int
	at      time.Time
	settles int // samples yet for which all that is off is taken for a change of speed
}

// Steps is what a replica did between two scrapes. Seqs, Context and Prompt are means over its gaps.
type Steps struct {
	At      time.Time
	Gap     float64 // g: seconds
	Gaps    float64 // how many
	Seqs    float64 // B
	Context float64 // ctx
	Prompt  float64 // q: tokens per second
}

const (
	// minGaps is the least number of gaps that tell something (DESIGN.md 4).
	minGaps = 5
	// priorAlike and priorApart are what is believed of constants that nobody has measured: standard deviations, relative,
	// of how fast the replica is, and of each part beside that. The 8B profile's are 0.4 to 1.6 times those of 32B and 70B.
	priorAlike, priorApart = 1.0, 0.5
	// driftAlike and driftApart are how far x walks from scrape to scrape. With the least noise, driftAlike makes a sample's gain
	// 0.2 where many were seen. fade bounds both where nothing tells: at 1, and 0.15.
	driftAlike, driftApart = 0.02, 0.003
	fade                   = driftAlike * driftAlike
	// A sample that is off by more than outlier standard deviations teaches nothing by itself. A replica that has slowed shows in
	// errors of one sign: their mean, over biasGain, passes three of its own standard deviations, which is one of a sample's,
	// and then the replica is taken to be slower by that, in all its parts, and for settleFor samples, until none tells of the
	// time before, all that is off is taken for that.
	outlier   = 3
	biasGain  = 0.2
	settleFor = 20
	// leastNoise and mostNoise bound the standard deviation of a sample, relative, between which it is learned. Errors of B
	// and ctx last from sample to sample, so that it is not taken to be less than it mostly is.
	leastNoise, mostNoise = 0.1, 0.3
	// offGain is the weight of a sample in the mean of squared errors.
	offGain = 0.05
	// maxStep bounds the logarithm of what one sample may say; leastOff is the least squared error that is taken for usual. minRate
	// and maxRate bound x.
	maxStep          = 1.1
	leastOff         = 0.03 * 0.03
	minRate, maxRate = 0.02, 50
	// maxLoad and maxGap are more than any replica has of sequences and tokens, and than it takes for one, in seconds.
	maxLoad = 1e12
	maxGap  = 3600
)

// NewFit begins from the constants of a profile.
func NewFit(from Rates) Fit {
	f := Fit{from: from, x: [3]float64{1, 1, 1}, parts: [3]float64{1, 0, 0}}
	f.Forget()
	return f
}

// Forget keeps what was learned and doubts it.
func (f *Fit) Forget() {
	f.cov = covariance(priorAlike, priorApart)
	f.bias, f.off = 0, mostNoise*mostNoise
}

func covariance(alike, apart float64) (c [3][3]float64) {
	for i := range c {
		for j := range c[i] {
			c[i][j] = alike * alike
		}
		c[i][i] += apart * apart
	}
	return c
}

// Observe takes a sample. One of fewer than minGaps gaps, or that no step can be, changes nothing.
func (f *Fit) Observe(s Steps) {
	for _, v := range []float64{s.Seqs, s.Context, s.Prompt} {
		if !(v >= 0 && v <= maxLoad) {
			return
		}
	}
	if !(s.Gaps >= minGaps && s.Gap > 0 && s.Gap <= maxGap) {
		return
	}
	parts := [3]float64{f.from.Step + f.from.Seq*s.Seqs, f.from.Context * s.Context, f.from.Token * s.Prompt * s.Gap}
	all := parts[0] + parts[1] + parts[2]
	told := s.Gap / all
	for i := range parts {
		parts[i] /= all
	}
	f.walk()
	if !f.surprised(math.Log(told / f.expect(parts))) {
		f.learn(parts, told)
	}
	f.parts, f.at = parts, s.At
	f.n++
}

// surprised keeps the books of the errors, and reports whether a sample is too far off to learn from. err is the logarithm of
// the sample over its prediction.
func (f *Fit) surprised(err float64) bool {
	usual := math.Sqrt(max(f.off, leastOff))
	far := math.Abs(err) > outlier*usual
	err = min(max(err, -maxStep), maxStep)
	f.bias += biasGain * (err - f.bias)
	off := min(math.Abs(err-f.bias), 2*usual)
	f.off += offGain * (off*off - f.off)
	switch {
	case math.Abs(f.bias) > usual:
		f.Scale(math.Exp(f.bias))
		f.bias, f.settles = 0, settleFor
	case f.settles > 0:
		f.Scale(math.Exp(biasGain * err))
		f.settles--
	default:
		return far
	}
	return true
}

// walk widens what is believed by one scrape.
func (f *Fit) walk() {
	drift := covariance(driftAlike, driftApart)
	for i := range f.cov {
		for j := range f.cov[i] {
			f.cov[i][j] += drift[i][j] - fade*f.cov[i][j]
		}
	}
}

// expect is what x makes of the parts.
func (f *Fit) expect(parts [3]float64) (sum float64) {
	for i := range parts {
		sum += parts[i] * f.x[i]
	}
	return sum
}

// learn is the step of the filter for told = parts * x + noise.
func (f *Fit) learn(parts [3]float64, told float64) {
	expected, spread := f.expect(parts), 0.0
	var toward [3]float64
	for i := range parts {
		for j := range parts {
			toward[i] += f.cov[i][j] * parts[j]
		}
		spread += parts[i] * toward[i]
	}
	err := told - expected
	noise := min(max(f.off, leastNoise*leastNoise), mostNoise*mostNoise) * expected * expected
	for i := range parts {
		f.x[i] = min(max(f.x[i]+toward[i]/(spread+noise)*err, minRate), maxRate)
		for j := range parts {
			f.cov[i][j] -= toward[i] * toward[j] / (spread + noise)
		}
	}
}

// Rates are the constants as learned.
func (f *Fit) Rates() Rates {
	r := f.from
	r.Step *= f.x[0]
	r.Seq *= f.x[0]
	r.Context *= f.x[1]
	r.Token *= f.x[2]
	return r
}

// Scale makes the replica that much slower than was learned: what another measure says of it.
func (f *Fit) Scale(by float64) {
	for i := range f.x {
		f.x[i] = min(max(f.x[i]*by, minRate), maxRate)
	}
}

// Learned is what a Fit knows, and how sure it is. Spreads are standard deviations as the filter believes them, relative.
type Learned struct {
	Rates   Rates
	Slow    float64    // a step of the last sample's load over that of the constants from which it began
	Spread  float64    // of Slow
	Spreads [3]float64 // of Step (and Seq), Context, Token
	Error   float64    // by which samples were off, relative: root mean square over the last 20
	Samples int
	At      time.Time // of the last one; zero: none
}

// Learned returns what f knows.
func (f *Fit) Learned() Learned {
	l := Learned{Rates: f.Rates(), Slow: f.expect(f.parts), Error: math.Sqrt(f.off), Samples: f.n, At: f.at}
	for i := range f.x {
		l.Spreads[i] = math.Sqrt(f.cov[i][i]) / f.x[i]
		for j := range f.x {
			l.Spread += f.parts[i] * f.parts[j] * f.cov[i][j]
		}
	}
	l.Spread = math.Sqrt(l.Spread) / l.Slow
	return l
}
