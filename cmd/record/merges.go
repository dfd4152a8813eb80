package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/mergeclaim"
	"github.com/ledgerd/ledgerd/cmd/internal/merges"
	"github.com/ledgerd/ledgerd/cmd/internal/registration"
	"github.com/ledgerd/ledgerd/cmd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// The limits of claiming merges.
const (
	maxSearchTime = 5 * time.Minute
	maxRecordTime = 5 * time.Minute
	maxKnownHeads = 500 // commits of the ledger that may be the heads of branches, and as many that were reviewed
)

// A mergeClaimer finds the merges of a repo since the last time, and claims them.
type mergeClaimer struct {
	p      *cli.Program
	c      *cli.Connection
	repo   cli.RepoName
	signer *signing.Signer
	// identity is the name of the signer. If it is empty, only the server knows, and no earlier claim is recognized.
	identity  string
	claims    map[string][]merges.Claim // by commit, as far as they were read
	described map[string]bool           // commits that were registered
}

// newMergeClaimer returns a mergeClaimer, or an error if the ledger would refuse its claims about a commit.
func newMergeClaimer(
	ctx context.Context, p *cli.Program, c *cli.Connection, repo cli.RepoName, s *signing.Signer, commit string,
) (*mergeClaimer, error) {
	identities, err := client.Collect(c.Identities(ctx, repo.Org), 0)
	if err != nil {
		return nil, err
	}
	m := &mergeClaimer{p: p, c: c, repo: repo, signer: s, claims: make(map[string][]merges.Claim),
		described: make(map[string]bool)}
	for _, kind := range attestation.MergeKinds() {
		dn, err := s.Name(identities, commit, attestation.MergePredicate(kind))
		if err != nil {
			return nil, err
		}
		m.identity = dn.String()
	}
	return m, nil
}

// claim finds the merges up to a commit of the mainline, and claims them, oldest first. It returns the ranges that it
// has searched.
func (m *mergeClaimer) claim(ctx context.Context, commit string, fetch bool, job *job) ([]merges.Range, error) {
	started := ledger.TimeOf(time.Now())
	found, err := m.find(ctx, commit, fetch, job)
	if err != nil {
		err = fmt.Errorf("the search for merges failed: %w", err)
	}
	errs := []error{m.recordAll(ctx, found.Claims, started), err}
	for _, undecided := range found.Undecided {
		if gitrepo.IsIncomplete(undecided) {
			errs = append(errs, undecided)
		} else {
			terminal.Printf(m.p.Stderr, "Not decided: %s\n", m.p.Describe(undecided))
		}
	}
	return found.Ranges, errors.Join(errs...)
}

// find searches for merges. If it may fetch, it fetches the heads of branches, and history that the clone lacks.
func (m *mergeClaimer) find(ctx context.Context, commit string, fetch bool, job *job) (merges.Result, error) {
	q, err := m.query(ctx, commit, job)
	if err != nil {
		return merges.Result{}, err
	}
	var commits []string
	for _, h := range q.Heads {
		commits = append(commits, h.SHA)
	}

	ctx, cancel := context.WithTimeoutCause(ctx, maxSearchTime, fmt.Errorf("more than %v", maxSearchTime))
	defer cancel()
	git := gitrepo.Repo{Dir: "."}
	return deepen(ctx, func(attempt int) (found merges.Result, more bool, err error) {
		if fetch {
			if more, err = git.FetchHeads(ctx, commits, attempt); err != nil {
				terminal.Printf(m.p.Stderr, "Branches were not fetched: %s\n", m.p.Describe(err))
			}
		}
		if q.Mainline, err = git.BranchTip(ctx, q.Branch); err == nil {
			found, err = merges.Find(ctx, git, q)
		}
		return found, more, err
	})
}

// deepen searches, and as long as history is missing and another attempt can fetch some, again. An attempt that the
// deadline has cut short does not replace the one before.
func deepen(ctx context.Context, search func(attempt int) (found merges.Result, more bool, err error)) (
	found merges.Result, err error) {
	for attempt := 0; ; attempt++ {
		next, more, nextErr := search(attempt)
		if attempt > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return found, err
		}
		found, err = next, nextErr
		if !more || !gitrepo.IsIncomplete(err) && !slices.ContainsFunc(found.Undecided, gitrepo.IsIncomplete) {
			return found, err
		}
	}
}

