// Package terminal formats output for people: tables, colours, times, questions, and text
// without control characters.
package terminal

import (
	"bytes"
	"slices"

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

// The texts around a style, and the style that ends it.
const (
	beforeStyle = "\x1b["
	afterStyle  = "m"
	noStyle     = "0"
)

// styleSize returns the size of the code of a style with which a text begins, or 0 if it begins with
// none.
func styleSize(text []byte) int {
	rest, ok := bytes.CutPrefix(text, []byte(beforeStyle))
	style, _, ended := bytes.Cut(rest[:min(len(rest), 3)], []byte(afterStyle))
	styles := []string{noStyle, Bold, Faint, Underlined, Red, Green, Yellow, Blue, Magenta, Cyan, Grey}
	if !ok || !ended || !slices.Contains(styles, string(style)) {
		return 0
	}
	return len(beforeStyle) + len(style) + len(afterStyle)
}

// A Painter colours text. If the output does not support colours, it returns the text
// unchanged. The zero Painter does so.
type Painter struct{ colours bool }

// Paint returns the text in a style, such as Red. An empty style changes nothing.
func (p Painter) Paint(style, text string) string {
	if !p.colours || style == "" || text == "" {
		return text
	}
	return beforeStyle + style + afterStyle + text + beforeStyle + noStyle + afterStyle
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
