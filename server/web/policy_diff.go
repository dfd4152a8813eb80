package web

import (
	"strings"

	"github.com/ledgerd/ledgerd/server/web/format"
)

// A diffLine is a line of the difference between two documents.
type diffLine struct {
	// Sign is + for a line that came, - for one that went, and a blank for one
	// that stayed; … stands for lines in between that stayed, and for those
	// behind the last one that is shown.
	Sign string
	// Old and New are the line's numbers, 0 where it is not.
	Old, New int
	Text     string
}

// Word names what has become of the line, for those who do not see its sign.
func (l diffLine) Word() string {
	switch l.Sign {
	case "+":
		return "added"
	case "-":
		return "removed"
	}
	return ""
}

const (
	diffContext = 3       // lines that stayed around those that did not
	maxDiffWork = 4 << 20 // pairs of lines to compare; beyond them all are told as new

	maxDiffLines = 400 // that are shown
)

// diff returns what has become of the lines of a document, nothing where the
// two are the same.
func diff(before, after string) []diffLine {
	if before == after {
		return nil
	}
	return cut(around(align(splitLines(before), splitLines(after))))
}

// cut tells how many lines there are beyond those that are shown.
func cut(lines []diffLine) []diffLine {
	if more := len(lines) - maxDiffLines; more > 0 {
		return append(lines[:maxDiffLines:maxDiffLines], diffLine{Sign: "…", Text: format.Plural(more, "more line")})
	}
	return lines
}

func splitLines(text string) []string {
	if text = strings.TrimSuffix(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// align returns all lines of both, those that they have in common once.
func align(a, b []string) []diffLine {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var lines []diffLine
	for i := range head {
		lines = append(lines, diffLine{" ", i + 1, i + 1, a[i]})
	}
	lines = append(lines, alignMiddle(a[head:len(a)-tail], b[head:len(b)-tail], head)...)
	for i := tail; i > 0; i-- {
		lines = append(lines, diffLine{" ", len(a) - i + 1, len(b) - i + 1, a[len(a)-i]})
	}
	return lines
}

// alignMiddle aligns what lies behind the first head lines, by the longest
// sequence of lines that the two have in common.
func alignMiddle(a, b []string, head int) []diffLine {
	var common func(i, j int) int
	if len(a)*len(b) <= maxDiffWork {
		common = commonLines(a, b)
	} else {
		common = func(int, int) int { return 0 }
	}
	var lines []diffLine
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j] && common(i, j) == common(i+1, j+1)+1:
			lines = append(lines, diffLine{" ", head + i + 1, head + j + 1, a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common(i+1, j) >= common(i, j+1):
			lines = append(lines, diffLine{"-", head + i + 1, 0, a[i]})
			i++
		default:
			lines = append(lines, diffLine{"+", 0, head + j + 1, b[j]})
			j++
		}
	}
	return lines
}

// commonLines returns how long a sequence a[i:] and b[j:] have in common.
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

// around leaves out the lines that are far from any change.
func around(lines []diffLine) []diffLine {
	near := make([]bool, len(lines))
	for i, line := range lines {
		if line.Sign != " " {
			for k := max(i-diffContext, 0); k <= min(i+diffContext, len(lines)-1); k++ {
				near[k] = true
			}
		}
	}
	var kept []diffLine
	for i, line := range lines {
		switch {
		case near[i]:
			kept = append(kept, line)
		case i == 0 || near[i-1]:
			kept = append(kept, diffLine{Sign: "…"})
		}
	}
	return kept
}
