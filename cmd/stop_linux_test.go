package cmd_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ledgerd/ledgerd/internal/must"
)

// If the terminal of a server is closed, the server stops: the SIGHUP does not mean to
// reload the configuration.
func TestFaultClosedTerminalStopsTheServer(t *testing.T) {
	v := newVictim(t)
	v.flags = []string{"--shutdown-delay", "0s"}
	log := v.readLog()
	master, terminal := newTerminal(t)
	v.prepare = func(server *exec.Cmd) {
		server.Stdin = terminal
		server.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	v.start()
	must.OK(t, terminal.Close())

	must.OK(t, v.server.Process.Signal(syscall.SIGHUP))
	log.waitFor(t, "configuration reloaded")
	must.OK(t, master.Close())
	v.waitForExit(0)
	log.waitFor(t, "msg=stopping")
}

// newTerminal returns both ends of a pseudo-terminal.
func newTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	must.OK(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	must.OK(t, err)
	terminal = must.Get(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}
