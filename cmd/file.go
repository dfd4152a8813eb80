package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// readFile reads a file that a flag names, or standard input where that is "-".
func (p *program) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(p.stdin)
	}
	return os.ReadFile(name)
}

// A replacement is a file that is to take the place of what has its name, if
// anything has, once it is written whole.
type replacement struct {
	name string
	file *os.File // beside it, or what has the name where that is no file
	temp bool     // there is a file to rename or remove
}

// replace begins a file of the given name and mode. It must be written or
// discarded.
func replace(name string, mode fs.FileMode) (*replacement, error) {
	there, err := os.Stat(name)
	switch {
	case err == nil && there.IsDir():
		return nil, fmt.Errorf("%s is a folder", name)
	case err == nil && !there.Mode().IsRegular(): // a device or a pipe stays what it is
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &replacement{name: name, file: f}, err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", name, err)
	}
	r := &replacement{name, f, true}
	if err := f.Chmod(mode); err != nil {
		r.discard()
		return nil, err
	}
	return r, nil
}

// write gives the file its content and its name, or discards it.
func (r *replacement) write(text []byte) error {
	defer r.discard()
	if err := r.fill(text); err != nil {
		return err
	}
	return r.rename()
}

// fill writes the content, to the disk as well: what it replaces may be all that
// there is of a key.
func (r *replacement) fill(text []byte) error {
	_, err := r.file.Write(text)
	if r.temp && err == nil {
		err = r.file.Sync()
	}
	return errors.Join(err, r.file.Close())
}

// rename gives the filled file its name.
func (r *replacement) rename() error {
	if !r.temp {
		return nil
	}
	err := os.Rename(r.file.Name(), r.name)
	r.temp = err != nil
	return err
}

// discard leaves what has the name as it is. After rename it does nothing.
func (r *replacement) discard() {
	_ = r.file.Close()
	if r.temp {
		_ = os.Remove(r.file.Name())
		r.temp = false
	}
}
