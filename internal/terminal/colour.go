// Package terminal writes for people: tables, colours, and text that cannot act on the
// terminal it is printed on.
package terminal

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/term"

	"github.com/ledgerd/ledgerd/ledger"
)

// Colours of terminals, for Paint.
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

// A Painter colours text for terminals that show colours; for others it leaves the
// text as it is.
type Painter struct{ colours bool }

// NewPainter returns a Painter for w. It colours text only if w is a terminal that
// shows colours and NO_COLOR is not set.
func NewPainter(w io.Writer) Painter {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return Painter{}
	}
	// The old console of Windows prints the codes.
	return Painter{runtime.GOOS != "windows" || os.Getenv("WT_SESSION") != ""}
}

// Paint returns the text in a colour or another style of terminals.
func (p Painter) Paint(style, text string) string {
	if !p.colours {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// StateColour returns the colour of a state.
func StateColour(s ledger.State) string {
	return [...]string{white, Yellow, Cyan, Blue, Green}[s]
}
