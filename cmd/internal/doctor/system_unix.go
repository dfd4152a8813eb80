//go:build unix

package doctor

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// enforcesModes reports whether the permissions of a file keep others out.
const enforcesModes = true

// freeSpace returns how many bytes this user can write to the disk of a folder.
func freeSpace(folder string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: folder, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil // the types differ between systems
}

// sameDisk reports whether two folders are on the same disk. If it is unknown, it is false.
func sameDisk(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	if err != nil {
		return false
	}
	x, ok := first.Sys().(*syscall.Stat_t)
	y, okay := second.Sys().(*syscall.Stat_t)
	return ok && okay && x.Dev == y.Dev
}

// foreignOwner returns the name of a file's owner if that is another user than this one.
func foreignOwner(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() {
		return ""
	}
	id := strconv.Itoa(int(stat.Uid))
	if owner, err := user.LookupId(id); err == nil {
		return owner.Username
	}
	return id
}
