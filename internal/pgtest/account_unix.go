//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// asServer gives a folder and a command to the user postgres if the test runs as root, under which
// PostgreSQL refuses to run. Either may be missing.
func asServer(t testing.TB, dir string, command *exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	u, err := user.Lookup("postgres")
	must.OK(t, err)
	uid, err := strconv.Atoi(u.Uid)
	must.OK(t, err)
	gid, err := strconv.Atoi(u.Gid)
	must.OK(t, err)

	if dir != "" {
		must.OK(t, os.Chown(dir, uid, gid))
	}
	if command != nil {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
}
