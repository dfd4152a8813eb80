//go:build unix

package pgtest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
)

// Kill kills all processes of the server, as if its host was switched off.
func (c *Cluster) Kill(t testing.TB) {
	t.Helper()
	c.Signal(t, syscall.SIGKILL)
	for range 60_000 {
		conn, err := net.Dial("tcp", c.Address())
		if err != nil {
			c.forget(t)
			return
		}
		conn.Close()
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the server does not end")
}

// forget deletes the files that say that the server runs. Its process may not have been waited for,
// and another one may get its id.
func (c *Cluster) forget(t testing.TB) {
	t.Helper()
	sockets, err := filepath.Glob(filepath.Join(c.dir, ".s.PGSQL.*"))
	must.OK(t, err)
	for _, file := range append(sockets, filepath.Join(c.data, "postmaster.pid")) {
		must.OK(t, os.Remove(file))
	}
}

// Signal sends a signal to all processes of the server, the main one first, so that it does not
// notice what happens to the others.
func (c *Cluster) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	var main int
	content, err := os.ReadFile(filepath.Join(c.data, "postmaster.pid"))
	must.OK(t, err)
	_, err = fmt.Fscan(bytes.NewReader(content), &main)
	must.OK(t, err)

	// The others have another parent as soon as the main one has ended.
	list, err := exec.Command("ps", "-A", "-o", "pid=", "-o", "ppid=").Output()
	must.OK(t, err)
	must.OK(t, syscall.Kill(main, s))
	for line := range bytes.Lines(list) {
		var pid, parent int
		if _, err := fmt.Sscan(string(line), &pid, &parent); err == nil && parent == main {
			_ = syscall.Kill(pid, s) // it may have ended
		}
	}
}
