package verify

import (
	"context"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// signers checks that the log has the identities that signatures were verified with, as the
// ledger lists them. Pinned ones need not be in the log.
func (s *Session) signers(ctx context.Context) ([]verify.Check, error) {
	if s.Keys == nil {
		return nil, nil
	}
	used := s.Keys.Used()
	for _, i := range used {
		logged := inOrg(s.Org, i.Org, func(e *ledger.IdentityEvent) verify.Check { return verify.LoggedIdentity(i, e) })
		if problem, err := s.isLogged(ctx, i.ID, i.Event, logged); err != nil || problem != nil {
			return problem, err
		}
	}
	for _, r := range s.Keys.UsedRoots() {
		logged := inOrg(s.Org, r.Org, func(e *ledger.IdentityEvent) verify.Check { return verify.LoggedTrustedRoot(r, e) })
		if problem, err := s.isLogged(ctx, rootID(r), r.Event, logged); err != nil || problem != nil {
			return problem, err
		}
	}

	if len(used) == 0 {
		return nil, nil
	}
	text := "the log has the 1 identity that has signed, as the ledger lists it"
	if len(used) > 1 {
		text = fmt.Sprintf("the log has the %d identities that have signed, as the ledger lists them", len(used))
	}
	return []verify.Check{verify.Passed(verify.CheckIdentity, "%s", text)}, nil
}

func rootID(r identity.TrustedRoot) string { return fmt.Sprintf("version %d of %s", r.Version, r.Name) }

// isLogged checks that the log has the event about an identity or a trusted root. It returns what is
// wrong, or why it cannot be checked; nil if the log has it.
func (s *Session) isLogged(
	ctx context.Context, id, event string, logged func(*ledger.IdentityEvent) verify.Check,
) ([]verify.Check, error) {
	if event == "" {
		return []verify.Check{verify.Skipped(verify.CheckIdentity,
			"the server has not logged %s yet (run it again in a minute)", id)}, nil
	}
	e, checks, err := s.event(ctx, event)
	if err != nil {
		return nil, fmt.Errorf("the event of %s: %w", id, err)
	}
	if e.Proof == nil && s.log.Epoch > 1 { // no checkpoint covers it, and none ever will
		return []verify.Check{verify.Skipped(verify.CheckIdentity, "%s was logged while the log, which was replaced, was "+
			"not signed", id)}, nil
	}

	for _, c := range append(checks, ofIdentity(e.Body, logged)) {
		if c.Status == verify.Failed {
			c.Detail = fmt.Sprintf("%s, which is trusted: %s: %s", id, c.Name, c.Detail)
			c.Name = verify.CheckIdentity
			return []verify.Check{c}, nil
		}
	}
	return nil, nil
}

// inOrg returns a check of an event about what the ledger lists for an org. It fails if the ledger lists it for
// another org.
func inOrg(
	org, listed string, check func(*ledger.IdentityEvent) verify.Check,
) func(*ledger.IdentityEvent) verify.Check {
	return func(e *ledger.IdentityEvent) verify.Check {
		if !strings.EqualFold(org, listed) {
			return verify.Failure(verify.CheckIdentity, "the ledger lists it for the org %s", listed)
		}
		return check(e)
	}
}

// ofIdentity checks the body of the event of an identity.
func ofIdentity(body []byte, logged func(*ledger.IdentityEvent) verify.Check) verify.Check {
	e, err := verify.IdentityEvent(body)
	if err != nil {
		return verify.Failure(verify.CheckIdentity, "%v", err)
	}
	return logged(e)
}
