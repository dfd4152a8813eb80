package verify

import (
	"context"
	"fmt"

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
		if i.Event == "" {
			return []verify.Check{verify.Skipped(verify.CheckIdentity, "the server has not logged %s yet", i.ID)}, nil
		}
		body, checks, err := s.event(ctx, i.Event)
		if err != nil {
			return nil, fmt.Errorf("the event of %s: %w", i.ID, err)
		}
		if len(checks) == 1 && s.log.Epoch > 1 { // no checkpoint covers it, and none ever will
			return []verify.Check{verify.Skipped(verify.CheckIdentity, "%s was logged while the log, which was replaced, was "+
				"not signed", i.ID)}, nil
		}

		for _, c := range append(checks, verify.LoggedIdentity(i, body)) {
			if c.Status == verify.Failed {
				c.Detail = fmt.Sprintf("%s, whose key is trusted: %s: %s", i.ID, c.Name, c.Detail)
				c.Name = verify.CheckIdentity
				return []verify.Check{c}, nil
			}
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
