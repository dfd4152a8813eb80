package server

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store"
)

// The media types of the log (C2SP tlog-tiles). Proofs are text, as checkpoints are.
const (
	typeTile = typeBinary
	typeNote = "text/plain; charset=utf-8"
)

// getLog returns what is known about the org's present log.
func (s *Server) getLog(c *call) (*reply, error) {
	l, err := s.store.Log(c.ctx(), c.org(), 0)
	if err != nil {
		return nil, err
	}
	built := int64(0)
	if l.Building {
		built = l.Built
	}
	return single(ledger.Log{
		Built: built, Org: l.Org, Epoch: l.Epoch, Origin: l.Origin, Key: l.VKey, Events: l.Leaves, FirstEvent: l.FirstSeq,
		Size: l.Size, SignedAt: l.SignedAt, Public: l.Public, Building: l.Building, Problem: s.config.Logs.Signing()[l.Org],
		Witnesses: s.config.Logs.Witnesses(l.Origin),
	}, nil)
}

// getLogFile returns a file of the log: the checkpoint, a tile or an entry bundle, under the
// number of the epoch if it is not the first.
func (s *Server) getLogFile(c *call) (*reply, error) {
	path := strings.TrimPrefix(c.path.ByName("path"), "/")
	epoch := 1
	if first, rest, ok := strings.Cut(path, "/"); ok {
		if n, err := strconv.Atoi(first); err == nil && n > 1 && strconv.Itoa(n) == first {
			epoch, path = n, rest
		}
	}
	tilePath, isTile := strings.CutPrefix(path, "tile/")
	if path != "checkpoint" && !isTile {
		return nil, ledger.Errorf(ledger.CodeNotFound, "a log has no %q (see C2SP tlog-tiles: checkpoint, tile/…)", path)
	}

	l, err := s.store.Log(c.ctx(), c.org(), epoch)
	switch {
	case err != nil:
		return nil, err
	case isTile && l.Frozen:
		return s.tile(c, l, tilePath)
	case l.Size == 0:
		return nil, ledger.Errorf(ledger.CodeNotFound,
			"the log of %s has no checkpoint yet: the server signs one if base_url is set", l.Org)
	case isTile:
		return s.tile(c, l, tilePath)
	}
	response := &reply{status: http.StatusOK, body: l.Checkpoint, mediaType: typeNote, tagged: true}
	if l.Public {
		response.cache = "public, no-cache"
	}
	return response, nil
}

// tile returns a tile or an entry bundle. It never changes.
func (s *Server) tile(c *call, l store.Log, path string) (*reply, error) {
	tile, err := proof.ParseTile(path)
	if err != nil {
		return nil, ledger.Errorf(ledger.CodeNotFound, "invalid tile %q: %v", path, err)
	}
	body, err := s.store.Tile(c.ctx(), l, tile)
	if err != nil {
		return nil, err
	}
	cache := "private, max-age=31536000, immutable"
	if l.Public {
		cache = "public, max-age=31536000, immutable"
	}
	return &reply{status: http.StatusOK, body: body, mediaType: typeTile, cache: cache}, nil
}

// isLogPublic reports whether the log of the call's org may be read without a token.
func (s *Server) isLogPublic(c *call) (bool, error) {
	l, err := s.store.Log(c.ctx(), c.org(), 0)
	if isNotFound(err) {
		return false, nil // as if its log were private
	}
	return l.Public, err
}

// getEventProof returns the proof that an event is in the log.
func (s *Server) getEventProof(c *call) (*reply, error) {
	if err := s.mayRead(c, c.id()); err != nil {
		return nil, err
	}
	return s.proof(c, c.id())
}

// getAttestationProof returns the proof that the event of an attestation is in the log.
func (s *Server) getAttestationProof(c *call) (*reply, error) {
	rec, err := s.store.Attestation(c.ctx(), c.org(), c.repo(), c.id())
	if err != nil {
		return nil, err
	}
	return s.proof(c, rec.Event)
}

// proof returns the proof of an event (C2SP tlog-proof).
func (s *Server) proof(c *call, event string) (*reply, error) {
	p, err := s.store.EventProof(c.ctx(), c.org(), event)
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, body: p.Format(), mediaType: typeNote}, nil
}

// getReceipt returns a signed receipt that a commit has reached a state.
func (s *Server) getReceipt(c *call) (*reply, error) {
	if err := c.checkSHA(); err != nil {
		return nil, err
	}
	q := store.DecisionQuery{Org: c.org(), Repo: c.repo(), Commit: c.sha()}
	state, err := parse(c, "state", receiptState)
	if err != nil {
		return nil, err
	}
	if c.query.Has("state") {
		q.State = &state
	}
	if q.Target, err = parse(c, "target", ledger.ParseBranch); err != nil {
		return nil, err
	}

	if s.config.Logs.Receipts == nil {
		return nil, ledger.Errorf(ledger.CodeNotInCheckpoint, "no receipts are signed: base_url is not set on the server")
	}
	return shown(s.config.Logs.Receipts.Issue(c.ctx(), q))
}

// receiptState parses a state that receipts are for.
func receiptState(text string) (ledger.State, error) {
	state, err := ledger.ParseState(text)
	if err == nil && state < ledger.Attested {
		err = fmt.Errorf("%s is not a state that receipts are for (use ATTESTED, PROMOTABLE or DEPLOYED)", state)
	}
	return state, err
}
