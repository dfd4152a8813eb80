// Package powercut replays power cuts. It records the system calls by which a program
// writes the files of a folder, and builds the folder as a disk may have it if the power
// fails at any moment.
//
// What POSIX guarantees is on the disk, and nothing else. The content and the size of a
// file survive if it was synced after the write. A new, renamed or deleted name survives
// if the folder was synced. Of everything later, nothing, all, or any part may survive,
// in any order. A sector of 512 bytes is written as a whole or not at all, and a write
// does not change bytes around it.
package powercut

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// A Trace is a sequence of changes of the files in a folder, and of messages that the
// program sent to others.
type Trace struct {
	folder   string
	lines    int
	names    []nameChange
	syncs    []sync
	messages []Message
	start    map[string]*file
}

// A Message is what the program wrote to a socket or a pipe.
type Message struct {
	At   int // the line of the trace at which the write began
	Text []byte
}

// A file is the content that a name in the folder refers to.
type file struct {
	start   []byte
	changes []change
	mapped  bool // written through memory, which the trace does not have
}

// A span is when a change was made: began and ended are lines of the trace. A power cut
// after the line durable cannot undo the change. Each may be never.
type span struct{ began, ended, durable int }

// A change is a write of data, or sets the size if data is nil.
type change struct {
	span
	offset int64 // or the size
	data   []byte
}

// A nameChange creates the name to of a file, deletes the name from, or does both at once.
type nameChange struct {
	span
	from, to string
	file     *file
}

// A sync is a call of fsync or fdatasync of the file, or of the folder if file is nil.
type sync struct {
	began, ended int
	name         string
	file         *file
	ignored      bool
}

// A parser builds a trace.
type parser struct {
	*Trace
	live    map[string]*file // the names after the calls so far
	offsets map[string]int64 // by descriptor
}

// Parse reads a trace of strace about the given folder. start has the files with which
// the folder began; they are on the disk. The folder has no folders.
func Parse(r io.Reader, folder string, start map[string][]byte) (*Trace, error) {
	t := &Trace{folder: folder, start: make(map[string]*file)}
	p := parser{t, make(map[string]*file), make(map[string]int64)}
	for name, text := range start {
		p.start[name] = &file{start: text}
		p.live[name] = p.start[name]
	}
	var err error
	if t.lines, err = readCalls(r, p.add); err != nil {
		return nil, err
	}
	t.settle()
	return t, nil
}

// settle computes when each change becomes durable.
func (t *Trace) settle() {
	files := make(map[*file]bool)
	for _, f := range t.start {
		files[f] = true
	}
	for i := range t.names {
		files[t.names[i].file] = true
		t.names[i].durable = t.syncedAfter(nil, t.names[i].ended)
	}
	for f := range files {
		for i := range f.changes {
			f.changes[i].durable = t.syncedAfter(f, f.changes[i].ended)
		}
	}
}

// syncedAfter returns the end of the first sync of a file that began after a line.
func (t *Trace) syncedAfter(f *file, line int) int {
	first := never
	for _, s := range t.syncs {
		if s.file == f && s.began > line && !s.ignored {
			first = min(first, s.ended)
		}
	}
	return first
}

// IgnoreSyncs makes the trace that of a program that does not sync the given files, but
// all others. The empty name is the folder.
func (t *Trace) IgnoreSyncs(names ...string) {
	for i := range t.syncs {
		t.syncs[i].ignored = slices.Contains(names, t.syncs[i].name)
	}
	t.settle()
}

// String counts the syncs of each file.
func (t *Trace) String() string {
	counts := make(map[string]int)
	for _, s := range t.syncs {
		counts[s.name]++
	}
	return fmt.Sprintf("trace of %d lines, %d messages, syncs: %v", t.lines, len(t.messages), counts)
}

// Lines is the number of lines of the trace. A cut at this line is after all calls.
func (t *Trace) Lines() int { return t.lines }

// Syncs returns the lines of the trace at which the syncs of a file began. The empty name
// is the folder. A cut at such a line is before the sync.
func (t *Trace) Syncs(name string) (lines []int) {
	for _, s := range t.syncs {
		if s.name == name {
			lines = append(lines, s.began)
		}
	}
	return lines
}

// Messages returns what the program sent, in order.
func (t *Trace) Messages() []Message { return t.messages }

// add adds a system call.
func (p *parser) add(c call) error {
	switch c.name {
	case "open", "openat":
		return p.open(c)
	case "write", "pwrite64":
		return p.write(c)
	case "ftruncate", "fsync", "fdatasync", "mmap":
		return p.change(c)
	case "unlink", "unlinkat", "rename", "renameat", "renameat2":
		return p.rename(c)
	}
	return p.refuse(c)
}

