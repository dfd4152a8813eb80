package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqlite"
)

// Preview finds which recorded statements this release would read otherwise than the one that has recorded them, and
// which claims of earlier releases may carry evidence past an unmerged commit. It copies the database to a temporary
// folder and changes only the copy.
func Preview(ctx context.Context, s config.Settings) (findings []Finding, err error) {
	if s.Database.IsServer() {
		return nil, errors.New("a preview needs a database file: make one with " +
			"'ledgerd copy --from postgres://… --to FILE' of the release that runs, and preview that")
	}
	folder, err := os.MkdirTemp("", "ledgerd-preview-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "ledger.db")
	if _, err := (sqlite.Backup{From: string(s.Database), To: file}).Run(ctx); err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, file, store.Options{NoCopy: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	read, err := previewStatements(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("read the recorded statements: %w", err)
	}
	claims, err := previewClaims(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("read the claims of merges: %w", err)
	}
	return append(read, claims...), nil
}

// previewStatements finds which recorded statements are read otherwise.
func previewStatements(ctx context.Context, db *store.Store) (findings []Finding, err error) {
	changes := make(map[change]*rereadings)
	err = db.PreviewMapping(ctx, func(r store.Rereading) {
		c := change{r.Org + "/" + r.Repo, r.PredicateType, string(r.Before.Result.Status), string(r.After.Result.Status)}
		if changes[c] == nil {
			changes[c] = new(rereadings)
		}
		changes[c].add(r.ID)
	})
	if err != nil {
		return nil, err
	}
	if len(changes) == 0 {
		return []Finding{{Check: "statements", Level: OK, Text: "all are read as before"}}, nil
	}
	for _, c := range slices.SortedFunc(maps.Keys(changes), change.compare) {
		findings = append(findings, Finding{Check: "statements", Level: Warning, Text: c.text(changes[c])})
	}
	return findings, nil
}

// previewClaims finds claims of merges by earlier rules whose sources were built on unmerged commits.
func previewClaims(ctx context.Context, db *store.Store) (findings []Finding, err error) {
	count := 0
	err = db.StackedClaims(ctx, func(c store.StackedClaim) {
		if count++; count <= maxListed {
			findings = append(findings, Finding{Check: "claims", Level: Warning, Text: claimText(c)})
		}
	})
	if err != nil {
		return nil, err
	}
	switch {
	case count == 0:
		findings = []Finding{{Check: "claims", Level: OK,
			Text: "none of an earlier release is about a branch on an unmerged one"}}
	case count > maxListed:
		findings = append(findings, Finding{Check: "claims", Level: Warning,
			Text: fmt.Sprintf("%d more are about branches on unmerged ones: end those above to see them", count-maxListed)})
	}
	return findings, nil
}

// claimText says what may carry by a claim, and how an admin ends it.
func claimText(c store.StackedClaim) string {
	return fmt.Sprintf("in %s/%s, evidence about %s carries to %s by the claim %s of %s. The source was built on %s of "+
		"the branch %s, which was not merged. To end the claim, and all that this identity has signed since, run "+
		"'ledgerd identity revoke %s --org %s --since %s'",
		c.Org, c.Repo, ledger.Short(c.Claim.Source), ledger.Short(c.Commit), c.Claim.Attestation, c.Claim.Identity,
		ledger.Short(c.Unmerged), c.Branch, c.IdentityID, c.Org, c.Claim.RecordedAt)
}

// A change is how statements of a type in a repo are read otherwise.
type change struct{ repo, predicateType, before, after string }

func (c change) compare(d change) int {
	return cmp.Or(cmp.Compare(c.repo, d.repo), cmp.Compare(c.predicateType, d.predicateType),
		cmp.Compare(c.before, d.before), cmp.Compare(c.after, d.after))
}

func (c change) text(r *rereadings) string {
	becomes := fmt.Sprintf("%s becomes %s", c.before, c.after)
	if c.before == c.after {
		becomes = c.before + " stays, with another predicate, slot, duration or time"
	}
	return fmt.Sprintf("in %s, %s for %d of %s: %s", c.repo, becomes, r.count, c.predicateType, listed(r.first))
}

// A rereadings counts the attestations with a change.
type rereadings struct {
	count int
	first []string // IDs, one more than are listed
}

func (r *rereadings) add(id string) {
	if r.count++; len(r.first) <= maxListed {
		r.first = append(r.first, id)
	}
}
