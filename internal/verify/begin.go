package verify

import (
	"context"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// Begin begins a session with a server. The checks are not nil if the server's log is not the
// one that is trusted; then there is no session.
func Begin(ctx context.Context, c *client.Client, o Options) (*Session, []verify.Check, error) {
	s := &Session{Options: o, client: c, checkpoints: make(map[proof.Checkpoint][]byte)}
	if s.Progress == nil {
		s.Progress = func(int64, int64) {}
	}
	s.tiles = verify.NewTiles(func(file string) ([]byte, error) {
		return c.LogFile(ctx, o.Org, s.log.Epoch, file)
	})
	var err error
	err = s.await(ctx, func() (signed bool, err error) {
		s.log, err = c.Log(ctx, o.Org)
		return s.log.Size > 0 || s.log.Events == 0, err
	})
	if err != nil {
		return nil, nil, err
	}
	if s.log.Size == 0 {
		return nil, []verify.Check{verify.Failure(verify.CheckCheckpoint,
			"the log of %s has no checkpoint yet: the server signs one if base_url is set", o.Org)}, nil
	}

	if s.known, err = o.Memory.Log(s.log.Origin); err != nil {
		return nil, nil, err
	}
	place, err := o.Memory.Place(o.Server, o.Org)
	if err != nil {
		return nil, nil, err
	}
	isReplaced := verify.IsLaterEpoch(place.Origin, s.log.Origin)
	if place.Origin != "" && place.Origin != s.log.Origin && !isReplaced {
		if s.known, err = o.Memory.Log(place.Origin); err != nil {
			return nil, nil, err
		}
		check, err := s.refuse(ctx,
			"ANOTHER LOG: %s served the log %s of %s before, and now %s (if this is right, delete %s)",
			o.Server, place.Origin, o.Org, s.log.Origin, o.Memory.PlaceFile(o.Server, o.Org))
		return nil, []verify.Check{check}, err
	}
	check, err := s.trust(ctx)
	if err != nil || check.Status == verify.Failed {
		return nil, []verify.Check{check}, err
	}
	if isReplaced {
		if check, err = s.replaced(ctx, place.Origin); err != nil || check.Status == verify.Failed {
			return nil, []verify.Check{check}, err
		}
		s.accepted = &check
	}
	return s, nil, nil
}
