// Package verify verifies what a server says against the transparency log of an org, and
// against what was seen of the log before.
package verify

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/seen"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// Options are what to verify with.
type Options struct {
	// Server names the server: its URL.
	Server string
	Org    string
	Memory *seen.Memory
	// Keys are pinned keys of signers; nil for those that the ledger lists.
	Keys *verify.Keys
	// Policy has the trusted keys of logs, and the witnesses; nil for none.
	Policy *trustpolicy.Policy
	// MaxAge is how old the newest checkpoint may be, by its cosignatures; 0 for any age.
	MaxAge time.Duration
	// Compare is how somebody else sees the log; nil for nobody.
	Compare *View
	Now     ledger.Time
	// Progress is called as events are read.
	Progress func(done, total int64)
}

// A Session verifies subjects of an org. It is not safe for concurrent use.
type Session struct {
	Options
	client *client.Client
	log    ledger.Log // as the server describes it
	key    trustpolicy.Key
	open   note.Verifier // of key
	source string        // where the key comes from
	known  seen.Log      // what was seen before
	// checkpoints are those that proofs led to, with their signed notes.
	checkpoints map[proof.Checkpoint][]byte
	tiles       *verify.Tiles
}

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
	if place.Origin != "" && place.Origin != s.log.Origin {
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
	return s, nil, nil
}

// refuse returns a failed check of the log that the server shows, and stores its checkpoint with
// the one that was seen before.
func (s *Session) refuse(ctx context.Context, format string, args ...any) (check verify.Check, err error) {
	check = verify.Failure(verify.CheckConsistency, format, args...)
	signed, err := s.client.LogFile(ctx, s.Org, s.log.Epoch, "checkpoint")
	if err != nil {
		return check, err
	}
	check.Evidence, err = s.Memory.SaveEvidence(s.Now, s.log.Origin, map[string][]byte{
		"seen.checkpoint": []byte(s.known.Checkpoint), "served.checkpoint": signed,
	})
	return check, err
}

// trust sets the key of the log: that of the policy, or of what was seen before, or else the
// one that the server names.
func (s *Session) trust(ctx context.Context) (check verify.Check, err error) {
	vkey := s.log.Key
	s.source = "by the server, at first contact"
	if s.known.Key != "" {
		vkey, s.source = s.known.Key, "seen before"
	}
	if pinned := s.pinned(); pinned != "" {
		if s.known.Key != "" && s.known.Key != pinned {
			return s.refuse(ctx, "ANOTHER KEY: the policy has the key %s of the log, which had %s before "+
				"(if this is right, delete %s)", pinned, s.known.Key, s.Memory.LogFile(s.log.Origin))
		}
		vkey, s.source = pinned, "in the policy"
	} else if s.Policy != nil && len(s.Policy.Logs) > 0 {
		return verify.Failure(verify.CheckCheckpoint, "the policy has no key of the log %s (add the line: log %s)",
			s.log.Origin, s.log.Key), nil
	}

	if vkey != s.log.Key {
		return s.refuse(ctx, "ANOTHER KEY: the key of the log, %s, is %s, and the server names %s", s.source, vkey, s.log.Key)
	}
	if s.key, err = trustpolicy.ParseKey(vkey, trustpolicy.LogTypes()...); err != nil {
		return verify.Failure(verify.CheckCheckpoint, "%v", err), nil
	}
	if s.key.Name != s.log.Origin {
		return verify.Failure(verify.CheckCheckpoint, "the key of the log %s has the name %s", s.log.Origin, s.key.Name), nil
	}
	s.open, err = s.key.Verifier()
	return check, err
}

// pinned returns the key of the log in the policy, or "".
func (s *Session) pinned() string {
	if s.Policy == nil {
		return ""
	}
	for _, l := range s.Policy.Logs {
		if l.Key.Name == s.log.Origin {
			return l.Key.String()
		}
	}
	return ""
}

// The time that a server has to sign an event, and how often to ask.
const (
	signTimeout  = 5 * time.Second
	signInterval = 250 * time.Millisecond
)

// await repeats do until it reports that the log is signed, for a limited time. A server signs
// new events within a second.
func (s *Session) await(ctx context.Context, do func() (signed bool, err error)) error {
	deadline := time.Now().Add(signTimeout)
	for {
		signed, err := do()
		if signed || err != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(signInterval):
		}
	}
}

// proofOf returns the proof of an event.
func (s *Session) proofOf(ctx context.Context, event string) (text []byte, err error) {
	waitErr := s.await(ctx, func() (bool, error) {
		text, err = s.client.EventProof(ctx, s.Org, event)
		return client.CodeOf(err) != ledger.CodeNotInCheckpoint, nil
	})
	return text, cmp.Or(waitErr, err)
}

// event reads an event with its proof, and verifies it.
func (s *Session) event(ctx context.Context, id string) (body []byte, checks []verify.Check, err error) {
	if body, err = s.client.Event(ctx, s.Org, id); err != nil {
		return nil, nil, err
	}
	text, err := s.proofOf(ctx, id)
	if client.CodeOf(err) == ledger.CodeNotInCheckpoint {
		return body, []verify.Check{verify.Failure(verify.CheckInclusion, "%v", err)}, nil
	}
	if err != nil {
		return nil, nil, err
	}

	place, checks := verify.Event{ID: id, Body: body, Proof: text}.Verify(s.open)
	if place.Signed != nil {
		s.checkpoints[place.Checkpoint] = place.Signed
		return body, checks, nil
	}
	return body, checks, s.saveRewritten(id, body, text, checks)
}

// saveRewritten stores what shows that an event is not the one in the log.
func (s *Session) saveRewritten(id string, body, proof []byte, checks []verify.Check) error {
	files, err := s.Memory.SaveEvidence(s.Now, s.log.Origin, map[string][]byte{
		id + ".json": body, id + ".proof": proof, id + ".seen": []byte(s.known.Checkpoint),
	})
	for i := range checks {
		if checks[i].Status == verify.Failed {
			checks[i].Evidence = files
			break
		}
	}
	if err != nil {
		return fmt.Errorf("the event %s does not verify, and: %w", id, err)
	}
	return nil
}
