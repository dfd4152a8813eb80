package verify

import (
	"context"
	"errors"

	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// compare checks that somebody else sees the same log as the newest checkpoint, given the
// other one's checkpoint, which was read before it.
func (s *Session) compare(ctx context.Context, theirs []byte, newest proof.Checkpoint, signed []byte) (
	verify.Check, error,
) {
	view := s.Compare
	other, err := proof.OpenCheckpoint(theirs, s.open)
	if err != nil {
		return verify.Failure(verify.CheckCompare, "%s: %v", view.Name, err), nil
	}
	tiles := verify.NewTiles(func(file string) ([]byte, error) { return view.read(ctx, s.log.Epoch, file) })
	if other.Size > newest.Size && view.hasTiles {
		err = verify.Extends(newest, other, tiles)
	} else {
		err = verify.Extends(other, newest, s.tiles)
	}
	if err == nil {
		return verify.Passed(verify.CheckCompare, "%s has %d events of the same log, and the server %d", view.Name,
			other.Size, newest.Size), nil
	}
	if fetch, ok := errors.AsType[*verify.FetchError](err); ok {
		return verify.Check{}, fetch
	}

	check := verify.Failure(verify.CheckCompare, "SPLIT VIEW: %s has %d events, and the server %d, of two histories",
		view.Name, other.Size, newest.Size)
	if conflict, ok := errors.AsType[*verify.Conflict](err); !ok {
		check = verify.Failure(verify.CheckCompare, "%s: %v", view.Name, err)
	} else if conflict.Kind == verify.Rollback {
		check = verify.Failure(verify.CheckCompare, "ROLLBACK: %s has %d events, and the server only %d", view.Name,
			other.Size, newest.Size)
	}
	check.Evidence, err = s.Memory.SaveEvidence(s.Now, s.log.Origin, map[string][]byte{
		"other.checkpoint": theirs, "served.checkpoint": signed,
	})
	return check, err
}
