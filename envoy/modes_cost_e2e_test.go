package envoy_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
)

// What modeCosts sends: batches of requests one after the other, each mode's beside one that goes past weir.
const (
	costRounds = 8
	costBatch  = 20
)

// partialBuffer is Envoy's buffer in BUFFERED_PARTIAL: only a small one makes that mode cheap.
const partialBuffer = 32 << 10

// bufferOf sets the buffer, which ends retries of larger bodies as well.
func bufferOf(bytes int) []string {
	return []string{
		"    per_connection_buffer_limit_bytes: 33554432   # Envoy 1.36", fmt.Sprintf("    per_connection_buffer_limit_bytes: %d   # Envoy 1.36", bytes),
		"request_body_buffer_limit: 33554432         # 32 MiB", fmt.Sprintf("request_body_buffer_limit: %d         # 32 MiB", bytes),
	}
}

var costSizes = []int{1 << 10, 64 << 10, 600 << 10}

// cost is the sum of a way's batches.
type cost struct {
	took []time.Duration
	cpu  time.Duration // of Envoy and weir
}

func (c *cost) median() float64 {
	slices.Sort(c.took)
	return c.took[len(c.took)/2].Seconds()
}

// modeCosts returns the rows of the second table: times and CPU time in a mode over those of the same Envoy past weir.
func modeCosts(t *testing.T) string {
	weir := build(t)
	path := find(t, envoy.Newest)
	var rigs []*rig
	for _, mode := range allModes {
		o := rigOptions{mode: mode}
		if mode == envoy.Partial {
			o.edits = bufferOf(partialBuffer)
		}
		r := startRig(t, path, o)
		r.startWeir(t, weir)
		r.awaitIdle(t)
		rigs = append(rigs, r)
	}
	var rows strings.Builder
	rows.WriteString("| body | past weir |")
	for _, mode := range allModes {
		fmt.Fprintf(&rows, " %s |", mode.Name())
	}
	rows.WriteString("\n|---|---|" + strings.Repeat("---|", len(allModes)) + "\n")
	for _, size := range costSizes {
		through, past := make([]cost, len(rigs)), make([]cost, len(rigs))
		for round := range costRounds {
			for i, r := range rigs {
				r.batch(t, r.plain, size, round, &past[i])
				r.batch(t, r.front, size, round, &through[i])
			}
		}
		var all cost
		for i := range past {
			all.took = append(all.took, past[i].took...)
			all.cpu += past[i].cpu
		}
		fmt.Fprintf(&rows, "| %d KiB | %.2f ms, %.2f ms |", size>>10, 1e3*all.median(), 1e3*all.cpu.Seconds()/float64(len(all.took)))
		for i := range rigs {
			fmt.Fprintf(&rows, " %.1f, %.1f |", through[i].median()/past[i].median(), float64(through[i].cpu)/float64(past[i].cpu))
		}
		rows.WriteString("\n")
	}
	fmt.Fprintf(&rows, "\nIn BUFFERED_PARTIAL, of bodies up to 30 kB larger than a buffer of 1 MiB, over HTTP/1.1, no answer after 2 s: %s, %s.\n",
		hung(t, envoy.Newest), hung(t, envoy.Oldest))
	return rows.String()
}

// tries of hung, and how many without an answer are enough.
const (
	hungTries = 100
	hungMost  = 10
)

// hung tells how many bodies that are a little larger than a buffer of Envoy's default size, 1 MiB, get no answer within
// two seconds in BUFFERED_PARTIAL.
func hung(t *testing.T, version string) string {
	const buffer = 1 << 20
	r := startRig(t, find(t, version), rigOptions{mode: envoy.Partial, edits: bufferOf(buffer)})
	r.serve(t, 0)
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{}}
	n, i := 0, 0
	for ; i < hungTries && n < hungMost; i++ {
		if _, err := try(client, newRequest(t, "POST", r.front+"/v1/chat/completions", prompt(buffer+300*i, fmt.Sprint(i)))); err != nil {
			n++
		}
	}
	client.CloseIdleConnections()
	return fmt.Sprintf("%d of %d with Envoy %s", n, i, version)
}

// batch sends requests one after the other and adds what they cost.
func (r *rig) batch(t *testing.T, url string, size, round int, c *cost) {
	t.Helper()
	before := r.cpu(t)
	for i := range costBatch {
		req := newRequest(t, "POST", url+"/v1/chat/completions", prompt(size, fmt.Sprintf("%d of round %d", i, round)))
		got := exchange(t, http.DefaultClient, req)
		if got.status != 200 {
			t.Fatalf("%s: status %d", url, got.status)
		}
		c.took = append(c.took, got.took)
	}
	c.cpu += r.cpu(t) - before
}

// cpu is the CPU time of the processes in the rig's directory, Envoy and weir, by the scheduler's count in nanoseconds.
func (r *rig) cpu(t *testing.T) (sum time.Duration) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if at, err := os.Readlink(dir); err != nil || at != r.Dir { // others' processes cannot be read
			continue
		}
		tasks, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "task", "*", "schedstat"))
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			text, err := os.ReadFile(task)
			if err != nil {
				continue // the thread has ended
			}
			run, _, _ := strings.Cut(string(text), " ")
			ns, err := strconv.ParseInt(run, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += time.Duration(ns)
		}
	}
	if sum == 0 {
		t.Fatalf("no process runs in %s", r.Dir)
	}
	return sum
}
