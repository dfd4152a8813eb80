package verify

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// Begin begins a session with a server. The checks are not nil if the server's log is not the
// one that is trusted; then there is no session.
func Begin(ctx context.Context, c *client.Client, o Options) (*Session, []verify.Check, error) {
	s := &Session{Options: o, client: c, checkpoints: make(map[proof.Checkpoint][]byte),
		maxListed: maxListed, maxVersions: maxVersions}
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
	before, err := s.seenBefore()
	if err != nil {
		return nil, nil, err
	}
	isReplaced := verify.IsLaterEpoch(before, s.log.Origin)
	if before != "" && before != s.log.Origin && !isReplaced {
		if s.known, err = o.Memory.Log(before); err != nil {
			return nil, nil, err
		}
		check, err := s.refuse(ctx,
			"ANOTHER LOG: %s served the log %s of %s before, and now %s (if this is right, delete %s)",
			o.Server, before, o.Org, s.log.Origin, o.Memory.PlaceFile(o.Server, o.Org))
		return nil, []verify.Check{check}, err
	}
	check, err := s.trust(ctx)
	if err != nil || check.Status == verify.Failed {
		return nil, []verify.Check{check}, err
	}
	if isReplaced && s.known.Checkpoint == "" {
		if check, err = s.replaced(ctx, before); err != nil || check.Status == verify.Failed {
			return nil, []verify.Check{check}, err
		}
		s.accepted = &check
	}
	return s, nil, nil
}

// seenBefore returns the origin of the log that was seen at this server or, if the server was
// never seen, of the newest earlier epoch of its log that was seen elsewhere. It is empty at the
// first contact.
func (s *Session) seenBefore() (origin string, err error) {
	place, err := s.Memory.Place(s.Server, s.Org)
	if err != nil || place.Origin != "" {
		return place.Origin, err
	}
	first, epoch, _ := verify.SplitOrigin(s.log.Origin)
	for epoch = min(epoch, maxEpochs) - 1; epoch > 0; epoch-- {
		origin = first
		if epoch > 1 {
			origin = fmt.Sprint(first, "/", epoch)
		}
		l, err := s.Memory.Log(origin)
		if err != nil || l.Checkpoint != "" {
			return origin, err
		}
	}
	return "", nil
}
