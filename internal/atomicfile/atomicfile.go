// Package atomicfile writes files whole: what has their name stays until then.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A File replaces the file of its name, if one exists, once it is written whole.
type File struct {
	name string
	file *os.File // next to it; the thing itself if that is not a regular file
	temp bool     // there is a file to rename or remove
}

// Create begins a file of the given name and mode. The caller must write or discard
// it.
func Create(name string, mode fs.FileMode) (*File, error) {
	there, err := os.Stat(name)
	switch {
	case err == nil && there.IsDir():
		return nil, fmt.Errorf("%s is a folder", name)
	case err == nil && !there.Mode().IsRegular(): // a device or a pipe stays what it is
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &File{name: name, file: f}, err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", name, err)
	}
	r := &File{name, f, true}
	if err := f.Chmod(mode); err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}

// Write gives the file its content and its name, or discards it.
func (r *File) Write(text []byte) error {
	defer r.Discard()
	if err := r.Fill(text); err != nil {
		return err
	}
	return r.Rename()
}

// Fill writes the content, to the disk as well: what it replaces may be all that
// there is of a key.
func (r *File) Fill(text []byte) error {
	_, err := r.file.Write(text)
	if r.temp && err == nil {
		err = r.file.Sync()
	}
	return errors.Join(err, r.file.Close())
}

// Rename gives the filled file its name.
func (r *File) Rename() error {
	if !r.temp {
		return nil
	}
	err := os.Rename(r.file.Name(), r.name)
	r.temp = err != nil
	return err
}

// Discard leaves the file of the name as it is. After Rename it is a no-op.
func (r *File) Discard() {
	_ = r.file.Close()
	if r.temp {
		_ = os.Remove(r.file.Name())
		r.temp = false
	}
}
