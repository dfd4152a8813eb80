package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/cmd/internal/seen"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// checkEpoch is the name of the check of a log that has replaced another.
const checkEpoch = "epoch"

// maxEpochs is how many epochs an org may have. A log is rarely replaced.
const maxEpochs = 100

// chain returns the logs of the org, the oldest first. The error is a *verify.FetchError if the
// ledger cannot be read. Otherwise a log does not commit to the one before.
func (s *Session) chain(ctx context.Context) ([]epoch, error) {
	if s.epochs != nil {
		return s.epochs, nil
	}
	newest, err := s.newest(ctx)
	if err != nil {
		return nil, &verify.FetchError{Err: err}
	}

	list := []epoch{{number: s.log.Epoch, tree: newest, tiles: s.tiles}}
	for {
		e := &list[len(list)-1]
		if e.number == 1 {
			break
		}
		if err := s.beginning(ctx, e); err != nil {
			return nil, err
		}
		if e.replaces.Epoch == 0 {
			break
		}

		if len(list) == maxEpochs {
			return nil, fmt.Errorf("the log has more than %d epochs", maxEpochs)
		}
		list = append(list, epoch{number: e.replaces.Epoch, tree: e.replaces.Old, tiles: s.tilesOf(ctx, e.replaces.Epoch)})
	}

	slices.Reverse(list)
	s.epochs = list
	return list, nil
}

// extent returns how many events the org has before the logs of a chain, as the ledger says, and up to their
// end.
func (s *Session) extent(chain []epoch) (before, end int64) {
	last := len(chain) - 1
	before, end = s.log.FirstEvent, s.log.FirstEvent+chain[last].tree.Size
	for _, e := range chain[:last] {
		before -= e.tree.Size
	}
	return before, end
}

// tilesOf returns a reader of the tiles of an epoch.
func (s *Session) tilesOf(ctx context.Context, number int) *verify.Tiles {
	return verify.NewTiles(func(file string) ([]byte, error) { return s.client.LogFile(ctx, s.Org, number, file) })
}

// beginning reads the first event of a log, and sets what it replaces.
func (s *Session) beginning(ctx context.Context, e *epoch) error {
	tile := proof.Tile{Level: proof.Entries}
	tile.Width = tile.WidthIn(e.tree.Size)
	bundle, err := s.client.LogFile(ctx, s.Org, e.number, "tile/"+tile.Path())
	if err != nil {
		return &verify.FetchError{Err: err}
	}
	leaves, err := verify.Leaves(e.tree, 0, bundle, e.tiles)
	if err != nil || leaves[0].Type != ledger.EventKey {
		return err
	}

	id := leaves[0].Event
	if e.first, err = s.client.Event(ctx, s.Org, id); err != nil {
		return &verify.FetchError{Err: err}
	}
	text, err := s.client.EventProof(ctx, s.Org, id)
	if err != nil {
		return &verify.FetchError{Err: err}
	}
	if opens := (verify.Event{ID: id, Body: e.first, Proof: text}).Opens(leaves[0]); opens.Status == verify.Failed {
		return fmt.Errorf("the first event of %s: %s", e.tree.Origin, opens.Detail)
	}
	e.replaces, _, err = verify.ReplacementOf(e.tree.Origin, e.first)
	return err
}

// replaced checks the logs that have replaced the one that was seen before. It fails unless they
// are accepted and keep what was seen.
func (s *Session) replaced(ctx context.Context, origin string) (check verify.Check, err error) {
	before, err := s.Memory.Log(origin)
	if err != nil {
		return check, err
	}
	now := s.known
	s.known = before
	defer func() { s.known = now }()

	chain, err := s.chain(ctx)
	if fetch, ok := errors.AsType[*verify.FetchError](err); ok {
		return check, fetch
	}
	if err != nil {
		return s.refuse(ctx, "ANOTHER LOG: %v", err)
	}
	i := slices.IndexFunc(chain, func(e epoch) bool { return e.tree.Origin == origin })
	if i < 0 {
		return s.refuse(ctx, "ANOTHER LOG: %s served the log %s of %s before, and %s does not replace it", s.Server, origin,
			s.Org, s.log.Origin)
	}

	said, err := s.kept(before, chain[i], chain[i+1].replaces)
	if fetch, ok := errors.AsType[*verify.FetchError](err); ok {
		return check, fetch
	}
	if err != nil {
		return s.refuse(ctx, "%v", err)
	}
	if s.AcceptEpoch {
		return verify.Passed(checkEpoch, "accepted: %s", said), nil
	}
	check, err = s.refuse(ctx, "NEW LOG: %s (accept it with --accept-epoch if you know why)", said)
	check.Name = checkEpoch
	return check, err
}

// kept returns what became of a log that was seen before, in words. It is an error if the log has
// had another history.
func (s *Session) kept(before seen.Log, old epoch, r verify.Replacement) (string, error) {
	key, err := trustpolicy.ParseKey(before.Key, trustpolicy.LogTypes()...)
	if err != nil {
		return "", err
	}
	open, err := key.Verifier()
	if err != nil {
		return "", err
	}
	checkpoint, err := proof.OpenCheckpoint([]byte(before.Checkpoint), open)
	if err != nil {
		return "", err
	}
	lost, err := r.Keeps(checkpoint, open, old.tiles)
	if err != nil {
		return "", err
	}

	events := fmt.Sprintf("all %d events that were seen are kept", checkpoint.Size)
	if lost > 0 {
		events = fmt.Sprintf("%d of the %d events that were seen are lost", lost, checkpoint.Size)
	}
	return fmt.Sprintf("%s was replaced at %s, by now with %s; %s; the reason: %q", r.Old.Origin, r.At, s.log.Origin,
		events, r.Reason), nil
}

// earlier verifies an event of an earlier log, with the origin.
func (s *Session) earlier(ctx context.Context, e verify.Event, origin string) ([]verify.Check, error) {
	chain, err := s.chain(ctx)
	if fetch, ok := errors.AsType[*verify.FetchError](err); ok {
		return nil, fetch
	}
	if err != nil {
		return []verify.Check{verify.Failure(checkEpoch, "%v", err)}, nil
	}
	i := slices.IndexFunc(chain, func(old epoch) bool { return old.tree.Origin == origin })
	if i < 0 {
		return []verify.Check{verify.Failure(verify.CheckInclusion, "the event is in the log %s, which %s does not replace",
			origin, s.log.Origin)}, nil
	}
	return e.VerifyIn(chain[i].tree, chain[i].tiles)
}
