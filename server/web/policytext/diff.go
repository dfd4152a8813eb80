package policytext

import (
	"strings"

	"github.com/ledgerd/ledgerd/server/web/format"
)

// A Line is a line of a diff.
type Line struct {
	// Sign is + for an added line, - for a removed one and a space for an unchanged
	// one. … stands for omitted lines: unchanged ones, or the rest of a long diff.
	Sign string
	// Old and New are the line's numbers in the two documents, from 1; 0 if it is not
	// in the document.
	Old, New int
	Text     string
}

// Word returns the sign as a word for screen readers, or "".
func (l Line) Word() string {
	switch l.Sign {
	case "+":
		return "added"
	case "-":
		return "removed"
	}
	return ""
}

const (
	contextLines = 3       // unchanged lines around changed ones
	maxWork      = 4 << 20 // pairs of lines to compare; beyond that, all lines are removed and added
	maxShown     = 400     // lines of a diff
)

// Diff returns the lines in which two documents differ, with the lines around them. It
// returns nil if the documents are equal.
func Diff(before, after string) []Line {
	if before == after {
		return nil
	}
	return cut(withContext(align(splitLines(before), splitLines(after))))
}

// cut replaces the lines beyond maxShown with one that counts them.
func cut(lines []Line) []Line {
	if more := len(lines) - maxShown; more > 0 {
		return append(lines[:maxShown:maxShown], Line{Sign: "…", Text: format.Plural(more, "more line")})
	}
	return lines
}

func splitLines(text string) []string {
	if text = strings.TrimSuffix(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// align returns the complete diff of a and b.
func align(a, b []string) []Line {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}

	var lines []Line
	for i := range head {
		lines = append(lines, Line{" ", i + 1, i + 1, a[i]})
	}
	lines = append(lines, alignMiddle(a[head:len(a)-tail], b[head:len(b)-tail], head)...)
	for i := tail; i > 0; i-- {
		lines = append(lines, Line{" ", len(a) - i + 1, len(b) - i + 1, a[len(a)-i]})
	}
	return lines
}

// alignMiddle returns the diff of a and b, which follow the first head lines, by their
// longest common subsequence.
func alignMiddle(a, b []string, head int) []Line {
	var common func(i, j int) int
	if len(a)*len(b) <= maxWork {
		common = commonLines(a, b)
	} else {
		common = func(int, int) int { return 0 }
	}

	var lines []Line
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j] && common(i, j) == common(i+1, j+1)+1:
			lines = append(lines, Line{" ", head + i + 1, head + j + 1, a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common(i+1, j) >= common(i, j+1):
			lines = append(lines, Line{"-", head + i + 1, 0, a[i]})
			i++
		default:
			lines = append(lines, Line{"+", 0, head + j + 1, b[j]})
			j++
		}
	}
	return lines
}

// commonLines returns a function for the length of the longest common subsequence of
// a[i:] and b[j:].
func commonLines(a, b []string) func(i, j int) int {
	width := len(b) + 1
	table := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				table[i*width+j] = table[(i+1)*width+j+1] + 1
			} else {
				table[i*width+j] = max(table[(i+1)*width+j], table[i*width+j+1])
			}
		}
	}
	return func(i, j int) int { return int(table[i*width+j]) }
}

// withContext omits the unchanged lines that are more than contextLines from a change.
func withContext(lines []Line) []Line {
	near := make([]bool, len(lines))
	for i, line := range lines {
		if line.Sign != " " {
			for k := max(i-contextLines, 0); k <= min(i+contextLines, len(lines)-1); k++ {
				near[k] = true
			}
		}
	}

	var shown []Line
	for i, line := range lines {
		switch {
		case near[i]:
			shown = append(shown, line)
		case i == 0 || near[i-1]:
			shown = append(shown, Line{Sign: "…"})
		}
	}
	return shown
}
