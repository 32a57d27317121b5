package extproc_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirproxy/weir/pkg/extproc"
	"github.com/weirproxy/weir/pkg/pool"
	"github.com/weirproxy/weir/pkg/route"
)

// TestManyStreams is llm-d#1582 on the side of weir: one connection, as Envoy has it, carries more than the 10,000
// streams that a class may hold, each held, and nothing is left of them.
func TestManyStreams(t *testing.T) {
	const n = 11_000
	routeCfg := route.Default()
	poolCfg, _ := pool.Default(pool.DefaultProfile)
	poolCfg.Seats = 1
	routeCfg.MaxHold = time.Hour
	routeCfg.Classes[0].Deadline, routeCfg.Classes[0].MaxHeld = time.Hour, n
	router := route.New(routeCfg, pool.New("replicas", endpoints[:1], poolCfg))
	s := extproc.NewServer(extproc.Default(), nil, map[string]*route.Router{"replicas": router}, func(*route.Decision) {}, slog.New(slog.DiscardHandler))

	dir, err := os.MkdirTemp("", "weir") // t.TempDir is too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "weir.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}

	request := recording(t, newest, string(buffered)+"-get")[0] // no body: decided at the headers
	streams, cancel := context.WithCancel(ctx)
	before, began := memory(), time.Now()
	var all []extprocv3.ExternalProcessor_ProcessClient
	for range n + 1 {
		rpc, err := extprocv3.NewExternalProcessorClient(conn).Process(streams)
		if err == nil {
			err = rpc.Send(request)
		}
		if err != nil {
			t.Fatalf("stream %d: %v", len(all), err)
		}
		all = append(all, rpc)
	}
	picks := 0
	for i, rpc := range all { // a pick, or an override of the timeout as it is held
		m, err := rpc.Recv()
		if err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		if m.GetOverrideMessageTimeout() == nil {
			picks++
		}
	}
	stats := router.Stats(time.Now())
	if held := stats.Held["interactive"]; held != n || picks != 1 || s.Stats().Streams != n+1 {
		t.Errorf("%d held, %d picked, %d streams", held, picks, s.Stats().Streams)
	}
	t.Logf("%d streams are held after %v, each with %.1f KiB, client and server together", n, time.Since(began), (memory()-before)/n/1024)
	cancel()
	for s.Stats().Streams > 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if at := router.Stats(time.Now()); s.Stats().Streams != 0 || at.Held["interactive"] != 0 || at.Replicas[0].Leases != 0 {
		t.Errorf("left: %d streams, %+v", s.Stats().Streams, at)
	}
	conn.Close()
	stop()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// memory is what the heap and the stacks take, in bytes.
func memory() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}
