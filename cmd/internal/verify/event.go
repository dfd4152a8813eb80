package verify

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// proofOf returns the proof of an event.
func (s *Session) proofOf(ctx context.Context, event string) (text []byte, err error) {
	waitErr := s.await(ctx, func() (bool, error) {
		text, err = s.client.EventProof(ctx, s.Org, event)
		return client.CodeOf(err) != ledger.CodeNotInCheckpoint, nil
	})
	return text, cmp.Or(waitErr, err)
}

// proofIn returns the proof of an event in the log that was read; nil if it was recorded while the log,
// which was replaced, was not signed.
func (s *Session) proofIn(ctx context.Context, e logged) ([]byte, error) {
	if !e.isOld {
		return s.proofOf(ctx, e.leaf.Event)
	}
	text, err := s.client.EventProof(ctx, s.Org, e.leaf.Event)
	if client.CodeOf(err) == ledger.CodeNotInCheckpoint {
		return nil, nil
	}
	return text, err
}

// proofUnlessSalted is proofIn, but reads nothing if the ledger has listed the salt of the event.
func (s *Session) proofUnlessSalted(ctx context.Context, e logged) ([]byte, error) {
	if e.salt != nil {
		return nil, nil
	}
	return s.proofIn(ctx, e)
}

// unlessPruned returns what was read; nil if the ledger has pruned it.
func unlessPruned(data []byte, err error) ([]byte, error) {
	if client.CodeOf(err) == ledger.CodePruned {
		return nil, nil
	}
	return data, err
}

// unlessPrunedSince returns the body of an event, or nil if the ledger has pruned it after the body
// was read, and before the proof was.
func (s *Session) unlessPrunedSince(ctx context.Context, id string, body, proof []byte) ([]byte, error) {
	if body == nil || !(verify.Event{ID: id, Proof: proof}).IsPruned() {
		return body, nil
	}
	return unlessPruned(s.client.Event(ctx, s.Org, id))
}

// event reads an event with its proof, and verifies it. The body is nil if it was pruned.
func (s *Session) event(ctx context.Context, id string) (e verify.Event, checks []verify.Check, err error) {
	e.ID = id
	if e.Body, err = unlessPruned(s.client.Event(ctx, s.Org, id)); err != nil {
		return e, nil, err
	}
	e.Proof, err = s.proofOf(ctx, id)
	if client.CodeOf(err) == ledger.CodeNotInCheckpoint {
		return e, []verify.Check{verify.Failure(verify.CheckInclusion, "%v", err)}, nil
	}
	if err == nil {
		e.Body, err = s.unlessPrunedSince(ctx, id, e.Body, e.Proof)
	}
	if err != nil {
		return e, nil, err
	}

	if origin := e.Origin(); verify.IsLaterEpoch(origin, s.log.Origin) {
		checks, err := s.earlier(ctx, e, origin)
		return e, checks, err
	}
	place, checks := e.Verify(s.open)
	if place.Signed != nil {
		s.checkpoints[place.Checkpoint] = place.Signed
		return e, checks, nil
	}
	return e, checks, s.saveRewritten(e, checks)
}

// saveRewritten stores what shows that an event is not the one in the log.
func (s *Session) saveRewritten(e verify.Event, checks []verify.Check) error {
	files, err := s.Memory.SaveEvidence(s.Now, s.log.Origin, map[string][]byte{
		e.ID + ".json": e.Body, e.ID + ".proof": e.Proof, e.ID + ".seen": []byte(s.known.Checkpoint),
	})
	for i := range checks {
		if checks[i].Status == verify.Failed {
			checks[i].Evidence = files
			break
		}
	}
	if err != nil {
		return fmt.Errorf("the event %s does not verify, and: %w", e.ID, err)
	}
	return nil
}
