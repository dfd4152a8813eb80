package store

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// maxPrepared is how often a write is prepared and tried again. What is prepared is kept for
// the next try, so a write that is refused more often depends on a contract, or on claims,
// that change all the time.
const maxPrepared = 8

// An unprepared is the error of a write that would keep others waiting: deriving the states
// of these commits takes long. The caller prepares them, outside the writer, and writes
// again.
type unprepared struct{ list []*subject }

func (*unprepared) Error() string {
	return "the states of commits take too long to derive in the writer"
}

// errUnprepared is the error of a write that was prepared too often. It is a new one for
// each caller.
func errUnprepared() error {
	return ledger.Errorf(ledger.CodeStorageUnavailable,
		"the policy changed again and again while the state of the commit was prepared: nothing was recorded (send it again)")
}

// prepare prepares commits for the next try of a write. It returns what is known then: p,
// or a new preparation if p is nil.
func (s *Store) prepare(ctx context.Context, p *preparation, u *unprepared) (*preparation, error) {
	if p == nil {
		p = newPreparation()
	}
	p.tries++
	for _, subject := range u.list {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		if err := s.prepareOne(ctx, p, subject); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (s *Store) prepareOne(ctx context.Context, p *preparation, subject *subject) error {
	facts := subject.facts // other callers may prepare the same commit
	facts.Memo = s.caches.memo(subject.d.contract, subject.d.repo.policyDigest, p)
	if facts.ChangesUnread && !subject.d.contract.KnowsScopes(&facts) {
		_, err := readLoose(ctx, s, forWrite(subject.d.repo.org), func(rd reader) (struct{}, error) {
			return struct{}{}, rd.readPaths(func(int64) *policy.Facts { return &facts }, []any{subject.id})
		})
		if err != nil {
			return fmt.Errorf("read changes: %w", err)
		}
	}
	subject.d.contract.Prepare(&facts)
	return nil
}
