package fault_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ledgerd/ledgerd/e2e/internal/daemon"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// mount mounts a file system of 64 MiB for the test. It skips the test if that is not
// permitted.
func mount(t *testing.T, args ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.Command("mount", append(args, dir)...).CombinedOutput(); err != nil {
		t.Skipf("mount is not permitted: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

func mountTmpfs(t *testing.T) string {
	return mount(t, "-t", "tmpfs", "-o", "size=64m", "tmpfs")
}

func mountExt4(t *testing.T) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	must.OK(t, os.WriteFile(image, nil, 0o600))
	must.OK(t, os.Truncate(image, 64<<20))
	if out, err := exec.Command("/sbin/mkfs.ext4", "-q", "-m", "0", image).CombinedOutput(); err != nil {
		t.Skipf("mkfs.ext4: %v: %s", err, out)
	}
	return mount(t, "-o", "loop", image)
}

// fill fills the file system but for some bytes, and returns the file to delete.
func fill(t *testing.T, dir string, but int64) (ballast string) {
	t.Helper()
	var s syscall.Statfs_t
	must.OK(t, syscall.Statfs(dir, &s))
	ballast = filepath.Join(dir, "ballast")
	file := must.Get(os.Create(ballast))(t)
	must.OK(t, syscall.Fallocate(int(file.Fd()), 0, 0, int64(s.Bavail)*s.Bsize-but))
	must.OK(t, file.Close())
	return ballast
}

// A full disk refuses writes until it has space again, also after a restart.
func TestFaultFullDisk(t *testing.T) {
	slow(t)
	for name, mountOne := range map[string]func(*testing.T) string{"tmpfs": mountTmpfs, "ext4": mountExt4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := mountOne(t)
			v := newVictim(t, dir)
			for run := range times(2, 6) {
				ballast := fill(t, dir, 4<<20)
				v.under(func() {
					v.wait("the disk to be full", func() bool { return v.ready() == http.StatusServiceUnavailable })
					waitForRefusals(v.t, v.load, &v.log, 20)
					if run%2 == 0 {
						v.stop(syscall.SIGKILL)
						return
					}
					must.OK(t, os.Remove(ballast))
					v.waitReady()
				})

				if run%2 == 0 {
					v.check()
					must.OK(t, os.Remove(ballast))
				} else {
					v.works()
					must.OK(t, v.stop(syscall.SIGTERM))
					v.check()
				}
				v.start()
			}
			v.finish("full disk (" + name + ")")
		})
	}
}

// While the disk fails, nothing is confirmed that is not on disk, and nothing refused is
// recorded, whether the server goes on or is killed.
func TestFaultFailingDisk(t *testing.T) {
	slow(t)
	testenv.Need(t, "strace")
	for _, f := range []struct {
		name, fault string
		long        bool
	}{
		{"ENOSPC for writes", "pwrite64:error=ENOSPC", false},
		{"EIO for writes", "pwrite64:error=EIO", true},
		{"EIO for every ninth write", "pwrite64:error=EIO:when=5+9", true},
		{"EIO for flushes", "fsync,fdatasync:error=EIO", false},
		{"EIO for every fifth flush", "fsync,fdatasync:error=EIO:when=3+5", true},
		{"EIO for reads", "pread64:error=EIO", false},
	} {
		if f.long && !isLong() {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t, t.TempDir())
			for run := range times(3, 9) {
				v.withFault(f.fault, func(detach func() error) {
					switch run % 3 {
					case 0: // it goes on
						must.OK(t, detach())
						v.works()
						must.OK(t, v.stop(syscall.SIGTERM))
					case 1: // it is killed under load
						v.stop(syscall.SIGKILL)
						_ = detach() // it has ended with the server
					case 2: // it is killed after all clients have an answer
					}
				})

				if run%3 == 2 {
					v.stop(syscall.SIGKILL)
				}
				v.check()
				v.start()
			}
			v.finish(f.name)
		})
	}
}

// withFault puts the server under load and has its disk fail. Then what runs.
func (v *victim) withFault(fault string, what func(detach func() error)) {
	v.t.Helper()
	v.under(func() {
		aMoment()
		detach, err := daemon.Inject(v.server.Process.Pid, fault)
		if err != nil {
			testenv.Missing(v.t, err.Error())
		}
		waitForRefusals(v.t, v.load, &v.log, 5)
		aMoment()
		what(detach)
	})
}
