package replica

import "time"

// clock maps wall time to model time. At rate 0 model time stands still.
type clock struct {
	wall  time.Time
	model time.Duration
	rate  float64
}

func (c *clock) now(wall time.Time) time.Duration {
	return c.model + time.Duration(float64(wall.Sub(c.wall))*c.rate)
}

// setRate changes the rate from wall on; model time goes on from where it is.
func (c *clock) setRate(wall time.Time, rate float64) {
	c.model, c.wall, c.rate = c.now(wall), wall, rate
}

// until is the wall time from wall to a model time, rounded up so that the model is never asked too early.
// ok is false when the clock stands.
func (c *clock) until(t time.Duration, wall time.Time) (d time.Duration, ok bool) {
	if c.rate == 0 {
		return 0, false
	}
	return time.Duration(float64(t-c.now(wall))/c.rate) + 1, true
}
