package gitrepo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

// The similarity at which git reports a renamed file.
const (
	exactAndSimilar = "-M50%"
	exactOnly       = "-M100%"
)

func rawDiff(renames, from, to string) []string {
	return []string{"diff-tree", "-r", renames, "--ignore-submodules=none", "--raw", "-z", "--no-abbrev", from, to}
}

func patchDiff(renames, from, to string, paths ...string) []string {
	args := []string{"--literal-pathspecs", "diff-tree", "-r", renames, "--ignore-submodules=none",
		"--raw", "-z", "-p", "-U0", "--no-abbrev", "--full-index", "--diff-algorithm=histogram", "--no-indent-heuristic",
		"--no-color", "--no-ext-diff", "--no-textconv", from, to, "--"}
	return append(args, paths...)
}

// record runs a diff with patches and returns the change record. It requests the
// old content of a file as soon as the file's hunks are read, and hashes it while
// the diff goes on.
func (o *objectStore) record(ctx context.Context, diff []string) ([]radar.Change, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var hashes *hunkHasher
	changes, err := o.stream(ctx, diff, func(d *diffReader) error {
		if err := d.readRaw(); err != nil {
			return err
		}
		var err error
		if hashes, err = o.startHunkHasher(ctx, len(d.changes)); err != nil {
			return err
		}
		return d.readPatches(func(c *radar.Change) {
			if len(c.Hunks) > 0 {
				hashes.add(c)
			}
		})
	})

	if err != nil {
		cancel()
	}
	if hashes != nil {
		if hashErr := hashes.wait(); err == nil {
			err = hashErr
		}
	}
	return changes, err
}

// stream runs git diff-tree and reads its output as it comes.
func (o *objectStore) stream(ctx context.Context, diff []string, read func(*diffReader) error) ([]radar.Change, error) {
	command := o.command(ctx, diff...)
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, failure(command, "diff-tree", err)
	}

	d := newDiffReader(stdout)
	readErr := read(d)
	if readErr != nil {
		// If git failed, its error is the cause: let it finish.
		io.Copy(io.Discard, stdout)
	}
	if err := command.Wait(); err != nil {
		return nil, failure(command, "diff-tree", err)
	}
	if readErr != nil {
		return nil, fmt.Errorf("git diff-tree: %w", readErr)
	}
	return d.changes, nil
}

// A hunkHasher sets the near and far hashes of hunks. It reads the old content of
// their files from one git command.
type hunkHasher struct {
	command *exec.Cmd
	pipe    io.Closer
	in      *bufio.Writer      // of object ids
	queue   chan *radar.Change // has room for all changes, since git buffers its output
	done    chan error
}

// startHunkHasher starts a hunkHasher for at most limit changes.
func (o *objectStore) startHunkHasher(ctx context.Context, limit int) (*hunkHasher, error) {
	h := &hunkHasher{
		command: o.command(ctx, "cat-file", "--batch", "--buffer"),
		queue:   make(chan *radar.Change, limit),
		done:    make(chan error, 1),
	}
	in, err := h.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	h.pipe, h.in = in, bufio.NewWriterSize(in, 1<<10)
	stdout, err := h.command.StdoutPipe()
	if err != nil {
		return nil, err
	}

	if err := h.command.Start(); err != nil {
		return nil, failure(h.command, "cat-file", err)
	}
	go func() { h.done <- h.read(bufio.NewReaderSize(stdout, 64<<10)) }()
	return h, nil
}

// add queues a change. It belongs to the hunkHasher until wait returns.
func (h *hunkHasher) add(c *radar.Change) {
	_, _ = h.in.WriteString(c.OldBlob + "\n") // if it fails, so does the reader
	h.queue <- c
}

// wait waits until all queued changes have their hashes.
func (h *hunkHasher) wait() error {
	close(h.queue)
	_ = h.in.Flush()
	h.pipe.Close()
	readErr := <-h.done
	if err := h.command.Wait(); err != nil {
		return failure(h.command, "cat-file", err)
	}
	return readErr
}

func (h *hunkHasher) read(out *bufio.Reader) error {
	hasher := newGapHasher()
	var content []byte
	for c := range h.queue {
		var err error
		if content, err = readObject(out, content); err != nil {
			return fmt.Errorf("git cat-file of %s: %w", c.OldBlob, err)
		}
		hasher.addHashes(content, c.Hunks)
	}
	return nil
}

// readObject reads the next object from the output of git cat-file --batch. It
// reuses buf if that is large enough.
func readObject(out *bufio.Reader, buf []byte) ([]byte, error) {
	head, err := out.ReadString('\n')
	if err != nil {
		return nil, noEOF(err)
	}
	fields := strings.Fields(head)
	if len(fields) != 3 {
		return nil, fmt.Errorf("git printed %q", strings.TrimSpace(head))
	}

	size, err := strconv.Atoi(fields[2])
	if err != nil {
		return nil, err
	}
	if cap(buf) <= size {
		buf = make([]byte, size+size/4+1)
	}
	buf = buf[:size+1] // and a line break
	if _, err := io.ReadFull(out, buf); err != nil {
		return nil, noEOF(err)
	}
	return buf[:size], nil
}
