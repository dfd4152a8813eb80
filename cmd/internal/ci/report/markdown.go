package report

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/internal/terminal"
)

// Markdown returns the summary as GitHub Flavored Markdown.
func Markdown(r Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", escape(r.Heading))
	for _, note := range r.Notes[:min(len(r.Notes), maxRows)] {
		fmt.Fprintf(&b, "%s\n\n", escape(note))
	}
	if len(r.Rows) == 0 {
		return b.String()
	}

	writeRow(&b, r.Columns)
	b.WriteString("|" + strings.Repeat(" --- |", len(r.Columns)) + "\n")
	for _, row := range r.Rows[:min(len(r.Rows), maxRows)] {
		writeRow(&b, row)
	}
	if more := len(r.Rows) - maxRows; more > 0 {
		fmt.Fprintf(&b, "\n%d more\n", more)
	}
	b.WriteString("\n")
	return b.String()
}

func writeRow(b *strings.Builder, cells []string) {
	b.WriteString("|")
	for _, cell := range cells {
		b.WriteString(" " + escape(cell) + " |")
	}
	b.WriteString("\n")
}

// clean returns untrusted text as one printable line of at most n characters.
func clean(text string, n int) string {
	return terminal.Clip(terminal.Printable(strings.Join(strings.Fields(text), " ")), n)
}

// escape returns untrusted text that Markdown shows as it is: without formatting, HTML,
// links, images or another row.
func escape(text string) string {
	var b strings.Builder
	for _, c := range clean(text, maxCell) {
		if strings.ContainsRune("\\`*_{}[]<>#+!|~&:$", c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	// GitHub also links addresses that begin with www.
	return wwwDot.Replace(b.String())
}

var wwwDot = strings.NewReplacer("www.", `www\.`, "WWW.", `WWW\.`, "Www.", `Www\.`)
