package sqlite

import (
	"encoding/binary"
	"os"
)

// versionOffset is the position of PRAGMA user_version in a database file, 4 bytes.
const versionOffset = 60

// IsCurrent reports whether a database file has the schema of this release, so that opening it
// migrates nothing. It only reads the file. If in doubt, it reports false.
func IsCurrent(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	files, err := scripts()
	if err != nil {
		return false
	}

	var version [4]byte
	_, err = file.ReadAt(version[:], versionOffset)
	return err == nil && binary.BigEndian.Uint32(version[:]) == uint32(len(files))
}
