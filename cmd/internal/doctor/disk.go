package doctor

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
)

const (
	// littleSpace is the space that a server soon needs.
	littleSpace = 1 << 30
	// tooLittleSpace is so little that a busy server fills it within minutes.
	tooLittleSpace = 64 << 20
	// largeLog is the size of a write-ahead log that somebody does not write back.
	largeLog = 1 << 30
)

// disk examines the space for the database. If it is not readable, it is to be migrated, or does
// not exist.
func (e *examination) disk(readable bool) {
	const check = "disk"
	path := string(e.settings.Database)
	free, err := freeSpace(filepath.Dir(path))
	if err != nil {
		e.add(check, Warning, "the free space for the database is unknown: %v", err)
		return
	}

	var needed int64 = tooLittleSpace
	if info, err := os.Stat(path); err == nil && !readable && !e.settings.NoCopy {
		needed += info.Size() // of the copy
	}
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > largeLog {
		e.add(check, Warning, "the write-ahead log of the database has %s: a start reads all of it "+
			"(does the program of external_checkpoints run?)", size(log.Size()))
	}
	switch {
	case free < needed:
		e.add(check, Problem, "%s free for the database, %s needed", size(free), size(needed))
	case free < littleSpace+needed:
		e.add(check, Warning, "only %s free for the database", size(free))
	default:
		e.add(check, OK, "%s free for the database", size(free))
	}
}

// backups examines the folder of the backups.
func (e *examination) backups() {
	const check = "backup"
	folder := e.settings.Backup.Folder
	if folder == "" {
		e.add(check, Warning, "the server writes no backups (set backup.folder, or replicate the database)")
		return
	}
	if err := tryFolder(folder); err != nil {
		e.add(check, Problem, "backup.folder cannot be written to: %v", err)
		return
	}

	if sameDisk(folder, filepath.Dir(string(e.settings.Database))) {
		e.add(check, Warning, "backup.folder is on the disk of the database: copy the backups to another one")
	}
	free, err := freeSpace(folder)
	needed, sizeErr := fileSize(string(e.settings.Database))
	switch err := errors.Join(err, sizeErr); {
	case err != nil:
		e.add(check, Warning, "the free space for backups is unknown: %v", err)
	case free < needed+tooLittleSpace:
		e.add(check, Problem, "%s free in backup.folder, the next backup needs %s", size(free), size(needed))
	default:
		e.add(check, OK, "%s free in backup.folder", size(free))
	}
}

// fileSize returns the size of a file; of one that does not exist, zero.
func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// tryFolder returns an error if no file can be created in a folder.
func tryFolder(folder string) error {
	file, err := os.CreateTemp(folder, ".ledgerd-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// tryWrite returns an error if a file cannot be written to. It writes nothing.
func tryWrite(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return file.Close()
}

// size returns a number of bytes for people, such as 1.5 GiB.
func size(bytes int64) string { return humanize.IBytes(uint64(max(bytes, 0))) }
