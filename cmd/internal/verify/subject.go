package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// Event verifies that an event is in the log.
func (s *Session) Event(ctx context.Context, id string) (verify.Report, error) {
	_, checks, err := s.event(ctx, id)
	if err != nil {
		return verify.Report{}, err
	}
	return s.report(ctx, "event", id, checks)
}

// Attestation verifies the signature of an attestation, and that it is in the log.
func (s *Session) Attestation(ctx context.Context, repo, id string) (verify.Report, error) {
	checks, _, err := s.attestation(ctx, repo, id)
	if err != nil {
		return verify.Report{}, err
	}
	return s.report(ctx, "attestation", id, checks)
}

// attestation verifies an attestation, and reports whether the ledger has pruned its event.
func (s *Session) attestation(ctx context.Context, repo, id string) (checks []verify.Check, isPruned bool, err error) {
	record, err := s.client.Attestation(ctx, s.Org, repo, id)
	if err != nil {
		return nil, false, err
	}
	envelope, err := unlessPruned(s.client.Envelope(ctx, s.Org, repo, id))
	if err != nil {
		return nil, false, err
	}
	keys, err := s.keys(ctx)
	if err != nil {
		return nil, false, err
	}
	e, checks, err := s.event(ctx, record.Event)
	if err != nil {
		return nil, false, err
	}

	if err := s.align(ctx, repo, &record, e.Body); err != nil {
		return nil, false, err
	}
	a := verify.Attestation{Envelope: envelope, Event: e.Body, Record: &record}
	if a.IsConfirmed() {
		if err := s.confirm(ctx, &a, repo, e); err != nil {
			return nil, false, err
		}
	}
	own, _ := a.Check(keys)
	return append(own, checks...), e.Body == nil, nil
}

// align gives a record the names that its event has, if the repo was renamed.
func (s *Session) align(ctx context.Context, repo string, record *ledger.AttestationRecord, event []byte) error {
	var e about
	if err := ledger.DecodeOpen(event, &e); err != nil || e.Repo == record.Repo {
		return nil // the check of the body reports what is wrong with it
	}
	n, err := s.namesOf(ctx, repo)
	if err != nil {
		return err
	}
	n.align(record, e)
	return nil
}

// keys returns the pinned keys, or else those that the ledger lists.
func (s *Session) keys(ctx context.Context) (verify.Keys, error) {
	if s.Keys == nil {
		list, err := client.Collect(s.client.Identities(ctx, s.Org), verify.MaxKeys+1)
		if err != nil {
			return verify.Keys{}, err
		}
		if len(list) > verify.MaxKeys {
			return verify.Keys{}, fmt.Errorf("the ledger lists more than %d identities (pin those that you trust with --keys)",
				verify.MaxKeys)
		}
		roots, err := s.client.TrustedRootDocuments(ctx, s.Org, list, verify.MaxRoots)
		if err != nil {
			return verify.Keys{}, err
		}
		keys := verify.Listed(list, sigstore.ParseRoot, roots...)
		s.Keys = &keys
	}
	return *s.Keys, nil
}

// report adds the checks of the log to those of a subject.
func (s *Session) report(ctx context.Context, kind, id string, checks []verify.Check) (verify.Report, error) {
	signers, err := s.signers(ctx)
	if err != nil {
		return verify.Report{}, err
	}
	checks = append(checks, signers...)
	verified := !slices.ContainsFunc(checks, func(c verify.Check) bool { return c.Status == verify.Failed })
	log, err := s.history(ctx, verified)
	if err != nil {
		return verify.Report{}, err
	}
	return verify.NewReport(kind, id, append(checks, log...)), nil
}
