package extproc_test

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// sink takes request bodies and does nothing with them but to put their chunks together.
type sink struct {
	extprocv3.UnimplementedExternalProcessorServer
}

func (sink) Process(rpc extprocv3.ExternalProcessor_ProcessServer) error {
	var body []byte
	for {
		m, err := rpc.Recv()
		if err != nil {
			return nil
		}
		body = append(body, m.GetRequestBody().GetBody()...)
		if m.GetRequestBody().GetEndOfStream() {
			body = body[:0]
			if err := rpc.Send(&extprocv3.ProcessingResponse{}); err != nil {
				return nil
			}
		}
	}
}

// BenchmarkArrive is what a body takes from its sender's memory through a unix socket and gRPC into one piece, in chunks
// of 62 KiB, with nothing read of it: what scanning chunk by chunk could hide at most is prompt's BenchmarkParse beside it.
func BenchmarkArrive(b *testing.B) {
	socket := filepath.Join(b.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	srv := grpc.NewServer()
	extprocv3.RegisterExternalProcessorServer(srv, sink{})
	go srv.Serve(ln)
	b.Cleanup(srv.Stop)
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	for _, size := range []int{128 << 10, 1 << 20, 10 << 20, 32 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			rpc, err := extprocv3.NewExternalProcessorClient(conn).Process(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			body := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				for rest := body; len(rest) > 0; {
					n := min(len(rest), 62<<10)
					chunk := &extprocv3.HttpBody{Body: rest[:n], EndOfStream: n == len(rest)}
					m := &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{RequestBody: chunk}}
					if err := rpc.Send(m); err != nil {
						b.Fatal(err)
					}
					rest = rest[n:]
				}
				if _, err := rpc.Recv(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
