package display

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/cmd/internal/contractfile"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/lint"
)

// Simulation prints the result of a dry run of a contract.
func Simulation(w io.Writer, s ledger.Simulation) {
	if len(s.Moves) > 0 {
		t := terminal.NewTable(w, "COMMIT", "FROM", "TO", "REASON")
		for _, m := range s.Moves {
			t.Row(ledger.Short(m.Commit), m.From, m.To, strings.Join(m.Reasons, "; "))
		}
		t.Flush()
		if s.Truncated > 0 {
			terminal.Printf(w, "… and %d more\n", s.Truncated)
		}
		fmt.Fprintln(w)
	}
	terminal.Printf(w, "%s checked, %d would change state\n", terminal.Plural(s.Evaluated, "commit"), s.Total())
	for _, sum := range s.Sums {
		terminal.Printf(w, "  %d %s → %s\n", sum.Count, sum.From, sum.To)
	}
}

// Review prints the findings about a contract.
func Review(w io.Writer, r lint.Review) {
	for _, f := range r.Findings {
		prefix := ""
		if f.Level == lint.Warning {
			prefix = "warning: "
		}
		terminal.Printf(w, "%s%s: %s (%s)\n  fix: %s\n", prefix, terminal.Clean(f.Field),
			terminal.Clean(f.Message), f.Code, terminal.Clean(f.Fix))
	}
	if r.Truncated > 0 {
		terminal.Printf(w, "… and %d more\n", r.Truncated)
	}
	if r.Unchecked != "" {
		fmt.Fprintln(w, "not checked: "+terminal.Clean(r.Unchecked))
	}
	if len(r.Findings) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, terminal.Plural(int64(len(r.Findings)+r.Truncated), "finding"))
}

// Difference prints the lines of the contract that were removed and added.
func Difference(w io.Writer, before, after policy.Contract) {
	old, current := contractfile.Lines(before), contractfile.Lines(after)
	for _, line := range old {
		if !slices.Contains(current, line) {
			fmt.Fprintln(w, "  - "+terminal.Printable(line))
		}
	}
	for _, line := range current {
		if !slices.Contains(old, line) {
			fmt.Fprintln(w, "  + "+terminal.Printable(line))
		}
	}
}
