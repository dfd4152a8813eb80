package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/client"
)

// print writes a record or a list of them: as JSON where -o json asks for it,
// else by the function, which writes it for people.
func (p *program) print(v any, human func()) error {
	if p.global.output != "json" {
		human()
		return nil
	}
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	_, err = p.stdout.Write(append(text, '\n'))
	return err
}

// writeYAML returns v as YAML.
func writeYAML(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(v), encoder.Close()); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return b.Bytes(), nil
}

// printList writes up to limit records of a list, all where limit is 0: for
// people as a table with those columns and a row for each record.
func printList[T any](p *program, records iter.Seq2[T, error], limit int, columns []string, row func(T) []any) error {
	all, err := client.Collect(records, limit)
	if err != nil {
		return err
	}
	return p.print(all, func() {
		t := newTable(p.stdout, columns...)
		for _, record := range all {
			t.row(row(record)...)
		}
		t.flush()
	})
}

// A table aligns cells in columns.
type table struct {
	w      *tabwriter.Writer
	indent string // of every line
}

// newTable returns a table with a line of column names, which may be none.
// It must be flushed.
func newTable(w io.Writer, columns ...string) *table {
	t := &table{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	if len(columns) > 0 {
		t.line(columns)
	}
	return t
}

func (t *table) line(cells []string) {
	for i, cell := range cells {
		cells[i] = printable(oneLine(cell))
	}
	fmt.Fprintln(t.w, t.indent+strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

func (t *table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
	}
	t.line(texts)
}

func (t *table) flush() { _ = t.w.Flush() }

// printable replaces what would make a terminal act or lie: names, messages
// and reasons come from whoever could push.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}

// quoteShell writes a word so that a shell reads it as it is.
func quoteShell(s string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./:,@%+=", r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// oneLine returns the first line of s, without tabs.
func oneLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.ReplaceAll(strings.TrimSpace(line), "\t", " ")
}

// short returns the beginning of a sha.
func short(sha string) string { return sha[:min(len(sha), 12)] }

// clip shortens s to n characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// orDash returns a mark for what is empty.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// plural writes a count and what is counted.
func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