// query returns where to search, with what the ledger knows of branches.
func (m *mergeClaimer) query(ctx context.Context, commit string, job *job) (q merges.Query, err error) {
	repo, err := m.c.Repo(ctx, m.repo.Org, m.repo.Repo)
	if err != nil {
		return q, err
	}
	q = merges.Query{Commit: commit, Branch: cmp.Or(repo.DefaultBranch, "main"), Claims: m.claimsOf}
	if job.Branch == q.Branch {
		q.Before = job.Previous
	}

	filter := client.AttestationFilter{Predicate: ledger.ReviewPrefix + "*", Status: ledger.Pass}
	reviews, err := client.Collect(m.c.Attestations(ctx, m.repo.Org, m.repo.Repo, filter), maxKnownHeads)
	if err != nil {
		return q, err
	}
	reviewed := make(map[string]bool)
	for _, r := range reviews {
		reviewed[r.Commit] = true
	}
	known, err := client.Collect(m.c.Commits(ctx, m.repo.Org, m.repo.Repo, client.CommitFilter{}), maxKnownHeads)
	for _, c := range known {
		head := merges.Head{Branch: c.Branch, SHA: c.SHA}
		switch {
		case reviewed[c.SHA]:
			head.Evidence = merges.Reviewed
			delete(reviewed, c.SHA)
		case c.Attested > 0:
			head.Evidence = merges.Attested
		}
		q.Heads = append(q.Heads, head)
	}
	for _, r := range reviews {
		if reviewed[r.Commit] {
			delete(reviewed, r.Commit)
			q.Heads = append(q.Heads, merges.Head{SHA: r.Commit, Evidence: merges.Reviewed})
		}
	}
	return q, err
}

// claimsOf returns the claims of the signer about a commit that need not be made again.
func (m *mergeClaimer) claimsOf(ctx context.Context, commit string) ([]merges.Claim, error) {
	if claims, found := m.claims[commit]; found {
		return claims, nil
	}
	c, err := m.c.Commit(ctx, m.repo.Org, m.repo.Repo, commit)
	if err != nil && client.CodeOf(err) != ledger.CodeNotFound {
		return nil, err
	}
	m.claims[commit] = standing(c.Merges, m.identity)
	return m.claims[commit], nil
}

// standing returns those of the claims by an identity that may count, now or later.
func standing(list []ledger.MergeClaim, identity string) (claims []merges.Claim) {
	for _, c := range list {
		if c.Identity == identity && c.Reason == "" && c.Parent != "" {
			claims = append(claims, merges.Claim{
				Kind: attestation.MergeKind(c.Kind), Source: c.Source, Parent: c.Parent})
		}
	}
	return claims
}

// recordAll records claims, each after the objects of its commits.
func (m *mergeClaimer) recordAll(ctx context.Context, claims []gitrepo.Merge, started ledger.Time) error {
	ctx, cancel := context.WithTimeoutCause(ctx, maxRecordTime, fmt.Errorf("more than %v", maxRecordTime))
	defer cancel()
	return inOrder(claims, func(claim gitrepo.Merge) error { return m.record(ctx, claim, started) })
}

// inOrder records claims. It goes on after one that the ledger refuses, and stops at any other error: the next search
// goes back only to the last commits that have claims.
func inOrder(claims []gitrepo.Merge, record func(gitrepo.Merge) error) error {
	var errs []error
	for i, claim := range claims {
		err := record(claim)
		if err == nil {
			continue
		}
		errs = append(errs, fmt.Errorf("%s was not claimed (%s of %s): %w", ledger.Short(claim.Commit), claim.Kind,
			ledger.Short(claim.Source), err))
		if left := len(claims) - i - 1; !isRefused(err) && left > 0 {
			errs = append(errs, fmt.Errorf("%d later merges were not claimed either (run the command again)", left))
			break
		}
	}
	return errors.Join(errs...)
}

// isRefused reports whether the ledger has read a claim and does not take it.
func isRefused(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && (e.Status == http.StatusUnprocessableEntity || e.Status == http.StatusConflict)
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

	history, err := gitrepo.Repo{Dir: "."}.MergedHistory(ctx, claim)
	if err != nil {
		return err
	}
	if err := registration.SendObjects(ctx, m.c.Client, m.repo.Org, m.repo.Repo, history); err != nil {
		return err
	}
	for _, sha := range []string{claim.Commit, claim.Parent, claim.Source} {
		if !m.described[sha] {
			if _, err := registration.Describe(ctx, m.c.Client, m.repo.Org, m.repo.Repo, sha); err != nil {
				return err
			}
			m.described[sha] = true
		}
	}
	if _, _, err := m.c.Record(ctx, m.repo.Org, m.repo.Repo, envelope); err != nil {
		return err
	}
	terminal.Printf(m.p.Hints(), "Claimed %s: %s of %s on %s\n", m.repo.At(claim.Commit), claim.Kind,
		ledger.Short(claim.Source), ledger.Short(claim.Parent))
	return nil
}
