package sim

import (
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
	"github.com/weirproxy/weir/pkg/lab/step"
)

// past stands where a router would, for clients that know the address of one replica, the first, and send to it.
type past struct{}

func (past) Arrive(_ time.Duration, c *policy.Call) bool {
	c.State, c.Slot = policy.Sent, 0
	return false
}

func (past) Release(_ time.Duration, done []*policy.Call) []*policy.Call { return done }
func (past) Next() (time.Duration, bool)                                 { return 0, false }
func (past) First(time.Duration, *policy.Call)                           {}
func (past) End(time.Duration, *policy.Call) bool                        { return false }
func (past) Retry(time.Duration, *policy.Call) bool                      { return false }
func (past) Refuse(time.Duration, int)                                   {}
func (past) Observe(time.Duration, int, step.Stats) bool                 { return false }
