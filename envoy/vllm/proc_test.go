//go:build vllm

package vllm

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// proc is a process of ours in a group of its own: vLLM's workers outlive it when it is killed, and end with the group.
type proc struct {
	cmd  *exec.Cmd
	log  string // the file
	done chan struct{}
}

// startProc runs a program in dir, its output in dir/name.log, which a failed test shows the end of. It ends with the test.
func startProc(t *testing.T, dir, name string, env []string, path string, args ...string) *proc {
	t.Helper()
	p := &proc{cmd: exec.Command(path, args...), log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = dir, out, out, append(os.Environ(), env...)
	// SIGTERM, as vLLM then ends its workers. The kernel watches the thread that started it, so that one stays until the end.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		defer out.Close()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.cmd.Wait() // how it ended is in its log
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			text, _ := os.ReadFile(p.log)
			t.Logf("the end of the log of %s:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
	return p
}

// stop ends the process by SIGTERM, for which vLLM takes some seconds, and what it leaves behind.
func (p *proc) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
	}
	p.kill()
}

// kill ends the whole group at once, and waits for it.
func (p *proc) kill() {
	group := -p.cmd.Process.Pid
	for syscall.Kill(group, syscall.SIGKILL) == nil {
		time.Sleep(10 * time.Millisecond)
	}
	<-p.done
}

// running reports whether it has not ended.
func (p *proc) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}
