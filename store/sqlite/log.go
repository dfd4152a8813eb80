package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// walHeader is the size of a write-ahead log without data, in bytes.
const walHeader = 32

// checkLog returns an error if there is a log with data, but no database to which it
// belongs. SQLite would delete the log, or copy it into another database. No connection of this process
// may have the file open: see checkGeneration.
func checkLog(path string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() <= walHeader {
		return nil
	}

	what := "empty"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what = "missing"
	case err != nil:
		return err
	case info.Size() >= minFile:
		return checkGeneration(path)
	}
	return fmt.Errorf("the database file is %s, but its write-ahead log %s contains data (put the database file back "+
		"next to its log; or, to start with another one, move %[2]s and %s-shm to another folder)",
		what, path+"-wal", path)
}

// A log does not say to which database file it belongs: SQLite copies that of a killed server into any file
// that takes the place of the database. So each start of a server gives the file a new generation, in the
// upper bits of the schema cookie (PRAGMA schema_version), and each commit writes the first page, which has
// the cookie, to the log. Backups do not have the cookie of a file that is served: SQLite's backup API sets it to
// 1 in the copy, a file from VACUUM INTO has no log, and one that was copied before the start has the
// generation of an earlier one.

const (
	// generationShift is the position of the generation in the cookie. The bits below are for SQLite, which
	// adds 1 with each change of the schema.
	generationShift = 12
	generations     = 1 << (31 - generationShift) // SQLite reads the cookie as a signed number

	formatOffset = 18 // in a database file: whether it has a log, 2 bytes
	cookieOffset = 40 // in a database file, 4 bytes
	headerSize   = 44 // the part of the first page that has both

	walMagic    = 0x377f0682 // the lowest bit is the byte order of the checksums
	frameHeader = 24         // what precedes a page in the log, in bytes
)

// generationOf returns the generation in the first page of a database, and whether the file has a log.
func generationOf(page []byte) uint64 {
	cookie := binary.BigEndian.Uint32(page[cookieOffset:])
	return uint64(binary.BigEndian.Uint16(page[formatOffset:]))<<32 | uint64(cookie>>generationShift)
}

// startGeneration begins a generation of the database for a server. If it cannot be written, as on a full disk, the
// server starts with the generation of the start before.
func startGeneration(c *sqldb.Conn, path string, o Options) error {
	if err := setDefensive(c, false); err != nil { // the defensive mode forbids to set the cookie
		return err
	}
	before, renewErr := renewGeneration(c)
	if err := setDefensive(c, true); err != nil {
		return err
	}
	if renewErr != nil {
		if sqldb.ClassOf(renewErr) == sqldb.Other {
			return fmt.Errorf("write the generation: %w", renewErr)
		}
		return nil // and the writer reports it
	}

	// The log has both generations until it is restarted. Another process may prevent that now.
	if !o.ExternalCheckpoints {
		_ = c.Run("PRAGMA busy_timeout = 100; PRAGMA wal_checkpoint(TRUNCATE)")
		return nil
	}
	return copyGeneration(c, path, before)
}

// copyGeneration copies the log into the file if it lacks the generation before, because another process has made a
// checkpoint while the new one was written.
func copyGeneration(c *sqldb.Conn, path string, before uint32) error {
	log, err := os.Open(path + "-wal") // not the database file: see checkGeneration
	if err != nil {
		return err
	}
	defer log.Close()
	isLogged := false
	err = firstPages(log, func(page []byte) (more bool) {
		isLogged = binary.BigEndian.Uint32(page[cookieOffset:])>>generationShift == before
		return !isLogged
	})
	if err != nil || isLogged {
		return err
	}
	return c.Run("PRAGMA wal_checkpoint(PASSIVE)")
}

// renewGeneration gives the database a new generation, and returns the one before. It writes the first page with the
// one before to the log, so that a kill leaves a log that belongs to the file. An automatic checkpoint between the two
// writes would let the second one restart the log.
func renewGeneration(c *sqldb.Conn) (before uint32, err error) {
	var cookie, checkpoint uint32
	if err := c.Row("PRAGMA schema_version").Scan(&cookie); err != nil {
		return 0, err
	}
	if err := c.Row("PRAGMA wal_autocheckpoint").Scan(&checkpoint); err != nil {
		return 0, err
	}
	if err := c.Run("PRAGMA wal_autocheckpoint = 0"); err != nil {
		return 0, err
	}
	err = writeNothing(c)
	if err == nil {
		next := (1 + rand.Uint32N(generations-1)) << generationShift
		err = c.Run(fmt.Sprintf("PRAGMA schema_version = %d", next))
	}
	err = errors.Join(err, c.Run(fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", checkpoint)))
	return cookie >> generationShift, err
}

// logFirstPage writes the first page of the database to the log, in the transaction of c, without a change.
func logFirstPage(c *sqldb.Conn) error {
	return c.Run(fmt.Sprintf("PRAGMA application_id = %d", applicationID))
}

// checkGeneration returns an error if the log next to a database file belongs to another file. A log without
// the first page, which another program has written, may belong to any. It opens the file, so no connection
// of this process may have it open: see createPrivate.
func checkGeneration(path string) error {
	for range 2 { // a server that starts may have changed the file after the log was read
		if same, err := sameGeneration(path); same || err != nil {
			return err
		}
	}
	return fmt.Errorf("the write-ahead log %s belongs to another database file, and may have the latest records of that "+
		"one (if %s has replaced it, put it back, or move the file, the log and %[2]s-shm to another folder and use "+
		"'ledgerd restore'; otherwise keep all files and report this)", path+"-wal", path)
}

// sameGeneration reports whether the log of a database has no first page, or one of the file's generation.
func sameGeneration(path string) (bool, error) {
	log, err := os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer log.Close()
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	var page [headerSize]byte
	if _, err := file.ReadAt(page[:], 0); err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}

	same := true // a log without the first page may belong to any file
	err = firstPages(log, func(logged []byte) (more bool) {
		same = generationOf(logged) == generationOf(page[:])
		return !same
	})
	if err != nil {
		return false, fmt.Errorf("read %s: %w", log.Name(), err)
	}
	return same, nil
}

// firstPages calls fn with the beginning of each version of the first page in a log, until it returns false.
// It ignores frames from before the log was last restarted.
func firstPages(log io.ReaderAt, fn func(page []byte) (more bool)) error {
	var header [walHeader]byte
	if _, err := log.ReadAt(header[:], 0); err != nil {
		return ignoreEOF(err)
	}
	if binary.BigEndian.Uint32(header[:])&^1 != walMagic {
		return nil
	}
	size := int64(binary.BigEndian.Uint32(header[8:]))
	salts := [8]byte(header[16:])

	var frame [frameHeader + headerSize]byte
	for at := int64(walHeader); ; at += frameHeader + size {
		if _, err := log.ReadAt(frame[:], at); err != nil {
			return ignoreEOF(err)
		}
		if [8]byte(frame[8:]) != salts {
			return nil
		}
		if binary.BigEndian.Uint32(frame[:]) == 1 && !fn(frame[frameHeader:]) {
			return nil
		}
	}
}

// ignoreEOF returns an error of a read, unless it is the end of the file.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
