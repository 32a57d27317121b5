package sim

import (
	"reflect"
	"testing"
)

// TestGates: each gate that weir is compared with, beside bulk that saturates the pool, with two routers: all that comes in goes
// out (Run checks it), the same seed gives the same result, and only bulk is shed, by those gates that shed.
func TestGates(t *testing.T) {
	for name, sheds := range map[string]bool{"static-shed": true, "probabilistic": true, "static-hold": false} {
		var last *Result
		for range 2 {
			cfg := config("weir/gate="+name, 1)
			cfg.Routers = 2
			src := newGroups(1, 30, 1500)
			src.turns, src.bulk = 1, true
			_, r := mustRun(t, cfg, src, Span{})
			if last != nil && !reflect.DeepEqual(r, last) {
				t.Errorf("%s: two runs differ", name)
			}
			last = r
		}
		front, back := last.Classes["interactive"], last.Classes["bulk"]
		t.Logf("%s: bulk %d refused, %d late of %d", name, back.Refused, back.Late, back.Arrived)
		if front.Refused != 0 || (back.Refused > 0) != sheds || back.Answered == 0 {
			t.Errorf("%s: interactive %d refused, bulk %d of %d", name, front.Refused, back.Refused, back.Arrived)
		}
	}
}

// TestOverdue: an answer that begins past its class's deadline counts as one that is not in time, and its tokens count all the same.
func TestOverdue(t *testing.T) {
	cfg := config("weir/queue=none", 1)
	cfg.Replicas = 1
	src := newGroups(1, 60, 1500) // with more to compute than it can: the queue grows
	src.own, src.shared = 2600, 0
	_, r := mustRun(t, cfg, src, Span{})
	late := 0
	for _, ttft := range r.all.ttft {
		if ttft > 30 {
			late++
		}
	}
	if late < 100 || late > 1400 || r.Overdue != late || r.Late+r.Refused != 0 {
		t.Errorf("%d of %d overdue, want %d; %d late", r.Overdue, r.Answered, late, r.Late)
	}
	if share := r.Goodput / r.Throughput; share < 1-float64(late)/1500-1e-9 || share > 1-float64(late)/1500+1e-9 {
		t.Errorf("%v of the answers in time, %d of 1500 overdue", share, late)
	}
	if each := r.PromptRate / r.Throughput; each < 2599.9 || each > 2600.1 {
		t.Errorf("%v prompt tokens an answer, want 2600", each)
	}
}
