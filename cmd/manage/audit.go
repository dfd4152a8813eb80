package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newAudit(p *cli.Program) *cobra.Command {
	return cli.Group("audit", "List and export what administrators did", newAuditList(p), newAuditExport(p))
}

func newAuditList(p *cli.Program) *cobra.Command {
	var filter client.AuditFilter
	var limit int
	command := p.ForOrg(&cobra.Command{
		Use:   "list",
		Short: "List the administrative actions in an org, newest first",
		Long: `Lists what administrators did in an org: who, what, when, from where, and which
fields have changed. Each action is an event of the type audit, so it is in the
transparency log: 'ledgerd verify event' proves it by its ID (-o json).`,
		Example: `  ledgerd audit list --org acme --since 30d
  ledgerd audit list --org acme --action token --by tok_01JD3X0V6Q8Z2M4N5P7R9T1W3Y
  ledgerd audit list --org acme --action policy.applied --repo api -o json`,
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		columns := []string{"TIME", "ACTION", "REPO", "TARGET", "BY", "FROM", "CHANGES"}
		return cli.PrintList(p, auditEvents(c.Audit(ctx, org, filter)), limit, columns, auditRow)
	})
	auditFlags(command, &filter)
	command.Flags().BoolVar(&filter.OldestFirst, "oldest", false, "oldest first")
	cli.LimitFlag(command, &limit)
	return command
}

// auditFlags defines the flags that select administrative actions.
func auditFlags(command *cobra.Command, filter *client.AuditFilter) {
	flags := command.Flags()
	flags.Var(&flagvalue.Parsed[ledger.AuditAction]{Value: &filter.Action, Kind: "ACTION", Parse: ledger.ParseAuditAction},
		"action", "only this action, such as token.created, or those on a kind of resource, such as token")
	flags.StringVar(&filter.By, "by", "", "only those by this token, given its `ID`, or by host or ledgerd")
	flags.StringVar(&filter.Repo, "repo", "", "only those on this `repo`")
	flags.Var(flagvalue.Past(&filter.Since), "since",
		"only those since then: a date, date-time, yesterday, or how long ago, such as 30d")
	words := []string{}
	for _, action := range ledger.AuditActions() {
		words = append(words, string(action))
	}
	flagvalue.Complete(command, "action", words...)
}

// auditEvents decodes events.
func auditEvents(bodies iter.Seq2[json.RawMessage, error]) iter.Seq2[ledger.AuditEvent, error] {
	return func(yield func(ledger.AuditEvent, error) bool) {
		for body, err := range bodies {
			var e ledger.AuditEvent
			if err == nil {
				if err = ledger.DecodeOpen(body, &e); err != nil {
					err = fmt.Errorf("decode event: %w", err)
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// auditRow returns the row of an administrative action in a table.
func auditRow(e ledger.AuditEvent) []any {
	changes := make([]string, len(e.Changes))
	for i, c := range e.Changes {
		changes[i] = c.String()
	}
	return []any{e.Timestamp, e.Action, e.Repo, e.Target, e.By.Who(), e.By.Where(), strings.Join(changes, ", ")}
}

func newAuditExport(p *cli.Program) *cobra.Command {
	var out string
	var filter client.AuditFilter
	command := p.ForOrg(&cobra.Command{
		Use:   "export",
		Short: "Write the administrative actions in an org to a file",
		Long: `Writes what administrators did in an org to a file in the format JSON Lines,
oldest first: one event a line, byte for byte as it was logged.`,
		Example: `  ledgerd audit export --org acme --since 2026-01-01 --out audit.jsonl
  ledgerd audit export --org acme --out - | jq .action`,
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		filter.OldestFirst = true
		return exportAudit(p, c.Audit(ctx, org, filter), org, out)
	})
	auditFlags(command, &filter)
	command.Flags().StringVar(&out, "out", "", "write to this `file` (- for standard output)")
	flagvalue.Require(command, "out")
	return command
}

// exported is the JSON output of 'audit export'.
type exported struct {
	Org    string `json:"org"`
	File   string `json:"file"`
	Events int    `json:"events"`
}

// exportAudit writes events to a file, or to standard output if its name is "-".
func exportAudit(p *cli.Program, bodies iter.Seq2[json.RawMessage, error], org, name string) error {
	if name == "-" {
		_, err := writeLines(bodies, func(line []byte) error {
			_, err := p.Stdout.Exact().Write(line)
			return err
		})
		return err
	}

	file, err := atomicfile.Create(name, 0o600)
	if err != nil {
		return err
	}
	defer file.Discard()
	n, err := writeLines(bodies, file.Append)
	if err != nil {
		return err
	}
	if err := file.Write(nil); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return p.Confirm(exported{org, name, n}, func() {
		terminal.Printf(p.Stdout, "Wrote %s to %s\n", terminal.Plural(int64(n), "event"), name)
	})
}

// writeLines writes each body as a line, and returns their number.
func writeLines(bodies iter.Seq2[json.RawMessage, error], write func([]byte) error) (n int, err error) {
	for body, err := range bodies {
		if err != nil {
			return n, err
		}
		if err := write(append(bytes.Clone(body), '\n')); err != nil {
			return n, fmt.Errorf("write an event: %w", err)
		}
		n++
	}
	return n, nil
}
