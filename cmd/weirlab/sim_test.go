package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func simulate(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, progress bytes.Buffer
	err = runSim(t.Context(), args, &out, &progress)
	return out.String(), progress.String(), err
}

// TestSimJSON: a line for each workload, load, policy and seed, in that order, with every field; the same bytes again.
func TestSimJSON(t *testing.T) {
	args := []string{"-workload", "W7,W6", "-policy", "weir,round-robin", "-load", "6,8", "-seeds", "2", "-replicas", "2", "-length", "140s",
		"-routers", "2", "-stale", "500ms", "-profile", "8B", "-json"}
	out, progress, err := simulate(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	again, _, _ := simulate(t, args...)
	if out != again {
		t.Errorf("two runs differ:\n%s\n%s", out, again)
	}
	if n := strings.Count(progress, "\n"); n != 16 {
		t.Errorf("%d lines of progress:\n%s", n, progress)
	}
	var seen []string
	for line := range strings.Lines(out) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, strings.Join([]string{row["workload"].(string), text(row["load"]), row["policy"].(string), text(row["seed"])}, " "))
		want := strings.Fields("ceiling e2e_mean goodput hit_rate late load policy replicas seed shed skew throughput tpot_mean ttft_mean ttft_p50 ttft_p90 ttft_p99 workload")
		if row["workload"] == "W7" {
			want = append(want, "classes")
			slices.Sort(want)
			if _, ok := row["late"].(map[string]any)["bulk"]; !ok {
				t.Errorf("no late bulk in %s", line)
			}
		}
		if got := slices.Sorted(maps.Keys(row)); !slices.Equal(got, want) {
			t.Errorf("fields %v, want %v", got, want)
		}
		if row["ttft_mean"].(float64) <= 0 || row["throughput"].(float64) <= 0 || row["replicas"].(float64) != 2 {
			t.Errorf("%s", line)
		}
	}
	var want []string
	for _, w := range []string{"W7", "W6"} {
		for _, load := range []string{"6", "8"} {
			for _, p := range []string{"weir", "round-robin"} {
				want = append(want, w+" "+load+" "+p+" 1", w+" "+load+" "+p+" 2")
			}
		}
	}
	if !slices.Equal(seen, want) {
		t.Errorf("rows %q, want %q", seen, want)
	}
}

func text(number any) string {
	b, _ := json.Marshal(number)
	return string(b)
}

