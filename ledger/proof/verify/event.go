package verify

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// The names of the checks that the log has an event.
const (
	CheckInclusion  = "inclusion"
	CheckCheckpoint = "checkpoint"
)

// An Event is an event with the proof that it is in the log, as the ledger gives them.
type Event struct {
	ID    string
	Body  []byte // nil to check only that the event is in the log
	Proof []byte // C2SP tlog-proof
}

// A Place is where the log has an event.
type Place struct {
	proof.Leaf
	Index int64
	// Checkpoint is the one that the proof leads to, and Signed its signed note.
	Checkpoint proof.Checkpoint
	Signed     []byte
}

// Verify checks that the leaf of an event commits to its body, that the leaf is in the log, and
// that the key of the log has signed the checkpoint. The place is only set if all checks have
// passed.
func (e Event) Verify(key note.Verifier) (p Place, checks []Check) {
	included, opening, err := e.parse()
	if err != nil {
		return p, []Check{Failure(CheckInclusion, "%v", err)}
	}
	body := Skipped(CheckBody, "it was not read")
	switch {
	case opening.Salt == nil:
		body = e.unopened(opening.Leaf)
	case e.Body != nil:
		_, body = Open(opening, e.Body)
	}

	c, err := proof.OpenCheckpoint(included.Checkpoint, key)
	if err != nil {
		return p, []Check{body, Failure(CheckCheckpoint, "%v", err)}
	}
	inclusion := Result(CheckInclusion, included.Verify(opening.Leaf.LeafHash(), c),
		"event %d of %d in the log", included.Index+1, c.Size)
	checks = []Check{body, inclusion, Passed(CheckCheckpoint, "%d events of %s, signed by its key %s", c.Size, c.Origin,
		KeyID(key))}
	if body.Status == Failed || inclusion.Status == Failed {
		return p, checks
	}
	return Place{opening.Leaf, included.Index, c, included.Checkpoint}, checks
}

// Origin returns the origin of the log in which the proof shows the event, which is not verified.
// It is empty if the proof is not valid.
func (e Event) Origin() string {
	included, _, err := e.parse()
	if err != nil {
		return ""
	}
	c, err := proof.ReadCheckpoint(included.Checkpoint)
	if err != nil {
		return ""
	}
	return c.Origin
}

// Index returns the number of the event in the log that Origin returns, from 0, which is not verified. It
// is -1 if the proof is not valid.
func (e Event) Index() int64 {
	included, _, err := e.parse()
	if err != nil {
		return -1
	}
	return included.Index
}

// Type returns the type of the event, by its leaf in the proof, which is not verified. It is empty if the proof is
// not valid.
func (e Event) Type() ledger.EventType {
	_, opening, _ := e.parse()
	return opening.Leaf.Type
}

// VerifyIn checks that the leaf of an event of an earlier epoch commits to its body, and that the
// leaf is in the tree of that log, to which a later log commits.
func (e Event) VerifyIn(tree proof.Checkpoint, tiles *Tiles) ([]Check, error) {
	included, opening, err := e.parse()
	if err != nil {
		return []Check{Failure(CheckInclusion, "%v", err)}, nil
	}
	body := e.unopened(opening.Leaf)
	if opening.Salt != nil {
		_, body = Open(opening, e.Body)
	}

	c, err := proof.ReadCheckpoint(included.Checkpoint)
	if err == nil {
		err = included.Verify(opening.Leaf.LeafHash(), c)
	}
	if err == nil {
		err = Extends(c, tree, tiles)
	}
	if fetch, ok := errors.AsType[*FetchError](err); ok {
		return nil, fetch
	}
	return []Check{body, Result(CheckInclusion, err,
		"event %d of %d in the earlier log %s, to which the newer one commits", included.Index+1, tree.Size,
		tree.Origin)}, nil
}

// Opens checks that a leaf, which is known to be in the log, commits to the body. The proof has
// the salt that this takes; where it leads to does not matter.
func (e Event) Opens(leaf proof.Leaf) Check {
	_, opening, err := e.parse()
	if err != nil {
		return Failure(CheckBody, "%v", err)
	}
	if opening.Leaf != leaf {
		return Failure(CheckBody, "the proof of %s is not about its leaf in the log", e.ID)
	}
	if opening.Salt == nil {
		return e.unopened(leaf)
	}
	_, check := Open(opening, e.Body)
	return check
}

// IsPruned reports whether the proof is that of an event whose body was pruned: it has no salt.
func (e Event) IsPruned() bool {
	_, opening, err := e.parse()
	return err == nil && opening.Salt == nil
}

// unopened is the check of a body whose proof has no salt: it must have been pruned.
func (e Event) unopened(leaf proof.Leaf) Check {
	if e.Body != nil {
		return Failure(CheckBody, "the ledger shows it, and its proof has nothing to compare it with")
	}
	return Pruned(leaf)
}

// parse parses the proof, which must be that of the event.
func (e Event) parse() (p proof.Inclusion, o proof.Opening, err error) {
	if p, err = proof.ParseInclusion(e.Proof); err != nil {
		return p, o, err
	}
	if o, err = proof.ParseOpening(p.Extra); err != nil {
		return p, o, err
	}
	if o.Leaf.Event != e.ID {
		return p, o, fmt.Errorf("the proof is of the event %s, not of %s", o.Leaf.Event, e.ID)
	}
	return p, o, nil
}

// KeyID returns the ID of a key, as the signature lines of notes have it.
func KeyID(key note.Verifier) string { return fmt.Sprintf("%08x", key.KeyHash()) }
