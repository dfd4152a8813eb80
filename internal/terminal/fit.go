package terminal

import (
	"slices"
	"strings"
)

const (
	// least is the width below which a column is not cut. A time such as "59 minutes ago"
	// fits.
	least = 14
	// leastWrapped is the same for one that is broken into lines.
	leastWrapped = 30
)

// gap is between two columns.
const gap = "  "

// A layout fits the columns of a table into a terminal.
type layout struct {
	columns []string
	indent  int // width before the first column
	limit   int // width of the terminal
	wrap    bool
}

// fit returns the width of each column, and the names of those that are left out; their
// width is 0. If the table is too wide for the terminal, it cuts the widest columns, but none
// that identifies something, to no less than 14 characters. If that is not enough, it leaves
// out columns, the least important ones first.
func (l layout) fit(natural []int) (widths []int, dropped []string) {
	for {
		widths = slices.Clone(natural)
		if l.shrink(widths) {
			break
		}
		i := l.leastImportant(natural)
		if i < 0 {
			break // the terminal breaks the lines
		}
		natural[i], dropped = 0, append(dropped, l.columns[i])
	}
	if last := len(widths) - 1; l.wrap {
		widths[last] = max(widths[last], leastWrapped, l.limit-l.total(widths[:last])-len(gap))
	}
	return widths, dropped
}

// total returns the width of a line.
func (l layout) total(widths []int) int {
	sum, shown := l.indent, 0
	for _, w := range widths {
		if w > 0 {
			sum, shown = sum+w, shown+1
		}
	}
	return sum + max(0, shown-1)*len(gap)
}

// shrink makes the widest columns narrower until the table fits, and reports whether it does.
func (l layout) shrink(widths []int) bool {
	for l.total(widths) > l.limit {
		widest := -1
		for i, w := range widths {
			if w > l.least(i) && (widest < 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// least returns the width below which a column is not cut.
func (l layout) least(i int) int {
	switch {
	case i >= len(l.columns) || isWhole(l.columns[i]):
		return maxWidth
	case l.wrap && i == len(l.columns)-1:
		return leastWrapped
	}
	return least
}

// maxWidth is more than any terminal has.
const maxWidth = 1 << 30

// isWhole reports whether a column is useless if it is cut: what identifies something is
// copied to the next command.
func isWhole(column string) bool { return column == "ID" || column == "COMMIT" || column == "WITH" }

// details are the columns that can be left out, the least important ones first.
const details = "FINGERPRINT EVENT POLICY ATTESTATIONS EMAIL CREATED EXPIRES EVENTS DESCRIPTION MAY REQUIRED LAST " +
	"LINKED_BY ATTESTED AUTHOR BRANCH LAST_USED"

// leastImportant returns the column to leave out first of those that are shown, or -1.
func (l layout) leastImportant(widths []int) int {
	for name := range strings.FieldsSeq(details) {
		i := slices.Index(l.columns, strings.ReplaceAll(name, "_", " "))
		if i >= 0 && widths[i] > 0 {
			return i
		}
	}
	return -1
}
