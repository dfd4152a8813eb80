// Package terminal formats output for people: tables, colours, and text without
// control characters.
package terminal

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/term"

	"github.com/ledgerd/ledgerd/ledger"
)

// The styles for Paint: ANSI colour codes.
const (
	Red     = "31"
	Green   = "32"
	Yellow  = "33"
	Blue    = "34"
	Magenta = "35"
	Cyan    = "36"
	white   = "37"
	Grey    = "90"
)

// A Painter colours text. If the output does not support colours, it returns the text
// unchanged. The zero Painter does so.
type Painter struct{ colours bool }

// NewPainter returns a Painter for w. It colours text only if w is a terminal with
// colours and NO_COLOR is not set.
func NewPainter(w io.Writer) Painter {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return Painter{}
	}
	// The old Windows console prints the escape codes instead of obeying them.
	return Painter{runtime.GOOS != "windows" || os.Getenv("WT_SESSION") != ""}
}

// Paint returns the text in a style, such as Red.
func (p Painter) Paint(style, text string) string {
	if !p.colours {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// StateColour returns the style of a state.
func StateColour(s ledger.State) string {
	return [...]string{white, Yellow, Cyan, Blue, Green}[s]
}
