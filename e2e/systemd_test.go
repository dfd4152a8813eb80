//go:build linux

package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// systemd passes the socket, and is notified when the server is ready, while it is well, and
// when it stops (sd_listen_fds, sd_notify).
func TestSystemd(t *testing.T) {
	testenv.Need(t, "systemd-socket-activate")
	t.Parallel()
	o := newOrg(t)
	path := filepath.Join(t.TempDir(), "notify")
	notifications := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"}))(t)
	defer notifications.Close()

	// It accepts no connection itself; the first one starts the server.
	serve := exec.Command("systemd-socket-activate", "--listen="+o.address, "--setenv=NOTIFY_SOCKET="+path,
		"--setenv=WATCHDOG_USEC=600000", "--setenv=PATH="+os.Getenv("PATH"),
		"ledgerd", "serve", "--listen", "systemd", "--database", o.database)
	serve.Stderr = &o.log
	must.OK(t, serve.Start())
	defer func() {
		serve.Process.Kill()
		serve.Wait()
	}()
	waitFor(t, "an answer", 10*time.Second, func() bool {
		response, err := http.Get(o.url + "/healthz")
		if err == nil {
			response.Body.Close()
		}
		return err == nil && response.StatusCode == 200
	})

	next := func() string {
		t.Helper()
		message := make([]byte, 1024)
		notifications.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := notifications.Read(message)
		if err != nil {
			t.Fatalf("no notification: %v\n%s", err, o.log.String())
		}
		return string(message[:n])
	}
	wellOrReady := map[string]int{}
	for range 6 {
		wellOrReady[next()]++
	}
	if wellOrReady["READY=1"] != 1 || wellOrReady["WATCHDOG=1"] != 5 {
		t.Errorf("the first six notifications are %v, want READY=1 once and WATCHDOG=1", wellOrReady)
	}

	must.OK(t, serve.Process.Signal(syscall.SIGTERM))
	for message := next(); message != "STOPPING=1"; message = next() {
		if message != "WATCHDOG=1" {
			t.Fatalf("notification %q while the server stops, want STOPPING=1", message)
		}
	}
	if err := serve.Wait(); err != nil {
		t.Errorf("the server ended with %v\n%s", err, o.log.String())
	}
}

// Without a socket, and with two, the server says what it needs and does not start.
func TestSystemdPassesOneSocket(t *testing.T) {
	t.Parallel()
	o := newEmptyLedger(t)
	for _, sockets := range []int{0, 2} {
		serve := exec.Command("sh", "-c", fmt.Sprintf("LISTEN_PID=$$ LISTEN_FDS=%d exec ledgerd serve --listen systemd "+
			"--database %s", sockets, o.database))
		for range sockets {
			listener := must.Get(net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
			defer listener.Close()
			file := must.Get(listener.File())(t)
			defer file.Close()
			serve.ExtraFiles = append(serve.ExtraFiles, file)
		}

		out, err := serve.CombinedOutput()
		want := fmt.Sprintf("systemd passed %d stream sockets", sockets)
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("with %d sockets: %v, %s, want %q", sockets, err, out, want)
		}
	}
	if _, err := os.Stat(o.database); err == nil {
		t.Error("a database was created")
	}
}
