package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/weirproxy/weir/pkg/lab/replica"
	"github.com/weirproxy/weir/pkg/lab/step"
)

// addresses is a flag that may be given several times.
type addresses []string

func (a *addresses) String() string     { return strings.Join(*a, ",") }
func (a *addresses) Set(s string) error { *a = append(*a, s); return nil }

// runReplica serves one simulated replica on each address until ctx ends.
func runReplica(ctx context.Context, args []string, _, stderr io.Writer) error {
	fs := flag.NewFlagSet("weirlab replica", flag.ContinueOnError)
	fs.SetOutput(stderr)
	cfg, listen, count := replicaFlags(fs)
	profile := fs.String("profile", "8B", "model and hardware: 8B, 32B or 70B")
	kv := fs.Int("kv-tokens", 0, "tokens of KV memory (default the profile's)")
	seqs := fs.Int("max-seqs", 0, "running sequences (default the profile's)")
	if err := parse(fs, args); err != nil {
		return err
	}
	var err error
	if cfg.Profile, err = step.Lookup(*profile); err != nil {
		return err
	}
	if *kv != 0 {
		cfg.Profile.KVTokens = *kv
	}
	if *seqs != 0 {
		cfg.Profile.MaxSeqs = *seqs
	}
	all, err := expand(*listen, *count)
	if err != nil {
		return err
	}
	return serveReplicas(ctx, *cfg, all)
}

func replicaFlags(fs *flag.FlagSet) (cfg *replica.Config, listen *addresses, count *int) {
	cfg, listen = &replica.Config{}, &addresses{}
	fs.Var(listen, "listen", "address; may be given several times (default 127.0.0.1:8001)")
	count = fs.Int("count", 1, "replicas on consecutive ports from each address")
	fs.StringVar(&cfg.Name, "name", "r", "header x-replica; with several replicas their number is added")
	fs.StringVar(&cfg.Model, "model", "sim", "name of the model")
	fs.Float64Var(&cfg.Speed, "speed", 1, "model seconds per wall second")
	fs.IntVar(&cfg.MaxModelLen, "max-model-len", 0, "tokens of prompt and answer (default the KV memory)")
	fs.IntVar(&cfg.DefaultOutput, "output", 128, "answer tokens of a request without max_tokens")
	fs.BoolVar(&cfg.CapOutput, "cap-output", false, "let no answer be longer than -output")
	fs.Float64Var(&cfg.Fault.Slow, "slow", 1, "fault: steps take this many times as long")
	fs.BoolVar(&cfg.Fault.Hang, "hang", false, "fault: accept, never answer")
	fs.Float64Var(&cfg.Fault.Fail, "fail", 0, "fault: share of requests that fail, 0 to 1")
	fs.IntVar(&cfg.Fault.FailStatus, "fail-status", 503, "fault: their status")
	fs.Float64Var(&cfg.Fault.Drop, "drop", 0, "fault: share of connections cut, 0 to 1")
	fs.StringVar(&cfg.Fault.Metrics, "metrics", "", "fault: error or hang")
	return cfg, listen, count
}

// expand turns each address into count of them on consecutive ports; port 0 stays 0.
func expand(listen addresses, count int) ([]string, error) {
	if count < 1 {
		return nil, fmt.Errorf("-count %d is less than 1", count)
	}
	if len(listen) == 0 {
		listen = addresses{"127.0.0.1:8001"}
	}
	var out []string
	for _, l := range listen {
		host, port, err := net.SplitHostPort(l)
		if err != nil {
			return nil, err
		}
		first, err := strconv.ParseUint(port, 10, 16)
		if err != nil || int(first)+count-1 > 65535 {
			return nil, fmt.Errorf("-listen %s: no %d ports from %q", l, count, port)
		}
		for i := range count {
			p := int(first)
			if p != 0 {
				p += i
			}
			out = append(out, net.JoinHostPort(host, strconv.Itoa(p)))
		}
	}
	return out, nil
}

// serveReplicas opens every address before it serves any, and ends all when one fails.
func serveReplicas(ctx context.Context, cfg replica.Config, addrs []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var servers []*replica.Server
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	for i, a := range addrs {
		own := cfg
		if len(addrs) > 1 {
			own.Name += strconv.Itoa(i + 1)
		}
		s, err := replica.New(own)
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", a)
		if err != nil {
			return err
		}
		servers, listeners = append(servers, s), append(listeners, l)
	}
	errs := make([]error, len(servers))
	var group sync.WaitGroup
	for i, s := range servers {
		group.Go(func() {
			defer cancel()
			errs[i] = s.Serve(ctx, listeners[i])
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
