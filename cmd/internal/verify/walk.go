package verify

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// maxListed bounds the commits and the attestations of a repo that a server can make verify read.
const maxListed = 10_000_000

// concurrent is the number of events that are read at the same time.
const concurrent = 8

// walk reads the events of some types in the logs of a chain, in order: a bundle at a time. The error is a
// *verify.FetchError if the ledger cannot be read. Otherwise the ledger does not list what is in
// the logs. Events before the chain, of which there are so many, are passed over, and so are those
// of other types, or of types that the token may not read: s.unread counts them, and s.unknown those of
// types of newer versions.
func (s *Session) walk(
	ctx context.Context, chain []epoch, before int64, types []ledger.EventType, visit func([]logged) error,
) error {
	s.unread, s.unknown = 0, 0
	bodies := &bodies{session: s, before: before, types: types, events: before}
	for _, e := range chain {
		bodies.events += e.tree.Size
	}
	if err := bodies.begin(ctx); err != nil {
		return err
	}
	first := before
	for i, e := range chain {
		isNewest := i == len(chain)-1
		if err := s.walkEpoch(ctx, e, first, isNewest, bodies, visit); err != nil {
			return err
		}
		first += e.tree.Size
	}
	return nil
}

// walkEpoch reads all events in one log. The first has the given number among all of the org.
func (s *Session) walkEpoch(
	ctx context.Context, e epoch, first int64, isNewest bool, bodies *bodies, visit func([]logged) error,
) error {
	c := e.tree
	for n := int64(0); n*proof.TileWidth < c.Size; n++ {
		tile := proof.Tile{Level: proof.Entries, N: n}
		tile.Width = tile.WidthIn(c.Size)
		bundle, err := s.client.LogFile(ctx, s.Org, e.number, "tile/"+tile.Path())
		if err != nil {
			return &verify.FetchError{Err: err}
		}
		leaves, err := verify.Leaves(c, n, bundle, e.tiles)
		if err != nil {
			return err
		}

		events := make([]logged, 0, len(leaves))
		for i, leaf := range leaves {
			e := logged{index: first + n*proof.TileWidth + int64(i), leaf: leaf, isOld: !isNewest}
			if !slices.Contains(ledger.EventTypes(), leaf.Type) {
				s.unknown++ // of a newer version: it cannot be listed
				continue
			}
			if !slices.Contains(bodies.types, leaf.Type) {
				s.unread++
				continue
			}
			if err := bodies.next(ctx, &e); err != nil {
				return err
			}
			events = append(events, e)
		}
		if err := visit(events); err != nil {
			return err
		}
		s.Progress(first+n*proof.TileWidth+int64(len(leaves)), first+c.Size)
	}
	return nil
}

// bodies lists the bodies of all events of an org.
type bodies struct {
	session *Session
	types   []ledger.EventType // those that are listed
	page    []listedEvent
	query   client.Query
	isLast  bool
	events  int64 // all that there are
	before  int64 // events of earlier logs, which are passed over
	skipped int64
	begun   bool // an event of the logs was listed
}

// A listedEvent is an event as the ledger lists it.
type listedEvent struct {
	body []byte
	salt *proof.Salt // nil if the ledger does not list it
}

// begin reads the first page. If the token may not read events of all types, it is that of those
// that every token may read.
func (b *bodies) begin(ctx context.Context) error {
	err := b.fill(ctx)
	if client.CodeOf(err) != ledger.CodeForbidden {
		return err
	}
	b.types, b.query = ledger.EventTypesFor(ledger.Read), client.Query{}
	return b.fill(ctx)
}

// next sets the body of an event, which must be the next one in the list, unless it was pruned.
func (b *bodies) next(ctx context.Context, e *logged) error {
	for {
		if err := b.fill(ctx); err != nil {
			return err
		}
		var listed about
		if len(b.page) > 0 {
			if err := ledger.DecodeOpen(b.page[0].body, &listed); err != nil {
				return fmt.Errorf("the ledger lists an event that is not valid: %w", err)
			}
		}
		if listed.ID == e.leaf.Event {
			e.body, e.about = b.page[0].body, listed
			if !e.isOld { // a log that was replaced may not have been signed, which its proofs say
				e.salt = b.page[0].salt
			}
			b.page, b.begun = b.page[1:], true
			return nil
		}

		// IDs are in the order of the list. If the event was pruned, a later one is listed in its place.
		isEarlier := !b.begun && b.skipped < b.before && listed.ID < e.leaf.Event
		if len(b.page) == 0 || !isEarlier {
			return b.pruned(ctx, e, listed.ID)
		}
		b.page = b.page[1:]
		b.skipped++
	}
}

// pruned returns an error unless the ledger says that it has pruned the body of an event, instead of
// which it lists another, or none.
func (b *bodies) pruned(ctx context.Context, e *logged, listed string) error {
	body, err := unlessPruned(b.session.client.Event(ctx, b.session.Org, e.leaf.Event))
	switch {
	case err == nil && body == nil:
		if c := verify.Pruned(e.leaf); c.Status == verify.Failed {
			return fmt.Errorf("event %d of the log is %s: %s", e.index+1, e.leaf.Event, c.Detail)
		}
		return nil
	case err != nil && client.CodeOf(err) != ledger.CodeNotFound:
		return &verify.FetchError{Err: err}
	case listed == "":
		return fmt.Errorf("event %d of the log is %s, and the ledger does not list it", e.index+1, e.leaf.Event)
	}
	return fmt.Errorf("event %d of the log is %s, and the ledger lists %s", e.index+1, e.leaf.Event, listed)
}

const (
	// listedEvents is the number of events that a page of the list has, or passes over, at most times.
	listedEvents = 500
	// maxEmptyPages is how many pages without events a list may have, in addition to those on which
	// all events were pruned.
	maxEmptyPages = 1000
)

// fill reads the next page, if it is due.
func (b *bodies) fill(ctx context.Context) error {
	for range maxEmptyPages + b.events/listedEvents {
		if len(b.page) > 0 || b.isLast {
			return nil
		}
		b.query.Limit = listedEvents
		if err := b.read(ctx); err != nil {
			return &verify.FetchError{Err: err}
		}
	}
	return &verify.FetchError{Err: errors.New("the list of events does not go on")}
}

// read reads the next page, with the salts of the events if the server knows this.
func (b *bodies) read(ctx context.Context) error {
	s, f := b.session, client.EventFilter{Types: b.types}
	page, err := s.client.SaltedEventsPage(ctx, s.Org, f, b.query)
	if client.CodeOf(err) == ledger.CodeInvalidParameter { // 0.1.0
		page.Page, err = s.client.EventsPage(ctx, s.Org, f, b.query)
	}
	if err != nil {
		return err
	}

	b.page = make([]listedEvent, len(page.Data))
	for i, body := range page.Data {
		b.page[i].body = body
		if len(page.Salts) > 0 {
			b.page[i].salt = saltOf(page.Salts[i])
		}
	}
	b.query.Cursor, b.isLast = page.NextCursor, page.NextCursor == ""
	return nil
}

// saltOf returns a salt from hex, or nil if it is none: then the event has a proof, or no leaf commits to it.
func saltOf(text string) *proof.Salt {
	salt, err := hex.DecodeString(text)
	if err != nil || len(salt) != proof.SaltSize {
		return nil
	}
	return (*proof.Salt)(salt)
}
