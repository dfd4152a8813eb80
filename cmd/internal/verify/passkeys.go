package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// assertion returns the assertion of an attestation; nil if the ledger does not show it.
func (s *Session) assertion(ctx context.Context, repo, id string) ([]byte, error) {
	text, err := s.client.Assertion(ctx, s.Org, repo, id)
	if code := client.CodeOf(err); code == ledger.CodeNotFound || code == ledger.CodePruned {
		return nil, nil
	}
	return text, err
}

// confirm adds to an attestation what shows that a passkey has confirmed it, given its event.
func (s *Session) confirm(ctx context.Context, a *verify.Attestation, repo string, e verify.Event) (err error) {
	if a.Assertion, err = s.assertion(ctx, repo, a.Record.ID); err != nil {
		return err
	}
	if a.Index, err = s.indexOf(ctx, e); err != nil {
		return err
	}
	if s.enrolled.end <= a.Index {
		if err := s.readEnrolments(ctx); err != nil {
			return err
		}
	}
	a.Passkeys, err = s.passkeys(ctx)
	return err
}

// indexOf returns the number of an event among all of the org, by its proof. It is -1 if the proof is not
// valid, which another check reports.
func (s *Session) indexOf(ctx context.Context, e verify.Event) (int64, error) {
	chain, err := s.chain(ctx)
	if fetch, ok := errors.AsType[*verify.FetchError](err); ok {
		return -1, fetch
	}
	if err != nil {
		return -1, nil
	}

	first, _ := s.extent(chain)
	for _, log := range chain {
		if log.tree.Origin == e.Origin() {
			return first + e.Index(), nil
		}
		first += log.tree.Size
	}
	return -1, nil
}

// readEnrolments reads the events of identities in the log, as it is now.
func (s *Session) readEnrolments(ctx context.Context) error {
	s.enrolled, s.epochs = enrolments{}, nil
	chain, err := s.chain(ctx)
	if err == nil {
		before, end := s.extent(chain)
		s.enrolled = newEnrolments(before, end)
		err = s.walk(ctx, chain, before, []ledger.EventType{ledger.EventIdentity}, func(events []logged) error {
			for _, e := range events {
				s.enrolled.add(e)
			}
			return nil
		})
	}
	if fetch, ok := errors.AsType[*verify.FetchError](err); ok {
		s.enrolled = enrolments{}
		return fetch
	}
	s.enrolled.passkeys.Fault = err
	return nil
}

// passkeys returns the passkeys by the events of identities that were read, after it has checked that the
// log has these.
func (s *Session) passkeys(ctx context.Context) (verify.Passkeys, error) {
	type opening struct {
		logged
		proof []byte
		err   error
	}
	var list []*opening
	for _, e := range s.enrolled.unopened {
		list = append(list, &opening{logged: e})
	}
	parallel.Each(concurrent, list, func(o *opening) { o.proof, o.err = s.proofUnlessSalted(ctx, o.logged) })
	if i := slices.IndexFunc(list, func(o *opening) bool { return o.err != nil }); i >= 0 {
		return verify.Passkeys{}, &verify.FetchError{Err: list[i].err}
	}

	known := &s.enrolled.passkeys
	s.enrolled.unopened = nil
	for _, o := range list {
		if o.salt == nil && o.proof == nil {
			known.Gap = "events of identities were recorded while " + unsigned
			continue
		}
		opens := o.opens(o.proof)
		err := decode(o.body, func(e ledger.IdentityEvent) error {
			known.Add(o.index, e)
			return nil
		})
		switch opens.Status {
		case verify.Failed:
			err = errors.New(opens.Detail)
		case verify.NotChecked:
			known.Gap = fmt.Sprintf("the event %s of an identity: %s", o.leaf.Event, opens.Detail)
		}
		if err != nil && known.Fault == nil {
			known.Fault = fmt.Errorf("the event %s of an identity: %w", o.leaf.Event, err)
		}
	}
	return *known, nil
}
