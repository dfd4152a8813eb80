// Package atomicfile replaces files atomically: the old file remains until the new one
// is complete. What it has written survives a power cut.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// A File is a new file that gets its name, and replaces an existing file of this name,
// when it is complete.
type File struct {
	name string
	file *os.File // a temporary file in the same folder, or the device or pipe itself
	temp bool     // file is temporary and neither renamed nor removed
}

// Create creates a file with the given name and mode. The caller must call Write or
// Discard.
func Create(name string, mode fs.FileMode) (*File, error) {
	existing, err := os.Stat(name)
	switch {
	case err == nil && existing.IsDir():
		return nil, fmt.Errorf("%s is a folder", name)
	case err == nil && !existing.Mode().IsRegular(): // a device or pipe is not replaced
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &File{name: name, file: f}, err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", name, err)
	}
	r := &File{name, f, true}
	if err := f.Chmod(mode); err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}

// Append writes a part of the content. The file still needs Write or Fill, for the rest.
func (r *File) Append(text []byte) error {
	_, err := r.file.Write(text)
	return err
}

// Write writes the content and renames the file. If this fails, it discards the file.
func (r *File) Write(text []byte) error {
	defer r.Discard()
	if err := r.Fill(text); err != nil {
		return err
	}
	return r.Rename()
}

// Fill writes the content and syncs it to disk, since it may replace the only copy of
// a key. The file still needs Rename.
func (r *File) Fill(text []byte) error {
	return r.FillWith(func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// FillWith is like Fill for a content that write writes.
func (r *File) FillWith(write func(io.Writer) error) error {
	err := write(r.file)
	if r.temp && err == nil {
		err = r.file.Sync()
	}
	return errors.Join(err, r.file.Close())
}

// Rename renames the file from its temporary name, after Fill.
func (r *File) Rename() error {
	if !r.temp {
		return nil
	}
	if err := os.Rename(r.file.Name(), r.name); err != nil {
		return err
	}
	r.temp = false
	return SyncFolder(r.name)
}

// Discard removes the temporary file and keeps the existing one. After Rename it is a
// no-op.
func (r *File) Discard() {
	_ = r.file.Close()
	if r.temp {
		_ = os.Remove(r.file.Name())
		r.temp = false
	}
}

// SyncFolder syncs the folder of a file to disk. Until then, a new or renamed file may
// lose its name if the power fails. It is a no-op if the folder cannot be opened or
// synced: Windows and some network file systems have no such operation.
func SyncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(filepath.Dir(name))
	if errors.Is(err, fs.ErrPermission) { // to create files takes no permission to read
		return nil
	}
	if err != nil {
		return err
	}

	err = folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, folder.Close())
}
