package testenv

import "golang.org/x/sys/unix"

const (
	memoryFolder = "/dev/shm" // a file system in memory, on most machines
	enough       = 2 << 30    // bytes of room for the tests of some packages at once
)

// memory returns a folder in memory for temporary files, if there is one with enough room whose programs
// can be started.
func memory() (folder string, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(memoryFolder, &s); err != nil {
		return "", false
	}
	room := s.Bavail * uint64(s.Bsize)
	return memoryFolder, s.Flags&unix.ST_NOEXEC == 0 && room >= enough && unix.Access(memoryFolder, unix.W_OK) == nil
}
