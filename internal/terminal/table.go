package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// A Table aligns cells in columns. On a terminal it has colours and times such as "3 minutes
// ago", and a table with column names is cut to the terminal's width: see layout.fit.
type Table struct {
	screen  *Screen
	columns []string
	rows    [][]cell
	Indent  string // prefix of every line
	// Wrap breaks the last column into lines where it does not fit, instead of cutting it.
	Wrap bool
}

// A cell is the text of a cell, safe to print, and its style.
type cell struct{ text, style string }

// Parts is a cell of several values, such as a text and a time, without spaces in between.
type Parts []any

// Since is a cell for the time since which something is so, to follow a text in Parts.
type Since ledger.Time

// InPipes is a text that is left out on a terminal, such as what a time for people says.
type InPipes string

// NewTable returns a table that starts with a line of column names, if any are given.
// The caller must call Flush.
func NewTable(w io.Writer, columns ...string) *Table {
	t := &Table{screen: NewScreen(w), columns: columns}
	if len(columns) > 0 {
		header := make([]cell, len(columns))
		for i, name := range columns {
			header[i] = cell{name, Bold}
		}
		t.rows = append(t.rows, header)
	}
	return t
}

// Row adds a row. Cells are formatted with [fmt.Sprint], but a [ledger.Time] as the Screen
// has it, and made safe to print.
func (t *Table) Row(cells ...any) {
	row := make([]cell, len(cells))
	for i, c := range cells {
		row[i] = cell{Printable(OneLine(t.text(c))), styleOf(c)}
	}
	t.rows = append(t.rows, row)
}

// text returns a cell as text.
func (t *Table) text(c any) string {
	switch c := c.(type) {
	case ledger.Time:
		if t.isRecord() {
			return t.screen.exactTime(c)
		}
		return t.screen.Time(c)

	case Since:
		if t.screen.isTerminal {
			return ", " + t.text(ledger.Time(c))
		}
		return " since " + t.text(ledger.Time(c))
	case InPipes:
		if t.screen.isTerminal {
			return ""
		}
	case Parts:
		var b strings.Builder
		for _, part := range c {
			b.WriteString(t.text(part))
		}
		return b.String()
	}
	return fmt.Sprint(c)
}

// isRecord reports whether the table shows one record, a line for each member. It has room
// for exact times.
func (t *Table) isRecord() bool { return len(t.columns) == 0 && t.Indent == "" }

// Flush aligns the columns and writes the table.
func (t *Table) Flush() {
	widths, dropped := t.widths()
	for _, row := range t.rows {
		t.write(row, widths)
	}
	if len(dropped) > 0 {
		note := "Not shown: " + strings.Join(dropped, ", ") + " (use --wide)"
		fmt.Fprintln(t.screen, t.Indent+t.screen.Paint(Grey, note))
	}
	t.rows = nil
}

// write writes a row in columns of the given widths; those of 0 are left out.
func (t *Table) write(row []cell, widths []int) {
	shown := make([]int, 0, len(row))
	for i := range row {
		if widths[i] > 0 {
			shown = append(shown, i)
		}
	}

	var b strings.Builder
	column, blanks := 0, t.Indent // blanks are due before the next text
	for n, i := range shown {
		lines := []string{CutTo(row[i].text, widths[i])}
		if t.wraps(i) {
			lines = wrap(row[i].text, widths[i])
		}
		for l, line := range lines {
			if l > 0 {
				b.WriteString("\n")
				blanks = t.Indent + strings.Repeat(" ", column)
			}
			if line != "" {
				b.WriteString(blanks + t.screen.Paint(row[i].style, line))
				blanks = ""
			}
		}
		if n < len(shown)-1 {
			blanks += pad(lines[0], widths[i]) + gap
			column += widths[i] + len(gap)
		}
	}
	fmt.Fprintln(t.screen, b.String())
}

// widths returns the width of each column, and the names of those that are left out.
func (t *Table) widths() (widths []int, dropped []string) {
	natural := t.natural()
	if !t.isLimited() {
		return natural, nil
	}
	return layout{t.columns, Width(t.Indent), t.screen.width, t.Wrap}.fit(natural)
}

// isLimited reports whether the table must fit a terminal.
func (t *Table) isLimited() bool { return len(t.columns) > 0 && t.screen.width > 0 && !t.screen.Wide }

// wraps reports whether a column is broken into lines.
func (t *Table) wraps(i int) bool { return t.Wrap && t.isLimited() && i == len(t.columns)-1 }

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
