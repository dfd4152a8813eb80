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

// How much alike a file and one of another name are that count as renamed.
const (
	exactAndAlike = "-M50%"
	exactOnly     = "-M100%"
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

// record reads a diff with patches. The old content of each file with hunks is
// asked for as soon as these are read, and hashed while git goes on.
func (o *objectStore) record(ctx context.Context, diff []string) ([]radar.Change, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var places *placer
	changes, err := o.stream(ctx, diff, func(d *diffReader) error {
		if err := d.readRaw(); err != nil {
			return err
		}
		var err error
		if places, err = o.startPlacer(ctx, len(d.changes)); err != nil {
			return err
		}
		return d.readPatches(func(c *radar.Change) {
			if len(c.Hunks) > 0 {
				places.add(c)
			}
		})
	})
	if err != nil {
		cancel()
	}
	if places != nil {
		if placeErr := places.wait(); err == nil {
			err = placeErr
		}
	}
	return changes, err
}

// stream runs git diff-tree and reads what it prints while it does.
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
		// Where git itself gave up, that is the reason.
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

// A placer adds to hunks the hashes of where they are, from the old content of
// their files, which one git command gives.
type placer struct {
	command *exec.Cmd
	pipe    io.Closer
	in      *bufio.Writer      // of the object ids
	asked   chan *radar.Change // with room for all of them: git answers late
	done    chan error
}

// startPlacer starts a placer for a number of changes at most.
func (o *objectStore) startPlacer(ctx context.Context, limit int) (*placer, error) {
	p := &placer{
		command: o.command(ctx, "cat-file", "--batch", "--buffer"),
		asked:   make(chan *radar.Change, limit),
		done:    make(chan error, 1),
	}
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.pipe, p.in = in, bufio.NewWriterSize(in, 1<<10)
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, failure(p.command, "cat-file", err)
	}
	go func() { p.done <- p.read(bufio.NewReaderSize(stdout, 64<<10)) }()
	return p, nil
}

// add asks for the old content of a change, which is the placer's from then on.
func (p *placer) add(c *radar.Change) {
	_, _ = p.in.WriteString(c.OldBlob + "\n") // where it fails, the reader does too
	p.asked <- c
}

// wait returns once all that was added has its hashes.
func (p *placer) wait() error {
	close(p.asked)
	_ = p.in.Flush()
	p.pipe.Close()
	readErr := <-p.done
	if err := p.command.Wait(); err != nil {
		return failure(p.command, "cat-file", err)
	}
	return readErr
}

func (p *placer) read(out *bufio.Reader) error {
	hasher := newGapHasher()
	var content []byte
	for c := range p.asked {
		var err error
		if content, err = readObject(out, content); err != nil {
			return fmt.Errorf("git cat-file of %s: %w", c.OldBlob, err)
		}
		hasher.addHashes(content, c.Hunks)
	}
	return nil
}

// readObject reads the next object that git cat-file --batch prints, into buf
// where it has room.
func readObject(out *bufio.Reader, buf []byte) ([]byte, error) {
	head, err := out.ReadString('\n')
	if err != nil {
		return nil, noEOF(err)
	}
	fields := strings.Fields(head)
	if len(fields) != 3 {
		return nil, fmt.Errorf("git answers %q", strings.TrimSpace(head))
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
