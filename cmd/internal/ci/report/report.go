// Package report shows the result of a command where a CI system shows it: in the summary
// of a step, as annotations, and in the log. Results contain text that anyone who can push
// has chosen, so nothing in it may act as Markdown or as a command of the CI system.
package report

// The limits of a report. GitHub shows at most 10 annotations of a step, and summaries of at
// most 1 MiB.
const (
	maxAnnotations = 10
	maxRows        = 50
	maxCell        = 300     // characters
	maxMessage     = 1000    // characters
	maxSummary     = 1 << 20 // bytes of the file, with what other commands wrote
)

// A Report is the result of a command.
type Report struct {
	Heading string
	// Notes are paragraphs below the heading.
	Notes   []string
	Columns []string
	Rows    [][]string
	// Annotations are shown next to the changes, most important first.
	Annotations []Annotation
}

// An Annotation is a message about the commit or about one of its files.
type Annotation struct {
	Level   Level
	Title   string
	File    string
	Message string
}

// A Level is how severe an annotation is.
type Level string

// The levels.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Notice  Level = "notice"
)
