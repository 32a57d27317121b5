package sim

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/lab/policy"
)

// churned runs 40 s of 30 requests/s through what events say.
func churned(t *testing.T, name string, routers int, events string) (*Sim, *Result) {
	t.Helper()
	cfg := config(name, 1)
	cfg.Routers = routers
	var err error
	if cfg.Events, err = ParseEvents(events); err != nil {
		t.Fatal(err)
	}
	return mustRun(t, cfg, newGroups(1, 30, 1200), Span{})
}

// TestEveryPolicyOutlivesChurn: every request has one end, and what came in went out, whatever comes and goes.
func TestEveryPolicyOutlivesChurn(t *testing.T) {
	const events = "slow:0:0.5@1s,die:1@10s,restart:0@12s,mute:2@14s,freeze:3@15s,join:1@20s,die:1@25s,restart:all@26s,join:1@30s,die:all@39s"
	for _, name := range policy.Names() {
		_, r := churned(t, name, 2, events)
		if r.Arrived != 1200 || r.Arrived != r.Answered+r.Late+r.Refused+r.Lost || r.Lost == 0 {
			t.Errorf("%s: %d arrived, %d answered, %d late, %d shed, %d lost", name, r.Arrived, r.Answered, r.Late, r.Refused, r.Lost)
		}
		_, again := churned(t, name, 2, events)
		if again.Figures != r.Figures {
			t.Errorf("%s: %+v\nand before %+v", name, again.Figures, r.Figures)
		}
	}
}

// TestDeath: what ran on the dead replica is lost and nothing else, and what finds it dead goes to the second choice.
func TestDeath(t *testing.T) {
	_, alive := churned(t, policy.Weir, 1, "slow:0:1@0s")
	s, r := churned(t, policy.Weir, 1, "die:2@20s")
	if r.Lost == 0 || r.Lost > 40 || r.Refused+r.Late > 0 {
		t.Errorf("%d lost, %d shed, %d late", r.Lost, r.Refused, r.Late)
	}
	if r.Tried > 0 {
		t.Errorf("%d requests went to the dead replica after its first second", r.Tried)
	}
	if n := s.replicas[2].Stats().Arriving + s.replicas[2].Stats().Running; n != 0 {
		t.Errorf("%d run on the dead replica", n)
	}
	if alive.Lost != 0 || alive.Answered != 1200 {
		t.Errorf("without a death %d are lost, %d answered", alive.Lost, alive.Answered)
	}
	if _, r := churned(t, policy.Weir, 1, "die:all@20s"); r.Lost < 500 {
		t.Errorf("with all dead %d are lost", r.Lost)
	}
}

// TestJoin: a replica that was not there from the start gets nothing until it joins, and its share from then on.
func TestJoin(t *testing.T) {
	never, _ := churned(t, policy.Weir, 1, "join:2@1h")
	s, r := churned(t, policy.Weir, 1, "join:2@10s")
	if r.Lost > 0 || never.replicas[2].Stats().Steps > 0 {
		t.Errorf("%d lost; %d steps of one that never joined", r.Lost, never.replicas[2].Stats().Steps)
	}
	if n := s.replicas[2].Stats().Finished; n < 60 {
		t.Errorf("%d of some 900 answers come from the one that joined", n)
	}
	if again, _ := churned(t, policy.Weir, 1, "die:2@5s,join:2@10s,join:2@11s,die:2@12s,die:2@13s"); again.replicas[2].Stats().Finished > 200 {
		t.Error("a replica that is dead goes on")
	}
}

// TestMetricsFail: nobody is told of a muted replica, and of a frozen one the same again.
func TestMetricsFail(t *testing.T) {
	cfg := config("random", 1)
	cfg.Events, _ = ParseEvents("mute:0@10s,freeze:1@10s,die:2@10s")
	f := &fake{state: policy.Sent, slot: 3}
	s := withFakes(t, cfg, f)
	if _, err := s.Run(newGroups(1, 30, 600), Span{}); err != nil {
		t.Fatal(err)
	}
	if at := f.observed[0]; at[len(at)-1] > 10*time.Second || len(at) < 9 {
		t.Errorf("a muted replica is seen at %v", at[len(at)-1])
	}
	if at, all := f.observed[1], f.stats[1]; at[len(at)-1] < 19*time.Second || all[len(all)-1] != all[10] {
		t.Errorf("a frozen replica shows %+v and then %+v", all[10], all[len(all)-1])
	}
	if len(f.observed[2]) > 10 || f.refused < 9 {
		t.Errorf("a dead replica is seen %d times and refuses %d", len(f.observed[2]), f.refused)
	}
}

// TestRestart: the router that comes new knows nothing of what the old one sent, and gets no word of it.
func TestRestart(t *testing.T) {
	cfg := config(policy.Weir, 1)
	cfg.Events, _ = ParseEvents("restart:0@20s")
	first := &fake{state: policy.Sent, slot: 1}
	s := withFakes(t, cfg, first)
	r, err := s.Run(newGroups(1, 30, 1200), Span{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Answered != 1200 || first.arrived < 500 || first.arrived > 700 || first.ended != first.arrived {
		t.Errorf("%d answered; the first router got %d and heard the end of %d", r.Answered, first.arrived, first.ended)
	}
	held := &fake{state: policy.Held}
	s = withFakes(t, cfg, held)
	if r, err = s.Run(&one{Prompt: 100, Output: 1, At: time.Second}, Span{}); err != nil || r.Refused != 1 {
		t.Errorf("what the old router held: %+v, %v", r, err)
	}
}

// TestSlow: half the speed is half the speed.
func TestSlow(t *testing.T) {
	ttft := func(events string) float64 {
		cfg := config("random", 1)
		cfg.Replicas = 1
		cfg.Events, _ = ParseEvents(events)
		_, r := mustRun(t, cfg, &one{Prompt: 3000, Output: 1, At: time.Second}, Span{})
		return r.TTFTMean - cfg.Profile.API.Seconds()
	}
	if full, half := ttft("slow:0:1@0s"), ttft("slow:0:0.5@500ms"); half < 1.999*full || half > 2.001*full {
		t.Errorf("%v s at full speed, %v at half", full, half)
	}
}
