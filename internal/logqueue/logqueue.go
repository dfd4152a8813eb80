// Package logqueue decouples a program from the reader of its log.
package logqueue

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// maxBytes is the maximum size of all queued lines together.
const maxBytes = 1 << 20

// A Queue writes lines to a writer in its own goroutine, so that [Queue.Write] never
// waits. If more than 1 MiB is queued, because the writer is blocked, it drops further
// lines until everything queued is written. It then writes a note with their number.
type Queue struct {
	w    io.Writer
	note func(dropped int) []byte

	mu      sync.Mutex
	changed sync.Cond // signals a change of lines or closed
	lines   [][]byte
	size    int // of lines, in bytes
	dropped int // lines dropped since the last note
	closed  bool
	ended   chan struct{} // closed when all lines are written
}

// New returns a Queue that writes to w. note returns the line to write after lines were
// dropped. The caller must close the Queue.
func New(w io.Writer, note func(dropped int) []byte) *Queue {
	q := &Queue{w: w, note: note, ended: make(chan struct{})}
	q.changed.L = &q.mu
	go q.run()
	return q
}

// Write queues a copy of a line, or drops the line. It implements io.Writer and always
// succeeds.
func (q *Queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.dropped > 0 || q.size+len(line) > maxBytes {
		q.dropped++
		return len(line), nil
	}
	q.lines = append(q.lines, bytes.Clone(line))
	q.size += len(line)
	q.changed.Signal()
	return len(line), nil
}

// Close waits until the queued lines are written, at most for the given time. Lines
// that are written later are dropped.
func (q *Queue) Close(wait time.Duration) {
	q.mu.Lock()
	q.closed = true
	q.changed.Signal()
	q.mu.Unlock()

	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case <-q.ended:
	case <-timeout.C: // the goroutine ends with the program
	}
}

// run writes the lines until the Queue is closed and empty. A line that cannot be
// written, for instance because the disk is full, counts as dropped.
func (q *Queue) run() {
	defer close(q.ended)
	failed := 0
	for {
		line, dropped, ok := q.next()
		if !ok {
			return
		}
		failed += dropped

		if line != nil {
			if _, err := q.w.Write(line); err != nil {
				failed++
				continue
			}
		}
		if failed > 0 {
			if _, err := q.w.Write(q.note(failed)); err == nil {
				failed = 0
			}
		}
	}
}

// next waits for a line and removes it from the queue. If the queue is empty and lines
// were dropped, it returns their number instead. It reports false at the end.
func (q *Queue) next() (line []byte, dropped int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.lines) == 0 && q.dropped == 0 && !q.closed {
		q.changed.Wait()
	}
	if len(q.lines) == 0 {
		dropped, q.dropped = q.dropped, 0
		return nil, dropped, dropped > 0
	}
	line = q.lines[0]
	q.lines[0] = nil // for the garbage collector
	q.lines = q.lines[1:]
	q.size -= len(line)
	return line, 0, true
}
