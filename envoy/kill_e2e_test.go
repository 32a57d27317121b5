package envoy_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/pkg/route"
)

// weirProc is the command weir as a process.
type weirProc struct {
	*os.Process
	ended chan struct{} // closed when it has, with code its exit status, -1 after a signal
	code  int
	kill  func() // by SIGKILL
}

// startWeir runs the command weir with the file that Envoy reads.
func (r *rig) startWeir(t *testing.T, path string) *weirProc {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(path, "serve", "--bootstrap", filepath.Join(r.Dir, "envoy.yaml"))
	cmd.Dir, cmd.Stderr = r.Dir, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // when the thread that starts it ends
	started, w := make(chan error), &weirProc{ended: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(w.ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
			w.code = cmd.ProcessState.ExitCode()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	w.Process, r.edge = cmd.Process, nil
	w.kill = sync.OnceFunc(func() {
		w.Process.Kill()
		<-w.ended
		if t.Failed() {
			t.Logf("log of weir:\n%s", &log)
		}
	})
	t.Cleanup(w.kill)
	return w
}

// picked reports whether a request went past weir: its pick is on it.
func (r *rig) picked(t *testing.T) bool {
	t.Helper()
	req := newRequest(t, "POST", r.front+"/v1/chat/completions", chat)
	req.Header.Set(pickHeader, r.addrs[0])
	if _, err := try(http.DefaultClient, req); err != nil {
		t.Fatal(err)
	}
	all := r.takeSeen()
	return len(all) > 0 && len(all[0].picks) > 0
}

// resume is how soon after weir listens again picks must be back.
const resume = 2 * time.Second

// killed kills the command weir, with every seat taken and requests held: in BUFFERED held and new requests go on
// through the fallback and answers under way are not cut; in FULL_DUPLEX_STREAMED the held ones fail with 503. A client
// names no host meanwhile (agentgateway PR#3144). Back again, weir picks within two seconds.
func killed(t *testing.T, r *rig, weir string) {
	kill := r.startWeir(t, weir).kill
	eventually(t, "a pick", func() bool { return r.picked(t) })
	r.awaitPool(t, "weir is idle", func(s route.Stats) bool { return leasesOf(s) == 0 })
	began := time.Now()
	answer := r.stream(t, t.Context(), endless)
	r.occupy(t)
	var held []<-chan reply
	for range 5 {
		held = append(held, r.send(t, t.Context(), pickHeader, r.addrs[0]))
	}
	r.awaitHeld(t, 5)
	kill()
	want := map[envoy.Mode]int{envoy.Buffered: 200, envoy.Streamed: 503}[r.mode]
	for range held {
		if got := <-held[0]; got.status != want {
			t.Errorf("a held request ends with %d after %v, want %d", got.status, got.took, want)
		}
		held = held[1:]
	}
	r.goesOnWithout(t)
	if r.mode == envoy.Buffered {
		goesOn(t, answer, began)
	}
	r.resumes(t, weir)
}

// resumes starts weir, and wants picks to be back in time.
func (r *rig) resumes(t *testing.T, weir string) {
	t.Helper()
	for range tries {
		w := r.startWeir(t, weir)
		r.awaitPool(t, "weir listens", func(route.Stats) bool { return true })
		began := time.Now()
		eventually(t, "picks are back", func() bool { return r.picked(t) })
		took := time.Since(began)
		if t.Logf("picks are back %v after weir", took); took <= resume {
			return
		}
		w.kill()
		r.awaitFailed(t)
	}
	t.Errorf("in %d tries picks are not back within %v", tries, resume)
}

// goesOnWithout wants requests to be answered, without a pick and on more than one replica, while weir is gone: in
// BUFFERED at once, in FULL_DUPLEX_STREAMED from the failure of the health checks on.
func (r *rig) goesOnWithout(t *testing.T) {
	t.Helper()
	if r.mode == envoy.Buffered { // at once
		r.without(t, 10)
	}
	r.awaitFailed(t)
	r.without(t, 40)
}

func (r *rig) awaitFailed(t *testing.T) {
	t.Helper()
	eventually(t, "weir's health checks have failed", func() bool {
		page, err := r.Get("/clusters")
		return err == nil && bytes.Contains(page, []byte("health_flags::/failed_active_hc"))
	})
}

// without sends n requests of clients that name a host.
func (r *rig) without(t *testing.T, n int) {
	t.Helper()
	r.takeSeen()
	counts, picks := r.spread(t, n, r.front+"/v1/chat/completions", r.addrs[0])
	if picks > 0 {
		t.Errorf("%d of a client's picks arrive", picks)
	}
	if n >= 40 && slices.Max(counts) == n {
		t.Error("the fallback uses one replica")
	}
}
