// Package terminal formats output for people: tables, colours, times, questions, and text
// without control characters.
package terminal

import (
	"bytes"
	"crypto/rand"
	"strings"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/ledger"
)

// The styles for Paint: ANSI codes.
const (
	Bold       = "1"
	Faint      = "2"
	Underlined = "4"

	Red     = "31"
	Green   = "32"
	Yellow  = "33"
	Blue    = "34"
	Magenta = "35"
	Cyan    = "36"
	Grey    = "90"
)

// The texts around a style on a terminal, and the style that ends it.
const (
	beforeStyle = "\x1b["
	afterStyle  = "m"
	noStyle     = "0"
)

// A Painter colours text for its Screen. If the output does not support colours, it returns the text
// unchanged. The zero Painter does so.
type Painter struct {
	// mark is before each style that the Painter writes. It is random, so that no text of somebody else
	// can have it. The Screen replaces it. If it is empty, there are no colours.
	mark string
}

// newPainter returns a Painter with a mark.
func newPainter() Painter { return Painter{"\x1b" + rand.Text()} }

// Paint returns the text in a style, such as Red. An empty style changes nothing.
func (p Painter) Paint(style, text string) string {
	if p.mark == "" || style == "" || text == "" {
		return text
	}
	return p.mark + style + afterStyle + text + p.mark + noStyle + afterStyle
}

// Inline returns a text as one line, safe to print, and keeps what the Painter has painted in it.
func (p Painter) Inline(text string) string {
	return string(p.visible([]byte(strings.ReplaceAll(Inline(text), "\t", " ")), p.mark))
}

// visible is like Printable, but keeps the styles of the Painter, with a text before each in place of its mark.
func (p Painter) visible(text []byte, before string) []byte {
	if !bytes.ContainsFunc(text, func(r rune) bool { return !isPrintable(r) }) && utf8.Valid(text) {
		return text
	}
	shown := make([]byte, 0, len(text))
	for len(text) > 0 {
		if rest, ok := bytes.CutPrefix(text, []byte(p.mark)); ok && p.mark != "" {
			shown, text = append(shown, before...), rest
			continue
		}
		r, size := utf8.DecodeRune(text)
		if isPrintable(r) {
			shown = utf8.AppendRune(shown, r)
		} else {
			shown = append(shown, "\uFFFD"...)
		}
		text = text[size:]
	}
	return shown
}

// StateColour returns the style of a state.
func StateColour(s ledger.State) string {
	return [...]string{Grey, Yellow, Cyan, Blue, Green}[s]
}

// styleOf returns the style of a cell: that of a state or status, or of a mark.
func styleOf(cell any) string {
	switch c := cell.(type) {
	case ledger.State:
		return StateColour(c)
	case ledger.Status:
		return statusColour(c)
	case string:
		return markColour(c)
	}
	return ""
}

func statusColour(s ledger.Status) string {
	switch s {
	case ledger.Pass:
		return Green
	case ledger.Warn:
		return Yellow
	case ledger.Fail, ledger.Errored:
		return Red
	}
	return ""
}

func markColour(mark string) string {
	switch mark {
	case "✓":
		return Green
	case "✗":
		return Red
	}
	return ""
}
