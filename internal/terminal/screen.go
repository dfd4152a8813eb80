package terminal

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/term"

	"github.com/ledgerd/ledgerd/ledger"
)

// A Screen is where a command prints to, and knows how: whether a person reads it on a
// terminal, how wide the terminal is, and whether it has colours. What a program reads,
// through a pipe or in a file, is never cut and has exact times. What is written to it cannot control
// the terminal, except by the colours of its Painter.
type Screen struct {
	Painter
	// Wide keeps tables from being cut to the width of the terminal.
	Wide bool

	writer     io.Writer
	isTerminal bool
	width      int // of the terminal; 0 means no limit
	now        time.Time
}

// NewScreen returns a Screen that writes to w. If w is one, it is returned. The environment
// variables NO_COLOR, CLICOLOR_FORCE, FORCE_COLOR, CLICOLOR, TERM and COLUMNS have their
// usual meaning.
func NewScreen(w io.Writer) *Screen {
	if s, ok := w.(*Screen); ok {
		return s
	}
	s := &Screen{writer: w, isTerminal: IsTerminal(w), now: time.Now()}
	if s.isTerminal {
		s.width = widthOf(w)
	}
	if hasColours(s.isTerminal, os.Getenv) {
		s.Painter = newPainter()
	}
	return s
}

// Write writes a text. It replaces what could control the terminal, as Printable does. Each call must have
// whole characters.
func (s *Screen) Write(text []byte) (int, error) {
	if _, err := s.writer.Write(s.visible(text, beforeStyle)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Exact returns where to write bytes that programs read: as they are, except on a terminal.
func (s *Screen) Exact() io.Writer {
	if s.isTerminal {
		return s
	}
	return s.writer
}

// Rewrite replaces the line on a terminal, where nothing else follows it.
func (s *Screen) Rewrite(line string) {
	fmt.Fprintf(s.writer, "\r\x1b[K%s", Clean(line))
}

// hasColours reports whether the environment asks for colours, or does not forbid them on a
// terminal. NO_COLOR takes precedence.
func hasColours(isTerminal bool, getenv func(string) string) bool {
	set := func(name string) bool {
		value := getenv(name)
		return value != "" && value != "0" && value != "false"
	}
	switch {
	case getenv("NO_COLOR") != "":
		return false
	case set("CLICOLOR_FORCE") || set("FORCE_COLOR"):
		return true
	case !isTerminal || getenv("TERM") == "dumb" || getenv("CLICOLOR") == "0":
		return false
	}
	// The old Windows console prints the escape codes instead of obeying them.
	return runtime.GOOS != "windows" || getenv("WT_SESSION") != ""
}

// IsTerminal reports whether v is a file that is a terminal, or a Screen on one.
func IsTerminal(v any) bool {
	if s, ok := v.(*Screen); ok {
		return s.isTerminal
	}
	f, ok := v.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}

// usualWidth is the width of a terminal that does not tell it.
const usualWidth = 80

// widthOf returns the width of a terminal in columns. COLUMNS takes precedence.
func widthOf(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return usualWidth
}

// Time returns a time as a person reads it on a terminal, such as "3 minutes ago", or else in
// RFC 3339. No time is "-".
func (s *Screen) Time(t ledger.Time) string {
	switch {
	case t == 0:
		return "-"
	case !s.isTerminal:
		return t.String()
	}
	return Ago(t, s.now)
}

// exactTime is like Time, but on a terminal also has the exact time.
func (s *Screen) exactTime(t ledger.Time) string {
	if t == 0 || !s.isTerminal {
		return s.Time(t)
	}
	return s.Time(t) + " (" + t.Std().Format(time.RFC3339) + ")"
}
