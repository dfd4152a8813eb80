package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/mergeclaim"
	"github.com/ledgerd/ledgerd/cmd/internal/merges"
	"github.com/ledgerd/ledgerd/cmd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// The limits of a search for merges.
const (
	maxSearchTime = 5 * time.Minute
	maxKnownHeads = 500 // commits of the ledger that may be the heads of branches
)

// A mergeClaimer finds the merges of a repo since the last time, and claims them.
type mergeClaimer struct {
	p      *cli.Program
	c      *cli.Connection
	repo   cli.RepoName
	signer *signing.Signer
	// identity is the name of the signer, or "" if only the server can tell.
	identity string
	claims   map[string][]ledger.MergeClaim // by commit, as far as they were read
}

// newMergeClaimer returns a mergeClaimer, or an error if the ledger would refuse its claims about a commit.
func newMergeClaimer(
	ctx context.Context, p *cli.Program, c *cli.Connection, repo cli.RepoName, s *signing.Signer, commit string,
) (*mergeClaimer, error) {
	identities, err := client.Collect(c.Identities(ctx, repo.Org), 0)
	if err != nil {
		return nil, err
	}
	dn, err := s.Name(identities, commit, attestation.MergePredicate(attestation.Merged))
	if err != nil {
		return nil, err
	}
	return &mergeClaimer{p, c, repo, s, dn.String(), make(map[string][]ledger.MergeClaim)}, nil
}

// claim finds the merges up to a commit of the mainline, and claims them, oldest first.
func (m *mergeClaimer) claim(ctx context.Context, mainline string, fetch bool) error {
	started := ledger.TimeOf(time.Now())
	found, err := m.find(ctx, mainline, fetch)
	if err != nil {
		return fmt.Errorf("merges were not searched: %w", err)
	}
	var errs []error
	for _, claim := range found.Claims {
		if err := m.record(ctx, claim, started); err != nil {
			errs = append(errs, fmt.Errorf("%s was not claimed as a %s of %s: %w", ledger.Short(claim.Commit), claim.Kind,
				ledger.Short(claim.Source), err))
		}
	}
	for _, undecided := range found.Undecided {
		if gitrepo.IsIncomplete(undecided) {
			errs = append(errs, undecided)
		} else {
			terminal.Printf(m.p.Stderr, "Not decided: %s\n", m.p.Describe(undecided))
		}
	}
	return errors.Join(errs...)
}

// find searches for merges. If it may fetch, it fetches the heads of branches, and history that the clone lacks.
func (m *mergeClaimer) find(ctx context.Context, mainline string, fetch bool) (found merges.Result, err error) {
	q := merges.Query{Mainline: mainline, IsDone: m.isDone, IsClaimed: m.isClaimed}
	commits, err := m.readHeads(ctx, &q)
	if err != nil {
		return found, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxSearchTime, fmt.Errorf("more than %v", maxSearchTime))
	defer cancel()
	git := gitrepo.Repo{Dir: "."}
	for attempt := 0; ; attempt++ {
		more := false
		if fetch {
			if more, err = git.FetchHeads(ctx, commits, attempt); err != nil {
				terminal.Printf(m.p.Stderr, "Branches were not fetched: %s\n", m.p.Describe(err))
			}
		}
		found, err = merges.Find(ctx, git, q)
		if err != nil || !more || !slices.ContainsFunc(found.Undecided, gitrepo.IsIncomplete) {
			return found, err
		}
	}
}

// readHeads adds to a query what the ledger knows of branches, and returns the commits.
func (m *mergeClaimer) readHeads(ctx context.Context, q *merges.Query) (commits []string, err error) {
	repo, err := m.c.Repo(ctx, m.repo.Org, m.repo.Repo)
	if err != nil {
		return nil, err
	}
	known, err := client.Collect(m.c.Commits(ctx, m.repo.Org, m.repo.Repo, client.CommitFilter{}), maxKnownHeads)
	for _, c := range known {
		if c.Branch == repo.DefaultBranch {
			q.Tips = append(q.Tips, c.SHA)
		} else {
			q.Heads = append(q.Heads, merges.Head{Branch: c.Branch, SHA: c.SHA})
			commits = append(commits, c.SHA)
		}
	}
	return commits, err
}

// isDone reports whether the signer has claimed something about a commit of the mainline: then it has about those
// before, since the oldest come first.
func (m *mergeClaimer) isDone(ctx context.Context, commit string) (bool, error) {
	return m.has(ctx, commit, func(ledger.MergeClaim) bool { return true })
}

func (m *mergeClaimer) isClaimed(ctx context.Context, commit, source string) (bool, error) {
	return m.has(ctx, commit, func(c ledger.MergeClaim) bool { return c.Source == source })
}

// has reports whether a commit has such a claim by the signer.
func (m *mergeClaimer) has(ctx context.Context, commit string, match func(ledger.MergeClaim) bool) (bool, error) {
	claims, found := m.claims[commit]
	if !found {
		c, err := m.c.Commit(ctx, m.repo.Org, m.repo.Repo, commit)
		if err != nil && client.CodeOf(err) != ledger.CodeNotFound {
			return false, err
		}
		claims = c.Merges
		m.claims[commit] = claims
	}
	return slices.ContainsFunc(claims, func(c ledger.MergeClaim) bool {
		return (m.identity == "" || c.Identity == m.identity) && match(c)
	}), nil
}

// record signs a claim and records it, after the objects of its commits.
func (m *mergeClaimer) record(ctx context.Context, claim gitrepo.Merge, started ledger.Time) error {
	statement, err := mergeclaim.Statement(m.repo.String(), claim, started)
	if err != nil {
		return err
	}
	envelope, err := m.signer.Sign(statement)
	if err != nil {
		return err
	}
	for _, sha := range []string{claim.Commit, claim.Parent, claim.Source} {
		describeCommit(ctx, m.p, m.c, m.repo, sha)
	}
	if _, _, err := m.c.Record(ctx, m.repo.Org, m.repo.Repo, envelope); err != nil {
		return err
	}
	terminal.Printf(m.p.Hints(), "Claimed %s: %s of %s on %s\n", m.repo.At(claim.Commit), claim.Kind,
		ledger.Short(claim.Source), ledger.Short(claim.Parent))
	return nil
}
