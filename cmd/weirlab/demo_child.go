package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopLimit is what a child has between SIGTERM and SIGKILL.
const stopLimit = 5 * time.Second

// child is a process of ours that does not outlive this one.
type child struct {
	cmd  *exec.Cmd
	file string // its standard output and error
	done chan struct{}
}

// startChild runs a program in dir, its output in dir/log.
func startChild(dir, log, path string, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(path, args...), file: filepath.Join(dir, log), done: make(chan struct{})}
	out, err := os.Create(c.file)
	if err != nil {
		return nil, err
	}
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = dir, out, out
	// Its own group, so that a Ctrl-C in the terminal reaches it through stop only, after Envoy; and it dies
	// with us however we die. The kernel watches the thread that started it, so that one stays until the end.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.done)
		defer out.Close()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.cmd.Wait() // how it ended is in its log
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// stop ends the child by SIGTERM, after stopLimit by SIGKILL, and waits for it.
func (c *child) stop() { c.kill(stopLimit) }

func (c *child) kill(after time.Duration) {
	c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(after):
		c.cmd.Process.Kill()
		<-c.done
	}
}

func (c *child) log() string {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// tail is the end of a log, as far as it fits a terminal.
func tail(text string) string { return text[max(0, len(text)-2000):] }

// clockTick is the unit of /proc/PID/stat: USER_HZ, 100 on every Linux for x86-64.
const clockTick = 10 * time.Millisecond

// cpuOf is the CPU time that a process has used; 0 when it cannot be read.
func cpuOf(pid int) time.Duration {
	f := statOf(strconv.Itoa(pid))
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * clockTick
}

// statOf returns the fields of /proc/PID/stat from the state on, which is the third.
func statOf(pid string) []string {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name before may hold anything
}

// childNamed returns the pid of a child of this process by its program's name; 0 for none. Package envoy
// does not tell its own.
func childNamed(name string) int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		dir := filepath.Dir(path)
		comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
		pid := filepath.Base(dir)
		f := statOf(pid)
		if strings.TrimSpace(string(comm)) == name && len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	return 0
}

// cpu is the CPU time used so far.
type cpu struct{ envoy, weir, self time.Duration }

func (s *stack) cpu() cpu {
	return cpu{cpuOf(childNamed("envoy")), cpuOf(s.weir.cmd.Process.Pid), cpuOf(os.Getpid())}
}

func (c cpu) since(b cpu) cpu { return cpu{c.envoy - b.envoy, c.weir - b.weir, c.self - b.self} }

func (c cpu) String() string {
	return fmt.Sprintf("Envoy %.1f, weir %.1f, replicas and generator %.1f", c.envoy.Seconds(), c.weir.Seconds(), c.self.Seconds())
}
