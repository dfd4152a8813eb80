package terminal

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// narrow counts ambiguous characters, such as box drawings, as one column, whatever the
// locale is.
func narrow() *runewidth.Condition { return &runewidth.Condition{StrictEmojiNeutral: true} }

// Width returns the number of columns that text takes on a terminal: a wide character takes
// two, and a combining mark none.
func Width(text string) int { return narrow().StringWidth(text) }

// CutTo shortens text to at most width columns. If it cuts, it ends with an ellipsis.
func CutTo(text string, width int) string { return narrow().Truncate(text, width, "…") }

// pad returns text with spaces after it, to a width.
func pad(text string, width int) string { return strings.Repeat(" ", max(0, width-Width(text))) }

// wrap splits text into lines of at most width columns, between words. A longer word is split
// where it must be. No text is one empty line.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && Width(line)+1+Width(word) <= width {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for line = word; Width(line) > width; {
			head := first(line, width)
			lines, line = append(lines, head), line[len(head):]
		}
	}
	if line == "" && lines != nil {
		return lines
	}
	return append(lines, line)
}

// first returns the beginning of text that takes at most width columns, but at least one
// character.
func first(text string, width int) string {
	if head := narrow().Truncate(text, width, ""); head != "" {
		return head
	}
	for i := range text {
		if i > 0 {
			return text[:i]
		}
	}
	return text
}
