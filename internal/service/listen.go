package service

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"

	"github.com/ledgerd/ledgerd/internal/config"
)

// Listen returns a listener on an address of the settings: host:port, a unix socket, or the
// socket that systemd passes.
func Listen(address string) (net.Listener, error) {
	if address == config.ListenSystemd {
		return passedListener()
	}
	if path, ok := config.SocketPath(address); ok {
		return listenUnix(path)
	}
	return net.Listen("tcp", address)
}

// passedListener returns the socket that systemd passes (sd_listen_fds). It can be called once.
func passedListener() (net.Listener, error) {
	passed, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("listen on the socket of systemd: %w", err)
	}
	if len(passed) == 1 && passed[0] != nil {
		return passed[0], nil
	}
	for _, listener := range passed {
		if listener != nil {
			err = errors.Join(err, listener.Close())
		}
	}
	return nil, errors.Join(fmt.Errorf("systemd passed %d stream sockets: with listen: systemd, "+
		"start the server by a .socket unit with one", len(passed)), err)
}

// socketMode lets the group of the server connect: a proxy on this host.
const socketMode = 0o660

// listenUnix listens on a unix socket. It replaces the socket of a server that has ended.
func listenUnix(path string) (net.Listener, error) {
	listener, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && isAbandoned(path) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("replace the socket of a server that has ended: %w", err)
		}
		listener, err = net.Listen("unix", path)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// isAbandoned reports whether a file is a socket on which nobody listens.
func isAbandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	connection, err := net.Dial("unix", path)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = connection.Close() // it was only a question
	return false
}
