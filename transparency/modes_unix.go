//go:build unix

package transparency

import (
	"io/fs"
	"os"
	"syscall"
)

// enforcesModes reports whether the permissions of a folder keep others out.
const enforcesModes = true

// ownerOf reports whether a file belongs to the user of this process, and whether to root.
func ownerOf(info fs.FileInfo) (isOwn, isRoots bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false, false
	}
	return int(stat.Uid) == os.Geteuid(), stat.Uid == 0
}
