package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/weirproxy/weir/pkg/bootstrap"
)

// listen opens the address, after removing the socket file that a killed weir left there.
func listen(ctx context.Context, a bootstrap.Address) (net.Listener, error) {
	if a.Network == "unix" && !strings.HasPrefix(a.Address, "@") { // @: no file, it goes with its process
		if err := clearSocket(ctx, a.Address); err != nil {
			return nil, err
		}
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, a.Network, a.Address)
}

// probeTime is how long a process at the socket may take to answer. The kernel answers for one that hangs.
const probeTime = time.Second

// clearSocket removes a socket file to which nobody listens. What is no socket, and a socket on which somebody
// listens, stays and is an error: two weirs on one path would each see half of the streams.
func clearSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is no socket", path)
	}
	d := net.Dialer{Timeout: probeTime}
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was sent
		return fmt.Errorf("%s: another process listens there", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	}
	return err
}
