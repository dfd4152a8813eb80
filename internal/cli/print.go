package cli

import (
	"iter"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

// Print prints a record or a list of records: as JSON with -o json, otherwise by
// calling human.
func (p *Program) Print(v any, human func()) error {
	if p.Global.Output != "json" {
		human()
		return nil
	}
	return terminal.WriteJSON(p.Stdout, v)
}

// PrintList prints at most limit records of a list, or all if limit is 0. For people
// it is a table with the given columns and a row for each record.
func PrintList[T any](p *Program, records iter.Seq2[T, error], limit int, columns []string, row func(T) []any) error {
	all, err := client.Collect(records, limit)
	if err != nil {
		return err
	}
	return p.Print(all, func() {
		t := terminal.NewTable(p.Stdout, columns...)
		for _, record := range all {
			t.Row(row(record)...)
		}
		t.Flush()
	})
}

// LimitFlag defines --limit, for lists that can be long.
func LimitFlag(command *cobra.Command, limit *int) {
	command.Flags().Var(flagvalue.Limit(limit), "limit", "maximum number of results (default all)")
}
