package logqueue_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/logqueue"
	"github.com/ledgerd/ledgerd/internal/must"
)

func note(dropped int) []byte { return fmt.Appendf(nil, "dropped %d\n", dropped) }

// forever is longer than any test runs.
const forever = time.Hour

func TestQueueWritesLinesInOrder(t *testing.T) {
	r, w := pipe(t)
	q := logqueue.New(w, note)
	line := make([]byte, 0, 20)
	for i := range 1000 {
		line = fmt.Appendf(line[:0], "%d\n", i) // reuses the buffer, as slog does
		q.Write(line)
	}
	q.Close(forever)
	w.Close()

	for i, got := range readLines(r) {
		if want := fmt.Sprint(i); got != want {
			t.Fatalf("line %d is %q, want %q", i, got, want)
		}
	}
}

// A reader that stops reading blocks the pipe, but not the program. What is dropped is
// counted.
func TestFaultBlockedPipeDropsLinesAndCountsThem(t *testing.T) {
	r, w := pipe(t)
	q := logqueue.New(w, note)
	const lines = 5000
	line := []byte(strings.Repeat("x", 1023) + "\n")
	for range lines {
		q.Write(line)
	}

	got := make(chan []string)
	go func() { got <- readLines(r) }()
	q.Close(forever)
	w.Close()

	written, dropped := 0, 0
	for _, text := range <-got {
		if n, err := fmt.Sscanf(text, "dropped %d", &dropped); n == 1 && err == nil {
			continue
		}
		written++
	}
	if written+dropped != lines || dropped == 0 {
		t.Errorf("%d lines written and %d dropped, want %d together and some dropped", written, dropped, lines)
	}
	// The pipe holds some lines too, and one is being written.
	if limit := 1<<10 + 64 + 1; written < 1<<10 || written > limit {
		t.Errorf("%d lines of 1 KiB written, want 1024 to %d: the limit is 1 MiB", written, limit)
	}
}

// After the pipe has drained, lines are written again, following the note.
func TestFaultLinesFollowAfterThePipeDrains(t *testing.T) {
	r, w := pipe(t)
	q := logqueue.New(w, note)
	line := []byte(strings.Repeat("x", 1<<16) + "\n")
	for range 100 {
		q.Write(line)
	}
	reader := bufio.NewReader(r)
	for {
		text, err := reader.ReadString('\n')
		must.OK(t, err)
		if strings.HasPrefix(text, "dropped ") {
			break
		}
	}

	q.Write([]byte("back\n"))
	if text, err := reader.ReadString('\n'); text != "back\n" || err != nil {
		t.Errorf("after the note: %q, %v, want back", text, err)
	}
	q.Close(forever)
}

// Lines are dropped until all older ones are written, so that the note says where they
// are missing.
func TestFaultNothingIsQueuedWhileLinesAreDropped(t *testing.T) {
	r, w := pipe(t)
	q := logqueue.New(w, note)
	line := []byte(strings.Repeat("x", 1023) + "\n")
	for range 2000 {
		q.Write(line)
	}
	if _, err := io.ReadFull(r, make([]byte, 300<<10)); err != nil { // more than the pipe holds
		t.Fatal(err)
	}
	q.Write([]byte("late\n"))

	got := make(chan []string)
	go func() { got <- readLines(r) }()
	q.Close(forever)
	w.Close()
	lines := <-got
	if slices.Contains(lines, "late") || !strings.HasPrefix(lines[len(lines)-1], "dropped ") {
		t.Errorf("the last line is %q, want the note; it must not follow a newer line", lines[len(lines)-1])
	}
}

// A reader that keeps up loses nothing, however much is written.
func TestQueueIsFreeAgain(t *testing.T) {
	r, w := pipe(t)
	q := logqueue.New(w, note)
	reader := bufio.NewReader(r)
	for range 40 {
		line := strings.Repeat("x", 1<<16) + "\n"
		q.Write([]byte(line))
		if got, err := reader.ReadString('\n'); got != line || err != nil {
			t.Fatalf("read %d bytes, %v, want the line of %d bytes", len(got), err, len(line))
		}
	}
	q.Close(forever)
}

// Close does not wait for a reader that never reads.
func TestFaultCloseIsBounded(t *testing.T) {
	_, w := pipe(t)
	q := logqueue.New(w, note)
	q.Write(make([]byte, 1<<20))
	q.Close(time.Millisecond)
	q.Write([]byte("late\n"))
}

// A failing writer loses lines. The next line that is written is followed by their
// number.
func TestFaultFailedWritesAreCounted(t *testing.T) {
	w := &flakyWriter{failing: true}
	q := logqueue.New(w, note)
	for range 3 {
		q.Write([]byte("lost\n"))
	}
	w.waitForWrites(3)
	w.recover()
	q.Write([]byte("kept\n"))
	q.Write([]byte("more\n"))
	q.Close(forever)
	if got, want := w.text.String(), "kept\ndropped 3\nmore\n"; got != want {
		t.Errorf("written: %q, want %q", got, want)
	}
}

// A flakyWriter is a file on a disk that is full for a while.
type flakyWriter struct {
	mu      sync.Mutex
	failing bool
	writes  int
	text    bytes.Buffer
}

func (w *flakyWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if w.failing {
		return 0, errors.New("no space left on device")
	}
	return w.text.Write(b)
}

func (w *flakyWriter) waitForWrites(n int) {
	for done := false; !done; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		done = w.writes >= n
		w.mu.Unlock()
	}
}

func (w *flakyWriter) recover() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = false
}

// pipe returns a pipe of the operating system, which holds 64 KiB or less.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	must.OK(t, err)
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}

func readLines(r *os.File) []string {
	var lines []string
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	return lines
}
