//go:build unix

package fault_test

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// What can happen to the files of a database that is served, and how the data is saved.
var accidents = []struct {
	name string
	do   func(path string) error
	save func(v *victim)
}{
	{"moved", moveAway, (*victim).moveBack},
	{"moved, and the server stopped", moveAway, (*victim).useRescued},
	{"deleted", os.Remove, (*victim).useRescued},
	{"deleted with its log", removeAll, (*victim).useRescued},
	{"deleted, and the server killed", removeAll, (*victim).useSaved},
	{"log deleted", func(path string) error { return os.Remove(path + "-wal") }, (*victim).useRescued},
	{"replaced", replace, (*victim).useRescued},
	{"emptied", func(path string) error { return os.Truncate(path, 0) }, (*victim).useBackup},
}

func moveAway(path string) error { return os.Rename(path, path+".moved") }

func removeAll(path string) error {
	return errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm"))
}

// replace replaces the database with another file.
func replace(path string) error {
	other := path + ".other"
	if err := os.WriteFile(other, []byte(strings.Repeat("another file ", 1000)), 0o600); err != nil {
		return err
	}
	return os.Rename(other, path)
}

// Whatever happens to the files of a server under load, what it confirmed can be saved as
// docs/reliability.md says, and nothing is confirmed that cannot.
func TestFaultFilesUnderLoad(t *testing.T) {
	slow(t)
	t.Parallel()
	v := newVictim(t, t.TempDir())
	for range times(1, 3) {
		for i, a := range accidents {
			if i%6 != 0 && !isLong() { // a few of them
				continue
			}
			v.backUp()
			v.under(func() {
				if a.name != "emptied" { // what was recorded since the backup would be lost
					aMoment()
				}
				must.OK(t, a.do(v.database))
				v.wait(a.name+": not ready", func() bool { return v.ready() == http.StatusServiceUnavailable })
				waitForRefusals(v.t, v.load, &v.log, 10)
				if a.name == "moved" {
					v.moveBack()
					v.works()
				}
			})

			if a.name == "moved" {
				must.OK(t, v.stop(syscall.SIGTERM))
			} else {
				a.save(v)
			}
			v.check()
			v.start()
		}
	}
	v.finish("database moved, deleted, replaced, emptied")
}

// backUp stops the server, copies the database, and starts the server again.
func (v *victim) backUp() {
	v.t.Helper()
	must.OK(v.t, v.stop(syscall.SIGTERM))
	must.OK(v.t, copyFile(v.database, v.database+".backup"))
	v.start()
}

// moveBack moves the database back to its path.
func (v *victim) moveBack() {
	v.t.Helper()
	must.OK(v.t, os.Rename(v.database+".moved", v.database))
	v.waitReady()
}

// useRescued stops the server, which writes a copy, and uses the copy.
func (v *victim) useRescued() {
	v.t.Helper()
	if status := exitStatus(v.stop(syscall.SIGTERM)); status != 1 {
		v.t.Errorf("exit status %d, want 1\n%s", status, v.log.String())
	}
	v.replaceWith(v.database + ".rescued-1")
}

// useSaved runs the commands in the server's log, kills the server, and uses their copy.
func (v *victim) useSaved() {
	v.t.Helper()
	commands := regexp.MustCompile(`'(cp [^']*)'`).FindStringSubmatch(v.log.String())
	if commands == nil {
		v.t.Fatalf("no commands in the log:\n%s", v.log.String())
	}
	shell := exec.Command("sh", "-c", commands[1])
	shell.Dir = v.t.TempDir()
	if out, err := shell.CombinedOutput(); err != nil {
		v.t.Fatalf("%s: %v: %s", commands[1], err, out)
	}

	v.stop(syscall.SIGKILL)
	saved := filepath.Join(shell.Dir, "saved.db")
	v.replaceWith(saved)
	must.OK(v.t, copyFile(saved+"-wal", v.database+"-wal"))
}

// useBackup kills the server and uses the backup.
func (v *victim) useBackup() {
	v.t.Helper()
	v.stop(syscall.SIGKILL)
	v.replaceWith(v.database + ".backup")
}

// replaceWith removes the old files and puts a copy of another database at the path.
func (v *victim) replaceWith(other string) {
	v.t.Helper()
	for _, name := range []string{"", "-wal", "-shm", ".moved", ".old"} {
		if err := os.Remove(v.database + name); err != nil && !errors.Is(err, os.ErrNotExist) {
			v.t.Fatal(err)
		}
	}
	must.OK(v.t, copyFile(other, v.database))
	if strings.Contains(other, ".rescued-") {
		must.OK(v.t, os.Remove(other))
	}
}
