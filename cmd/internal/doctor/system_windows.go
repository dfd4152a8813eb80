package doctor

import (
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// enforcesModes reports whether the permissions of a file keep others out.
const enforcesModes = false

// freeSpace returns how many bytes this user can write to the disk of a folder.
func freeSpace(folder string) (int64, error) {
	path, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, &fs.PathError{Op: "GetDiskFreeSpaceEx", Path: folder, Err: err}
	}
	return int64(free), nil
}

// sameDisk reports whether two folders are on the same disk. If it is unknown, it is false.
func sameDisk(a, b string) bool {
	first, err := filepath.Abs(a)
	if err != nil {
		return false
	}
	second, err := filepath.Abs(b)
	return err == nil && strings.EqualFold(filepath.VolumeName(first), filepath.VolumeName(second))
}

// foreignOwner returns "": Windows does not say it by a number.
func foreignOwner(fs.FileInfo) string { return "" }
