package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

// print writes a record or a list of them: as JSON where -o json asks for it,
// else by the function, which writes it for people.
func (p *program) print(v any, human func()) error {
	if p.global.output != "json" {
		human()
		return nil
	}
	return terminal.WriteJSON(p.stdout, v)
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
		t := terminal.NewTable(p.stdout, columns...)
		for _, record := range all {
			t.Row(row(record)...)
		}
		t.Flush()
	})
}

// milliseconds returns the duration of n milliseconds.
func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
