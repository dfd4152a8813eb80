// Package backup writes backups of a database at intervals, and restores them.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A Schedule writes a backup at intervals, and deletes the oldest ones. The time of a backup is
// in the name of its file, so a restart neither repeats nor skips one.
type Schedule struct {
	// Write writes a backup with the given path, and returns its size in bytes.
	Write func(ctx context.Context, path string) (int64, error)
	// Folder has the backups. Name is the first part of the names of the files; others are
	// left alone.
	Folder, Name string
	Every        time.Duration // from the beginning of a backup to that of the next
	Keep         int           // how many backups are kept
	Now          func() time.Time
	Log          *slog.Logger

	mu     sync.Mutex
	status Status
}

// A Status says how the backups went since the start.
type Status struct {
	Last     time.Time // of the newest backup, which may be from before the start; zero for none
	Bytes    int64     // its size
	Failures int64
}

// Status returns how the backups went.
func (s *Schedule) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

const (
	// retryAfter is how long Run waits after a failure, unless the next backup is due before.
	retryAfter = 10 * time.Minute
	// lookEvery is how often Run looks whether a backup is due, if Every is not less.
	lookEvery = 10 * time.Second

	// layout is the time in the name of a backup.
	layout    = "20060102T150405Z"
	extension = ".db"
)

// Run writes backups until ctx is done.
func (s *Schedule) Run(ctx context.Context) {
	look := time.NewTicker(min(s.Every, lookEvery))
	defer look.Stop()
	for wait := s.firstWait(ctx); ; {
		for begun := time.Now(); time.Since(begun) < wait; { // which no jump of the clock changes
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
		}

		begun := time.Now()
		wait = s.Every
		if err := s.backUp(ctx); err != nil && ctx.Err() == nil {
			s.failed(ctx, err)
			wait = min(s.Every, retryAfter)
		}
		wait -= time.Since(begun)
	}
}

// firstWait returns how long Run waits for the first backup: for the rest of the interval since
// the newest one.
func (s *Schedule) firstWait(ctx context.Context) time.Duration {
	files, err := s.files()
	if err != nil || len(files) == 0 {
		return 0 // backUp returns the error
	}
	newest := files[len(files)-1]
	at, err := s.timeOf(newest)
	if err != nil {
		return 0
	}
	if info, err := os.Stat(filepath.Join(s.Folder, newest)); err == nil {
		s.set(func(status *Status) { status.Last, status.Bytes = at, info.Size() })
	}

	age := s.Now().Sub(at)
	if age < 0 {
		s.Log.WarnContext(ctx, "the newest backup is from the future", "file", newest)
		return 0
	}
	return s.Every - age
}

// backUp writes a backup and deletes the oldest ones.
func (s *Schedule) backUp(ctx context.Context) error {
	begun, at := time.Now(), s.Now().UTC()
	path := filepath.Join(s.Folder, s.Name+"-"+at.Format(layout)+extension)
	size, err := s.Write(ctx, path)
	if err != nil {
		return err
	}
	s.set(func(status *Status) { status.Last, status.Bytes = at, size })
	s.Log.InfoContext(ctx, "backup written", "file", path, "bytes", size,
		"took", time.Since(begun).Round(time.Millisecond))
	return s.deleteOldest(filepath.Base(path))
}

// deleteOldest deletes all backups but the newest ones, and the one just written.
func (s *Schedule) deleteOldest(written string) error {
	files, err := s.files()
	if err != nil {
		return err
	}
	for _, file := range files[:max(0, len(files)-s.Keep)] {
		if file == written {
			continue // the others are from the future
		}
		if err := os.Remove(filepath.Join(s.Folder, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete an old backup: %w", err)
		}
	}
	return nil
}

// files returns the names of the backups, oldest first.
func (s *Schedule) files() ([]string, error) {
	entries, err := os.ReadDir(s.Folder)
	if err != nil {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	var files []string
	for _, entry := range entries { // in the order of their names
		if _, err := s.timeOf(entry.Name()); err == nil && entry.Type().IsRegular() {
			files = append(files, entry.Name())
		}
	}
	return files, nil
}

// timeOf returns the time in the name of a backup. It returns an error for other files.
func (s *Schedule) timeOf(file string) (time.Time, error) {
	text, isDatabase := strings.CutSuffix(file, extension)
	text, isBackup := strings.CutPrefix(text, s.Name+"-")
	if !isDatabase || !isBackup {
		return time.Time{}, errors.New("not a backup")
	}
	return time.Parse(layout, text)
}

func (s *Schedule) failed(ctx context.Context, err error) {
	s.set(func(status *Status) { status.Failures++ })
	s.Log.ErrorContext(ctx, "backup failed", "folder", s.Folder, "error", err)
}

func (s *Schedule) set(change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
}
