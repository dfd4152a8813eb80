package record

import (
	"context"
	"fmt"
	"net/http"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/cmd/internal/mergeclaim"
	"github.com/ledgerd/ledgerd/cmd/internal/registration"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/attestation/bulk"
)

// A bulkRequest records a file with several envelopes.
type bulkRequest struct {
	repo   cli.RepoName
	commit string // the commit that they must be about, or empty
	file   string // file name, for errors
}

// record records the envelopes, which are the items of the body, and prints a line about each. It
// returns an error if any is refused.
func (r bulkRequest) record(ctx context.Context, p *cli.Program, c *cli.Connection, body []byte,
	envelopes []bulk.Item) error {
	described := map[string]bool{}
	describe := func(sha string) {
		if !described[sha] {
			described[sha] = true
			describeCommit(ctx, p, c, r.repo, sha)
		}
	}
	for _, e := range envelopes {
		for _, sha := range mergeclaim.Commits(e.Envelope, r.commit) {
			describe(sha)
		}
	}

	items, err := c.RecordAll(ctx, r.repo.Org, r.repo.Repo, body)
	if err != nil {
		return fmt.Errorf("%s: %w", r.file, err)
	}
	failed := 0
	for _, item := range items {
		if !r.report(p, item) {
			failed++
		}
		if item.Attestation != nil && r.commit == "" { // only the statement names it
			describe(item.Attestation.Commit)
		}
	}

	if err := p.Print(items, func() {}); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%s: %d of %d attestations were refused, or are about another commit", r.file, failed,
			len(items))
	}
	return nil
}

// report prints a line about one of several envelopes. It returns false if the envelope is not
// recorded, or is about another commit than --commit.
func (r bulkRequest) report(p *cli.Program, item ledger.BulkItem) bool {
	number, record := item.Index+1, item.Attestation
	if record == nil {
		err := &client.Error{Status: item.Status, Problem: *item.Problem}
		fmt.Fprintf(p.Stderr, "%d: Not recorded: %s\n", number, p.Describe(err))
		return false
	}

	verb := "Recorded"
	if item.Status != http.StatusCreated {
		verb = "Already recorded:"
	}
	at := r.repo.At(record.Commit)
	terminal.Printf(p.Hints(), "%d: %s %s %s (%v) on %s\n", number, verb, terminal.Printable(record.Predicate),
		record.Result.Status, display.Milliseconds(record.Result.DurationMS), at)
	printNotes(p, at, *record)
	if r.commit != "" && r.commit != record.Commit {
		terminal.Printf(p.Stderr, "%d: the attestation is about commit %s, not about --commit %s\n", number,
			ledger.Short(record.Commit), ledger.Short(r.commit))
		return false
	}
	return true
}

// printNotes prints warnings about an attestation that was recorded.
func printNotes(p *cli.Program, at string, record ledger.AttestationRecord) {
	display.Violation(p.Stderr, at, record)
	display.Notice(p.Stderr, record)
	if why := attestation.UnreadVersion(record.PredicateType); why != "" {
		terminal.Printf(p.Stderr, "NOTE: %s\n", why)
	}
}

// describeCommit registers a commit with its author, and sends its history, if the work tree has it. The attestation is
// recorded in any case.
func describeCommit(ctx context.Context, p *cli.Program, c *cli.Connection, name cli.RepoName, sha string) {
	commit, err := registration.Describe(ctx, c.Client, name.Org, name.Repo, sha)
	if err != nil {
		terminal.Printf(p.Stderr, "Commit not registered: requirements that exclude its author may count nobody. Cause: %s\n",
			p.Describe(err))
	}
	if commit != nil {
		sendHistory(ctx, p, c, *commit)
	}
}

// sendHistory sends the objects of the commits from which a registered commit comes. If that fails, it only warns.
func sendHistory(ctx context.Context, p *cli.Program, c *cli.Connection, commit ledger.Commit) {
	if err := registration.SendAncestors(ctx, c.Client, commit); err != nil {
		terminal.Printf(p.Stderr, "History not sent: reviews may not carry to merges of the commit. Cause: %s\n",
			p.Describe(err))
	}
}