// refuse returns an error if a call that the model does not know affects the folder.
func (p *parser) refuse(c call) error {
	for i, arg := range c.args {
		var path string
		if text, err := c.text(i); err == nil {
			path = string(text)
		} else if strings.Contains(arg, "<") {
			_, path, _ = c.descriptor(i) // an error means another kind of argument
		}
		if name, ok := p.inFolder(path); ok {
			return fmt.Errorf("%s of %q is not supported", c.name, name)
		}
	}
	return nil
}

// inFolder reports whether a path is the folder, for which name is empty, or a file in it.
func (p *parser) inFolder(path string) (name string, ok bool) {
	if path == p.folder {
		return "", true
	}
	return strings.CutPrefix(path, p.folder+"/")
}

// path returns the path in an argument. That of openat and similar calls may be relative
// to the folder in the argument before it.
func (c call) path(i int) (string, error) {
	text, err := c.text(i)
	if err != nil || i == 0 || filepath.IsAbs(string(text)) {
		return string(text), err
	}
	_, folder, err := c.descriptor(i - 1)
	return filepath.Join(folder, string(text)), err
}

func (p *parser) open(c call) error {
	i := 0
	if c.name == "openat" {
		i = 1
	}
	path, err := c.path(i)
	if err != nil {
		return err
	}
	name, ok := p.inFolder(path)
	if !ok || name == "" || c.ended == never {
		return nil
	}

	p.offsets[fmt.Sprint(c.result)] = 0
	when := span{began: c.began, ended: c.ended}
	flags := strings.Split(c.args[i+1], "|")
	switch f := p.live[name]; {
	case f == nil:
		p.live[name] = &file{}
		p.names = append(p.names, nameChange{span: when, to: name, file: p.live[name]})
	case slices.Contains(flags, "O_TRUNC"):
		f.changes = append(f.changes, change{span: when})
	}
	if slices.Contains(flags, "O_APPEND") {
		return fmt.Errorf("O_APPEND for %q is not supported", name)
	}
	return nil
}

func (p *parser) write(c call) error {
	fd, path, err := c.descriptor(0)
	if err != nil {
		return err
	}
	name, ok := p.inFolder(path)
	stream := strings.HasPrefix(path, "socket:") || strings.HasPrefix(path, "pipe:")
	if !ok && !stream {
		return nil
	}
	data, err := c.text(1)
	if err != nil {
		return err
	}
	if stream {
		p.messages = append(p.messages, Message{c.began, data})
		return nil
	}

	if c.ended != never {
		data = data[:c.result]
	}
	offset := p.offsets[fd]
	if c.name == "pwrite64" {
		if offset, err = c.number(3); err != nil {
			return err
		}
	} else {
		p.offsets[fd] += int64(len(data))
	}
	return p.changed(name, change{span{began: c.began, ended: c.ended}, offset, data})
}

// changed adds a change of a file.
func (p *parser) changed(name string, made change) error {
	f := p.live[name]
	if f == nil {
		return fmt.Errorf("%q is written, but was not there", name)
	}
	f.changes = append(f.changes, made)
	return nil
}

// change adds a call that changes or syncs the file of a descriptor.
func (p *parser) change(c call) error {
	arg := 0
	if c.name == "mmap" {
		if arg = 4; !strings.Contains(c.args[2], "PROT_WRITE") || !strings.Contains(c.args[3], "MAP_SHARED") {
			return nil
		}
	}
	_, path, err := c.descriptor(arg)
	if err != nil {
		return err
	}
	name, ok := p.inFolder(path)
	f := p.live[name]
	if !ok || name != "" && f == nil {
		return nil
	}

	switch c.name {
	case "mmap":
		f.mapped = true
	case "ftruncate":
		size, err := c.number(1)
		if err != nil {
			return err
		}
		return p.changed(name, change{span{began: c.began, ended: c.ended}, size, nil})
	default:
		p.syncs = append(p.syncs, sync{began: c.began, ended: c.ended, name: name, file: f})
	}
	return nil
}

// rename adds a call that deletes or renames a file.
func (p *parser) rename(c call) error {
	at := strings.Contains(c.name, "at")
	first, second := 0, 1
	if at {
		first, second = 1, 3
	}
	path, err := c.path(first)
	if err != nil {
		return err
	}
	from, ok := p.inFolder(path)
	if !ok {
		return nil
	}
	f := p.live[from]
	if f == nil {
		return fmt.Errorf("%q is deleted or renamed, but was not there", from)
	}

	to := ""
	if strings.HasPrefix(c.name, "rename") {
		if path, err = c.path(second); err != nil {
			return err
		}
		if to, ok = p.inFolder(path); !ok {
			return fmt.Errorf("%q is moved to another folder", from)
		}
		p.live[to] = f
	}
	delete(p.live, from)
	p.names = append(p.names, nameChange{span{began: c.began, ended: c.ended}, from, to, f})
	return nil
}