func TestSimTable(t *testing.T) {
	out, _, err := simulate(t, "-workload", "W3", "-policy", "sticky,oracle", "-load", "5", "-seeds", "3", "-length", "80s")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"TTFT mean", "sticky  0.", "oracle  0.", "(0.", "W3: 8 replicas 32B that cache 2.46M tokens together, 1 router(s); texts of up to "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestSimMixed: replicas of several kinds are named with their number, and a slower half makes a pool slower.
func TestSimMixed(t *testing.T) {
	run := func(args ...string) string {
		t.Helper()
		out, _, err := simulate(t, append([]string{"-workload", "W10", "-policy", "weir", "-load", "20", "-seeds", "1", "-replicas", "5", "-length", "80s"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	out := run("-profile", "8B,32B", "-kv-tokens", "400000,200000,100000")
	if want := "W10: 5 replicas 3 x 8B and 2 x 32B that cache 1.30M tokens together"; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	one, all := run("-profile", "8B"), run("-profile", "8B,8B,8B")
	if one != all || one == out {
		t.Errorf("8B, 8B named three times and mixed:\n%s\n%s\n%s", one, all, out)
	}
}

// TestSimPlots: W5 is a name, for W5-35, and a plot of each sort is written, with the same bytes again.
func TestSimPlots(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plots")
	files := map[string]string{}
	for range 2 {
		out, _, err := simulate(t, "-workload", "W5", "-policy", "weir,round-robin", "-load", "5,8", "-seeds", "1", "-length", "80s", "-json", "-plot", dir)
		if err != nil || !strings.Contains(out, `"workload":"W5","policy":"weir","load":5,`) {
			t.Fatalf("%v: %s", err, out)
		}
		for _, name := range []string{"ttft-mean", "ttft-p99", "hits"} {
			b, err := os.ReadFile(filepath.Join(dir, "W5-"+name+".svg"))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"<svg ", ">W5: ", ">weir</text>", ">round-robin</text>", ">load, requests/s</text>"} {
				if !strings.Contains(string(b), want) {
					t.Errorf("%s: no %q", name, want)
				}
			}
			if last, ok := files[name]; ok && last != string(b) {
				t.Errorf("%s: two runs differ", name)
			}
			files[name] = string(b)
		}
	}
}

func TestSimTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "some.jsonl")
	var rows strings.Builder
	for range 200 {
		rows.WriteString(`{"timestamp": 400000, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}` + "\n")
	}
	if err := os.WriteFile(file, []byte(strings.Replace(rows.String(), "400000", "0", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := simulate(t, "-trace", file, "-speed", "2", "-policy", "weir", "-seeds", "1", "-json")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, `"workload":"some.jsonl","policy":"weir","load":2,`) || !strings.Contains(out, `"shed":{"interactive":0}`) {
		t.Error(out)
	}
}

func TestSimRefuses(t *testing.T) {
	for says, args := range map[string][]string{
		"no workload":       {"-workload", "W0"},
		"no policy":         {"-policy", "best"},
		"no number above 0": {"-load", "x"},
		"600 replicas":      {"-replicas", "600"},
		"9 routers":         {"-routers", "9"},
		"less than 1":       {"-seeds", "0"},
		"no profile":        {"-profile", "9B"},
		"flags only":        {"W3"},
		"-trace FILE":       {"-workload", "W4"},
		"only W4":           {"-workload", "W3", "-trace", "nowhere.jsonl"},
		"-load is none":     {"-load", "3", "-trace", "nowhere.jsonl"},
		"for a -trace":      {"-speed", "2"},
		"less than a block": {"-kv-tokens", "100000,1"},
		"is no number":      {"-kv-tokens", "100000,"},
		"profile \"\"":      {"-profile", "8B,"},
		"balance_on":        {"-policy", "weir/balance_on=luck"},
		"no key":            {"-policy", "weir/luck=good"},
		"no such file":      {"-trace", "nowhere.jsonl"},
		"only fill":         {"-length", "1m"},
		"3 values for 2":    {"-replicas", "2", "-profile", "8B,8B,32B"},
		"2 values for 1":    {"-replicas", "1", "-kv-tokens", "100000,200000"},
		"is more than":      {"-kv-tokens", "9223372036854775807"},
		"no request comes":  {"-load", "0.001", "-length", "61s"},
	} {
		if _, _, err := simulate(t, args...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestRefusesArguments: no command takes what it would not look at.
func TestRefusesArguments(t *testing.T) {
	for _, name := range []string{"calibrate", "sim", "profile", "bench-policy", "lessons"} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), []string{name, "more"}, &out, &errs); status != 1 || !strings.Contains(errs.String(), `not "more"`) || out.Len() > 0 {
			t.Errorf("%s: status %d, %s%s", name, status, out.String(), errs.String())
		}
	}
}

// TestOnAllCores: results come in order, an error ends it, and so does the context.
func TestOnAllCores(t *testing.T) {
	var seen []int
	double := func(i int) (int, error) { return 2 * i, nil }
	if err := onAllCores(t.Context(), 50, double, func(i, x int) error {
		seen = append(seen, x-i)
		return nil
	}); err != nil || len(seen) != 50 || !slices.IsSorted(seen) || seen[49] != 49 {
		t.Errorf("%v, %v", seen, err)
	}
	fault := errors.New("fault")
	told := 0
	count := func(int, int) error { told++; return nil }
	if err := onAllCores(t.Context(), 50, func(i int) (int, error) {
		if i == 20 {
			return 0, fault
		}
		return i, nil
	}, count); err != fault || told != 20 {
		t.Errorf("%v after %d", err, told)
	}
	if err := onAllCores(t.Context(), 9, double, func(int, int) error { return fault }); err != fault {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := onAllCores(ctx, 1000, func(i int) (int, error) {
		if i == 5 {
			cancel()
			<-ctx.Done()
		}
		return i, nil
	}, count); err != context.Canceled {
		t.Errorf("%v", err)
	}
}
