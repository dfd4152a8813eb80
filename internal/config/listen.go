package config

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
)

// ListenSystemd is the value of Settings.Listen for the socket that systemd passes.
const ListenSystemd = "systemd"

// SocketPath returns the path of the unix socket that an address such as
// unix:/run/ledgerd/http.sock names, and whether it names one.
func SocketPath(address string) (path string, ok bool) { return strings.CutPrefix(address, "unix:") }

// checkListen returns an error if an address to listen on is invalid.
func checkListen(address string) error {
	if address == ListenSystemd {
		return nil
	}
	path, isSocket := SocketPath(address)
	if isSocket && !filepath.IsAbs(path) {
		return fmt.Errorf("%q (use unix: and an absolute path, such as unix:/run/ledgerd/http.sock)", address)
	}
	if isSocket {
		return nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%q (use host:port or :port, such as 127.0.0.1:8080)", address)
	}
	return nil
}
