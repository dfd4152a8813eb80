package terminal

import (
	"slices"
	"strings"
)

const (
	// least is the width below which a column is not cut.
	least = 12
	// leastWrapped is the same for one that is broken into lines.
	leastWrapped = 30
)

// isLimited reports whether the table must fit a terminal.
func (t *Table) isLimited() bool { return len(t.columns) > 0 && t.screen.width > 0 && !t.screen.Wide }

// fit returns the width of each column, and the names of those that are left out; their
// width is 0. If the table is too wide for the terminal, it cuts the widest columns, but none
// that identifies something, to no less than 12 characters. If that is not enough, it leaves
// out columns, the least important ones first.
func (t *Table) fit() (widths []int, dropped []string) {
	natural := t.natural()
	if !t.isLimited() {
		return natural, nil
	}
	for {
		widths = slices.Clone(natural)
		if t.shrink(widths) {
			break
		}
		i := t.leastImportant(natural)
		if i < 0 {
			break // the terminal breaks the lines
		}
		natural[i], dropped = 0, append(dropped, t.columns[i])
	}
	if last := len(widths) - 1; t.wraps(last) {
		widths[last] = max(widths[last], leastWrapped, t.screen.width-t.total(widths[:last])-len(gap))
	}
	return widths, dropped
}

// natural returns the width of the widest cell of each column, at least 1.
func (t *Table) natural() []int {
	widths := make([]int, len(t.columns))
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 1)
			}
			widths[i] = max(widths[i], 1, Width(c.text))
		}
	}
	return widths
}

// total returns the width of a line.
func (t *Table) total(widths []int) int {
	sum, shown := Width(t.Indent), 0
	for _, w := range widths {
		if w > 0 {
			sum, shown = sum+w, shown+1
		}
	}
	return sum + max(0, shown-1)*len(gap)
}

// shrink makes the widest columns narrower until the table fits, and reports whether it does.
func (t *Table) shrink(widths []int) bool {
	for t.total(widths) > t.screen.width {
		widest := -1
		for i, w := range widths {
			if w > t.least(i) && (widest < 0 || w >= widths[widest]) {
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
func (t *Table) least(i int) int {
	switch {
	case i >= len(t.columns) || isWhole(t.columns[i]):
		return maxWidth
	case t.wraps(i):
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
const details = "FINGERPRINT EVENT POLICY ATTESTATIONS EVENTS MAY EMAIL DESCRIPTION REQUIRED LAST CREATED EXPIRES " +
	"LINKED_BY ATTESTED AUTHOR BRANCH LAST_USED"

// leastImportant returns the column to leave out first of those that are shown, or -1.
func (t *Table) leastImportant(widths []int) int {
	for name := range strings.FieldsSeq(details) {
		i := slices.Index(t.columns, strings.ReplaceAll(name, "_", " "))
		if i >= 0 && widths[i] > 0 {
			return i
		}
	}
	return -1
}
