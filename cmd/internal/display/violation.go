package display

import (
	"io"
	"strings"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// ViolationHelp returns the help of the command that lists violations.
func ViolationHelp() string {
	return `Lists violations: deployments that did not count when they were recorded,
because the commit was not PROMOTABLE or the signer is not accepted. A violation
is closed by a later deployment with the same predicate that counts, by a
rollback, or by an exception for the commit.`
}

// ViolationColumns are the columns of ViolationRow.
func ViolationColumns() []string {
	return []string{"OPENED", "REPO", "COMMIT", "PREDICATE", "IDENTITY", "STATUS", "REASON"}
}

// ViolationRow returns the cells of a violation.
func ViolationRow(v ledger.Violation) []any {
	status := string(v.Status)
	if v.ClosedBy != nil {
		status += " by " + string(v.ClosedBy.Type)
	}
	return []any{v.OpenedAt, v.Repo, ledger.Short(v.Commit), v.Predicate, v.Identity, status,
		strings.Join(v.Missing, "; ")}
}

// Violation prints that an attestation of a commit is a violation, and why.
func Violation(w io.Writer, at string, a ledger.AttestationRecord) {
	if a.Violation == nil {
		return
	}
	terminal.Printf(w, "VIOLATION: %s of %s does not count\n", terminal.Printable(a.Predicate), at)
	for _, reason := range a.Violation.Missing {
		terminal.Printf(w, "  %s\n", terminal.Printable(reason))
	}
}

// Notice prints what an attestation means for its environment, if that may not be expected.
func Notice(w io.Writer, a ledger.AttestationRecord) {
	switch {
	case a.Notice != "":
		terminal.Printf(w, "NOTE: %s\n", terminal.Printable(a.Notice))
	case a.Rollout != "":
		terminal.Printf(w, "NOTE: recorded as an attempt that failed: what runs has not changed\n")
	}
	if a.Unlinked > 0 {
		terminal.Printf(w,
			"NOTE: %d more artifacts that the statement names are not linked: one links at most %d (split it)\n",
			a.Unlinked, ledger.MaxArtifacts)
	}
}

// RolledBack prints from which environments a commit was rolled back.
func RolledBack(w io.Writer, list []ledger.CommitRollback) {
	for _, r := range list {
		terminal.Printf(w, "  %s, at %s\n", terminal.Printable(r.String()), r.At)
	}
}

// openViolations prints the open violations of a commit.
func openViolations(w io.Writer, c ledger.Commit) {
	if c.OpenViolations == 0 {
		return
	}
	terminal.Printf(w, "\n%s\n", terminal.Plural(int64(c.OpenViolations), "open violation"))
	t := terminal.NewTable(w)
	t.Indent = "  "
	for _, v := range c.Violations {
		t.Row(v.OpenedAt, v.Predicate, v.Identity, strings.Join(v.Missing, "; "))
	}
	t.Flush()
}
