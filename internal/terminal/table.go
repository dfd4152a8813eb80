package terminal

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A Table aligns cells in columns.
type Table struct {
	w      *tabwriter.Writer
	Indent string // prefix of every line
}

// NewTable returns a table that starts with a line of column names, if any are given.
// The caller must call Flush.
func NewTable(w io.Writer, columns ...string) *Table {
	t := &Table{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	if len(columns) > 0 {
		t.line(columns)
	}
	return t
}

// line adds a line of cells. It changes cells.
func (t *Table) line(cells []string) {
	for i, cell := range cells {
		cells[i] = Printable(OneLine(cell))
	}
	fmt.Fprintln(t.w, t.Indent+strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

// Row adds a row. Cells are formatted with [fmt.Sprint] and made safe to print.
func (t *Table) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
	}
	t.line(texts)
}

// Flush aligns the columns and writes the table.
func (t *Table) Flush() { _ = t.w.Flush() }
