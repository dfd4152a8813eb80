package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/merges"
	"github.com/ledgerd/ledgerd/cmd/internal/registration"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// maxKnownRecords is the number of the newest change records that are not signed again.
const maxKnownRecords = 1000

// signChanges signs which paths the ranges change, and records that, in their order. It is a no-op if the policy has no
// need of it. Ranges that have a record of the signer are left out.
func (m *mergeClaimer) signChanges(ctx context.Context, ranges []merges.Range) error {
	p, _, err := m.c.Policy(ctx, m.repo.Org, m.repo.Repo)
	if err != nil || !p.Contract.FollowsRecords() {
		return err
	}
	filter := client.AttestationFilter{Predicate: ledger.ChangesPredicate, Identity: m.identity}
	known, err := client.Collect(m.c.Attestations(ctx, m.repo.Org, m.repo.Repo, filter), maxKnownRecords)
	if err != nil {
		return err
	}
	isSigned := make(map[merges.Range]bool)
	for _, a := range known {
		isSigned[merges.Range{Commit: a.Commit, Base: a.Base}] = true
	}

	ctx, cancel := context.WithTimeoutCause(ctx, maxRecordTime, fmt.Errorf("more than %v", maxRecordTime))
	defer cancel()
	var errs []error
	n := 0
	for _, r := range ranges {
		if isSigned[r] {
			continue
		}
		isSigned[r] = true
		err := m.signRange(ctx, r)
		if err == nil {
			n++
			continue
		}
		errs = append(errs, fmt.Errorf("it was not signed what %s changes: %w", ledger.Short(r.Commit), err))
		if !isRefused(err) || client.CodeOf(err) == ledger.CodePredicateNotAllowed {
			break
		}
	}
	if n > 0 {
		terminal.Printf(m.p.Hints(), "Signed what %d commits change\n", n)
	}
	return errors.Join(errs...)
}

// signRange signs and records which paths a range changes, after the object of its commit.
func (m *mergeClaimer) signRange(ctx context.Context, r merges.Range) error {
	paths, err := gitrepo.Repo{Dir: "."}.ChangedPaths(ctx, r.Base, r.Commit)
	switch {
	case err != nil:
		return err
	case len(paths) > attestation.MaxChangedPaths:
		terminal.Printf(m.p.Stderr, "Not signed: %s changes %d paths, at most %d fit. Requirements with paths apply.\n",
			ledger.Short(r.Commit), len(paths), attestation.MaxChangedPaths)
		return nil
	}
	statement, err := attestation.NewChangesStatement(r.Commit,
		attestation.Changes{Repo: m.repo.String(), Base: r.Base, Paths: paths})
	if err != nil {
		return err
	}
	envelope, err := m.signer.Sign(statement)
	if err != nil {
		return err
	}

	if !m.described[r.Commit] {
		if _, err := registration.Describe(ctx, m.c.Client, m.repo.Org, m.repo.Repo, r.Commit); err != nil {
			return err
		}
		m.described[r.Commit] = true
	}
	_, _, err = m.c.Record(ctx, m.repo.Org, m.repo.Repo, envelope)
	return err
}
