package envoy

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// startLimit bounds the wait for readiness: Envoy takes 0.2 s on an idle core and seconds on a busy machine.
	startLimit = 30 * time.Second
	// stopLimit is what Envoy has between SIGTERM and SIGKILL.
	stopLimit = 5 * time.Second
	pollEvery = 20 * time.Millisecond
)

// Options is what a Start needs. Dir is created where it does not exist.
type Options struct {
	Path   string // the Envoy to run
	Config []byte // its bootstrap; must have an admin address
	Dir    string // its working directory: envoy.yaml, envoy.log, access.log and admin.txt are written there
}

// Proc is a running Envoy. Its methods may be called from any goroutine.
type Proc struct {
	Admin string // "ip:port" of the admin listener
	Dir   string

	stop context.CancelFunc
	done chan struct{}
	err  error // of the process, once done is closed
}

// Start runs an Envoy and returns when it serves. It fails when Envoy exits or is not ready within 30 s; the error
// then carries the end of its log. Envoy ends when ctx does, and with this process however that ends.
func Start(ctx context.Context, o Options) (*Proc, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "envoy.yaml"), o.Config, 0o644); err != nil {
		return nil, err
	}
	// An address of an earlier run would be taken for this one's.
	if err := os.Remove(filepath.Join(o.Dir, "admin.txt")); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	p := &Proc{Dir: o.Dir, stop: stop, done: make(chan struct{})}
	started := make(chan error)
	go p.run(command(ctx, o), started)
	if err := <-started; err != nil {
		stop()
		return nil, err
	}
	if err := p.awaitReady(ctx); err != nil {
		p.Stop()
		return nil, fmt.Errorf("envoy: %w\n%s", err, p.logTail())
	}
	return p, nil
}

func command(ctx context.Context, o Options) *exec.Cmd {
	args := []string{
		"-c", "envoy.yaml", "-l", "warning",
		"--concurrency", "1", // makes round robin exact and leaves the cores to others
		"--admin-address-path", "admin.txt",
		"--disable-hot-restart",             // no shared memory, no socket: two Envoys never meet, nothing stays behind
		"--file-flush-interval-msec", "100", // the access log is read while Envoy runs; the default is 10 s
	}
	cmd := exec.CommandContext(ctx, o.Path, args...)
	cmd.Dir = o.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // or a killed test would leave its Envoys behind
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopLimit
	return cmd
}

// run starts the command, reports whether that worked and waits for its end. Linux sends the signal of a parent's
// death when the thread that started the child ends, so this goroutine keeps a thread for itself until Envoy has ended;
// a caller's goroutine, and its thread, may end before.
func (p *Proc) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	logs, err := openLogs(p.Dir)
	if err != nil {
		started <- err
		return
	}
	defer logs[0].Close()
	defer logs[1].Close()
	cmd.Stderr, cmd.Stdout = logs[0], logs[1]
	err = cmd.Start()
	started <- err
	if err == nil {
		p.err = cmd.Wait()
	}
}

func openLogs(dir string) (logs [2]*os.File, err error) {
	for i, name := range []string{"envoy.log", "access.log"} {
		// Appended to: Envoy opens /dev/stdout a second time, and two writers with offsets would overwrite each other.
		logs[i], err = os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return logs, err
		}
	}
	return logs, nil
}

func (p *Proc) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if addr, err := os.ReadFile(filepath.Join(p.Dir, "admin.txt")); err == nil && len(addr) > 0 {
			p.Admin = string(bytes.TrimSpace(addr))
			if _, err := p.Get("/ready"); err == nil {
				return nil
			}
		}
		select {
		case <-p.done:
			return fmt.Errorf("ended before it was ready: %v", p.err)
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// Done is closed when the process has ended, however it ended.
func (p *Proc) Done() <-chan struct{} { return p.done }

// Stop ends Envoy, by SIGTERM and after 5 s by SIGKILL, and waits for it. A second call does nothing.
func (p *Proc) Stop() {
	p.stop()
	<-p.done
}

// Log returns what Envoy has logged so far, without the access log.
func (p *Proc) Log() string {
	text, err := os.ReadFile(filepath.Join(p.Dir, "envoy.log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (p *Proc) logTail() string {
	log := p.Log()
	return log[max(0, len(log)-4096):]
}

// ValidateConfig asks the Envoy at path whether it accepts the configuration, which it writes to dir/validate.yaml.
// The error carries Envoy's reason.
func ValidateConfig(ctx context.Context, path, dir string, config []byte) error {
	file := filepath.Join(dir, "validate.yaml")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, path, "--mode", "validate", "-c", file, "-l", "warning").CombinedOutput()
	if err != nil {
		return fmt.Errorf("envoy --mode validate: %w\n%s", err, out)
	}
	return nil
}

// Ports for listeners are below those that Linux gives to outgoing connections (32768 and up): of these a crowd of
// connections takes thousands, between the moment when one is found free and that when its user binds it.
const (
	lowestPort  = 20000
	highestPort = 32767
	portTries   = 1000
)

// held keeps each port that FreePorts gave from others who ask for one, in whatever process, until this one ends: by a
// UDP socket, which leaves the TCP port free.
var held struct {
	sync.Mutex
	conns []net.PacketConn
}

// FreePorts returns n different TCP ports on 127.0.0.1 that are free, and that no other call returns while this process
// runs. A process that does not ask here may still take one before its user binds it.
func FreePorts(n int) ([]int, error) {
	held.Lock()
	defer held.Unlock()
	var ports []int
	for range portTries {
		if len(ports) == n {
			return ports, nil
		}
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		conn, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			conn.Close()
			continue
		}
		l.Close()
		held.conns = append(held.conns, conn)
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("no %d free ports from %d to %d", n, lowestPort, highestPort)
}
