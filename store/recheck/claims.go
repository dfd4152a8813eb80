package recheck

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A StackedClaim is a claim of a merge by the rules of an earlier release that may carry evidence past a commit which
// nobody had merged: its source was built on it, and a review of the source need not have been about it.
type StackedClaim struct {
	Org, Repo string
	// Claim has the attestation, its source and its signer, and IdentityID is the key or root that made the signer
	// trusted.
	Claim      ledger.MergeClaim
	IdentityID string
	Commit     string
	// Unmerged is the nearest such commit, and Branch the one for which it was registered.
	Unmerged, Branch string
}

// The limits of looking for stacked claims.
const (
	claimRows = 500    // that one read lists
	maxPlaces = 50_000 // in memory
)

// StackedClaims calls visit with each stacked claim that is in force, in the order of their recording. A claim by
// somebody who may no longer claim is not, nor is one about a commit that was deployed, runs no more, and is not named
// by other claims. What is not known of the history is taken as if it was not so. It writes nothing.
func (re *Rechecker) StackedClaims(ctx context.Context, visit func(StackedClaim)) error {
	x := &stacks{re, re.facts.Derivers(), txn.NewCache[placeKey, place](maxPlaces)}
	for after, done := int64(0), false; !done; {
		list, err := txn.ReadLoose(ctx, re.db, txn.ForWrite(""), func(rd txn.Reader) ([]earlyClaim, error) {
			return txn.All(rd, scanEarlyClaim, selectEarlyClaims, after, ledger.Validating, claimRows)
		})
		if err != nil {
			return fmt.Errorf("read claims of merges: %w", err)
		}

		for _, early := range list {
			after = early.id
			claim, err := txn.Read(ctx, re.db, txn.ForWrite(""), func(rd txn.Reader) (*StackedClaim, error) {
				return x.examine(rd, early)
			})
			if err != nil {
				return fmt.Errorf("examine a claim of a merge: %w", err)
			}
			if claim != nil {
				visit(*claim)
			}
		}

		done = len(list) < claimRows
	}
	return nil
}

// An earlyClaim is a claim of a merge that names no commit of the mainline, by row ids.
type earlyClaim struct {
	id, commit, source int64
	identity           string
}

const selectEarlyClaims = `
SELECT m.attestation_id, m.commit_id, m.source_id, a.identity_id
FROM merges m /*+ordered*/ JOIN attestations a ON a.id = m.attestation_id
WHERE m.attestation_id > ? AND m.parent_id = 0 AND m.reason = '' AND m.parent_state > ?
ORDER BY m.attestation_id LIMIT ?`

func scanEarlyClaim(row txn.Scanner) (c earlyClaim, err error) {
	return c, row.Scan(&c.id, &c.commit, &c.source, &c.identity)
}

// stacks looks for unmerged commits below the sources of claims.
type stacks struct {
	*Rechecker
	derivers *facts.Derivers
	places   *txn.Cache[placeKey, place]
}

type placeKey struct {
	repo int64
	sha  string
}

// A place is that of a commit in the history, with the branch for which it was registered.
type place struct {
	lineage.Node
	known  bool
	branch string
}

// examine returns a claim if it is in force and its source was built on an unmerged commit, or nil.
func (x *stacks) examine(rd txn.Reader, early earlyClaim) (*StackedClaim, error) {
	c, err := facts.FindCommitRow(rd, early.commit)
	if err != nil {
		return nil, err
	}
	if watched, err := facts.IsWatched(rd, c); err != nil || c.State == ledger.Deployed && !watched {
		return nil, err
	}

	d, err := x.derivers.Of(rd, c.RepoID)
	if err != nil || d.Repo.Deleted {
		return nil, err
	}
	claims, err := x.facts.ClaimsOf(rd, []any{c.ID})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(claims, func(row facts.ClaimRow) bool { return row.Row == early.id })
	if i < 0 || !d.Contract.MayCarry(claims[i].Signer.DN) {
		return nil, nil
	}
	details, err := facts.FindLineage(rd, c.ID)
	if err != nil || len(details.Parents) == 0 {
		return nil, err
	}

	source := claims[i].Source
	unmerged, branch, err := x.unmerged(rd, d.Repo, source, details.Parents[0], c.Branch)
	if err != nil || unmerged == "" {
		return nil, err
	}
	return &StackedClaim{d.Repo.Org, d.Repo.Name, claims[i].MergeClaim, early.identity, c.SHA, unmerged, branch}, nil
}

// unmerged returns the nearest commit on which a source was built that was registered for another branch, neither that
// of the source nor a mainline, and that is not known to have been merged before the first parent of the merge.
func (x *stacks) unmerged(rd txn.Reader, r txn.Repo, source, parent, mainline string) (sha, branch string, err error) {
	graph := x.graph(rd, r.ID)
	branchOf := func(sha string) string {
		p, _ := x.places.Get(placeKey{r.ID, sha})
		return p.branch
	}
	isMain := func(sha string) bool {
		branch := branchOf(sha)
		return branch != "" && (branch == mainline || branch == r.DefaultBranch)
	}

	list, err := lineage.Ahead(graph, source, parent)
	if err != nil {
		return "", "", err
	}
	merged := []string{parent} // and what is below commits of the mainline that an unknown one hides
	for _, sha := range list {
		if isMain(sha) {
			merged = append(merged, sha)
		}
	}
	if list, err = lineage.Ahead(graph, source, merged...); err != nil {
		return "", "", err
	}
	for _, sha := range list {
		if branch := branchOf(sha); branch != "" && branch != branchOf(source) {
			return sha, branch, nil
		}
	}
	return "", "", nil
}

// graph returns the history of a repo, as objects, registrations and claims of merges say: a merge comes after its
// source, too.
func (x *stacks) graph(rd txn.Reader, repoID int64) lineage.Graph {
	objects := x.history.Of(rd, repoID).Node
	return func(sha string) (lineage.Node, bool, error) {
		key := placeKey{repoID, sha}
		if p, ok := x.places.Get(key); ok {
			return p.Node, p.known, nil
		}
		var p place
		var err error
		if p.Node, p.known, err = objects(sha); err != nil {
			return p.Node, false, err
		}
		if err := x.addRegistered(rd, repoID, sha, &p); err != nil {
			return p.Node, false, err
		}
		x.places.Put(key, p)
		return p.Node, p.known, nil
	}
}

// addRegistered adds what is registered and claimed of a commit, if it is.
func (x *stacks) addRegistered(rd txn.Reader, repoID int64, sha string, p *place) error {
	rows, err := txn.All(rd, facts.ScanCommitRow, facts.SelectCommitRow+"WHERE repo_id = ? AND sha = ?", repoID, sha)
	if err != nil || len(rows) == 0 {
		return err
	}
	c := rows[0]
	p.branch = c.Branch

	details, err := facts.FindLineage(rd, c.ID)
	if err != nil {
		return err
	}
	parents := slices.Concat(p.Parents, details.Parents, details.Ancestors)
	if c.Merged&facts.IsMerge != 0 {
		claims, err := x.facts.ClaimsOf(rd, []any{c.ID})
		if err != nil {
			return err
		}
		for _, claim := range claims {
			if claim.Reason == "" {
				parents = append(parents, claim.Source)
			}
		}
	}
	p.Parents, p.known = parents, true
	return nil
}
