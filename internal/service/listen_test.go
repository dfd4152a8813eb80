//go:build unix

package service

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// A server listens on a unix socket, which only its user and group may use, and removes it.
func TestUnixSocket(t *testing.T) {
	v, path := startOnSocket(t)
	if v.Socket != path || v.URL != "https://ledger.example.com" {
		t.Errorf("socket %s of %s, want %s of the base URL", v.Socket, v.URL, path)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket has %v, %v, want mode 0660", info.Mode(), err)
	}
	if status := getUnix(t, path, "/healthz").StatusCode; status != 200 {
		t.Errorf("/healthz: %d, want 200", status)
	}

	if _, err := Listen("unix:" + path); err == nil {
		t.Error("a second server took the socket")
	}
	if err := v.Stop(0, time.Second); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is left")
	}
}

// The socket that a killed server left is replaced, but no other file.
func TestUnixSocketInTheWay(t *testing.T) {
	folder := t.TempDir()
	left := filepath.Join(folder, "left.sock")
	listener := must.Get(net.Listen("unix", left))(t)
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	listener.Close()
	replacement, err := Listen("unix:" + left)
	must.OK(t, err)
	replacement.Close()

	file := filepath.Join(folder, "notes")
	write(t, file, []byte("kept"))
	link := filepath.Join(folder, "link")
	os.Symlink(file, link)
	for _, path := range []string{file, link, folder} {
		if _, err := Listen("unix:" + path); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("listen on %s: %v, want that it is in use", path, err)
		}
	}
	if string(read(t, file)) != "kept" {
		t.Error("the file was changed")
	}
}

// No request by a unix socket counts as one of a browser on this machine: a proxy may have passed
// it on.
func TestUnixSocketIsNotThisMachine(t *testing.T) {
	v, path := startOnSocket(t)
	defer v.Stop(0, 0)
	link, _ := v.SignInURL(ledger.Token{Secret: "secret"}, time.Minute)
	if status := getUnix(t, path, strings.TrimPrefix(link, v.URL)).StatusCode; status != 403 {
		t.Errorf("the link that signs in: %d, want 403", status)
	}
}

// startOnSocket starts a service on a unix socket.
func startOnSocket(t *testing.T) (v *Instance, path string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "ledgerd") // that of the test may be too long for a socket
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	path = filepath.Join(folder, "http.sock")
	s := config.Default()
	s.Listen, s.Database = "unix:"+path, config.Database(filepath.Join(t.TempDir(), "ledger.db"))
	s.BaseURL = "https://ledger.example.com"
	v, err = Start(t.Context(), s, discardLog())
	must.OK(t, err)
	return v, path
}

// getUnix gets a path by a unix socket.
func getUnix(t *testing.T, socket, path string) *http.Response {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("http://localhost" + path)
	must.OK(t, err)
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	return response
}
