package transparency

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store"
)

// MaxReason is the maximum length of the reason for a new epoch, in bytes.
const MaxReason = 500

// A NewEpoch asks for a new epoch of the log of an org.
type NewEpoch struct {
	Org string
	// Reason is why, for those who read the log.
	Reason string
	// Checkpoint is a signed checkpoint of the present log that is known elsewhere, for
	// instance by a witness. It may be empty.
	Checkpoint []byte
	// Force replaces a log that is in order.
	Force bool
}

// A Begun is a log that has begun.
type Begun struct {
	Org    string `json:"org"`
	Epoch  int    `json:"epoch"`
	Origin string `json:"origin"`
	Key    string `json:"key"` // as a verifier key of a signed note
	// Event is the ID of the first event of the log, which commits to the log before.
	Event string `json:"event"`
	// Previous is the log before, with the last checkpoint that is known of it.
	Previous string `json:"previous"`
	Known    int64  `json:"previous_size"` // of this checkpoint; 0 if none is known
}

// Begin replaces the log of an org, which cannot go on, with one that has a new key. If it is
// interrupted, it can be called again.
func (s *Signer) Begin(ctx context.Context, n NewEpoch) (b Begun, err error) {
	if err := checkReason(n.Reason); err != nil {
		return b, err
	}
	if s.BaseURL == nil {
		return b, errors.New("set base_url: the name of the log begins with it")
	}
	l, err := s.Store.Log(ctx, n.Org, 0)
	if err != nil {
		return b, err
	}
	known, err := s.known(l, n.Checkpoint)
	if err != nil {
		return b, err
	}
	if err := s.mayReplace(ctx, l, known, n.Force); err != nil {
		return b, err
	}

	name := LogName{Org: l.Org, Epoch: l.Epoch + 1}
	for s.Keys.hasSigned(name) { // with another database
		name.Epoch++
	}
	key, err := s.Keys.Load(name, Origin(s.BaseURL, name))
	if errors.Is(err, fs.ErrNotExist) {
		key, err = s.Keys.Create(name, Origin(s.BaseURL, name))
	}
	if err != nil {
		return b, err
	}

	event := ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfLog, Reason: n.Reason,
		Previous: &ledger.PreviousLog{Origin: known.Origin, Checkpoint: string(known.note)}}
	if event.PublicKey, err = key.publicKey(); err != nil {
		return b, fmt.Errorf("encode the key of the log: %w", err)
	}
	digest := sha256.Sum256(event.PublicKey)
	event.Key = hex.EncodeToString(digest[:])
	id, err := s.Store.BeginEpoch(ctx, l, name.Epoch, event)
	return Begun{Org: l.Org, Epoch: name.Epoch, Origin: key.Name(), Key: key.VKey, Event: id, Previous: known.Origin,
		Known: known.Size}, err
}

func checkReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return errors.New("give a reason: it is in the first event of the new log")
	case len(reason) > MaxReason:
		return fmt.Errorf("the reason has %d bytes, want at most %d", len(reason), MaxReason)
	case strings.ContainsFunc(reason, unicode.IsControl) || strings.ToValidUTF8(reason, "") != reason:
		return errors.New("the reason has control characters or is not UTF-8: use one line of text")
	}
	return nil
}

// A known is the newest checkpoint of a log that is known: zero for none.
type known struct {
	proof.Checkpoint
	note []byte // with the signature of the log only
}

// known returns the newest checkpoint of a log on disk, in the database, or given. It is an
// error if the log has never been signed.
func (s *Signer) known(l store.Log, given []byte) (newest known, err error) {
	newest.Origin = l.Origin
	vkey := l.VKey
	if vkey == "" && s.Keys.hasSigned(nameOf(l)) { // the log has begun with another database
		key, err := s.load(l)
		if err != nil {
			return newest, err
		}
		vkey, newest.Origin = key.VKey, key.Name()
	}
	if vkey == "" && l.Epoch > 1 {
		return newest, fmt.Errorf("the log of %s has already begun epoch %d: a running server signs it within a second",
			l.Org, l.Epoch)
	}
	if vkey == "" {
		return newest, fmt.Errorf("the log of %s has never been signed: it needs no new epoch", l.Org)
	}
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return newest, fmt.Errorf("read the key of the log of %s: %w", l.Org, err)
	}

	saved, err := s.Keys.signed(nameOf(l))
	if err != nil {
		return newest, err
	}
	// What the host has may be damaged, which is a reason for a new epoch.
	for _, signed := range [][]byte{saved, l.Checkpoint} {
		if c, err := openKnown(signed, verifier); err == nil && c.Size > newest.Size {
			newest = c
		}
	}
	if len(given) == 0 {
		return newest, nil
	}
	c, err := openKnown(given, verifier)
	if err != nil {
		return newest, fmt.Errorf("the given checkpoint is not one of the log of %s: %w", l.Org, err)
	}
	if c.Size > newest.Size {
		newest = c
	}
	return newest, nil
}

// openKnown opens a checkpoint, and drops the cosignatures of witnesses.
func openKnown(signed []byte, verifier note.Verifier) (k known, err error) {
	if k.Checkpoint, err = proof.OpenCheckpoint(signed, verifier); err != nil {
		return k, err
	}
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return k, fmt.Errorf("open checkpoint: %w", err)
	}
	k.note, err = note.Sign(&note.Note{Text: opened.Text, Sigs: opened.Sigs})
	return k, err
}

// mayReplace returns an error if a log must not be replaced: it is being built, or it is in
// order, unless that is forced.
func (s *Signer) mayReplace(ctx context.Context, l store.Log, k known, force bool) error {
	if l.Building && l.Size == 0 {
		return fmt.Errorf("the log of %s is being built: try again when it is complete", l.Org)
	}
	if force || l.Building || l.Origin == "" {
		return nil
	}
	key, err := s.load(l)
	if err != nil || key.Name() != l.Origin || key.VKey != l.VKey {
		return nil // it cannot be signed
	}
	if s.extendsSigned(ctx, l, key) != nil || k.Size > 0 && s.extends(ctx, l, k.Checkpoint) != nil {
		return nil
	}
	return fmt.Errorf("the log of %s is in order: it needs no new epoch (if a witness knows another history, give its "+
		"checkpoint with --checkpoint; if the key was stolen, use --force)", l.Org)
}
