// Package verify verifies what a server says against the transparency log of an org, and
// against what was seen of the log before.
package verify

import (
	"context"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/seen"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/lineage"
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
	// AcceptEpoch accepts a log that says that it replaces the one that was seen before.
	AcceptEpoch bool
	// Rederive derives the states of commits again.
	Rederive bool
	// Objects reads the objects of commits for that, and leaves out those that are not there; nil without a clone.
	Objects func(ctx context.Context, commits []string) ([]lineage.Object, error)
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
	epochs      []epoch       // as chain returned them
	accepted    *verify.Check // that the log has replaced another; or nil
	// maxListed and maxVersions are the constants of these names; tests lower them.
	maxListed, maxVersions int
	// unread is how many events the last walk has passed over, and unknown how many because this version
	// does not know their type.
	unread, unknown int64
	enrolled        enrolments
}

// An epoch is a log of the org with its tree: that of its newest checkpoint or, if it was
// replaced, the one to which the next log commits.
type epoch struct {
	number int
	tree   proof.Checkpoint
	tiles  *verify.Tiles
	// replaces is the log before; its Epoch is 0 if this is the first.
	replaces verify.Replacement
	// first is the body of the first event, if it replaces a log.
	first []byte
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

// newest returns the newest checkpoint of the log.
func (s *Session) newest(ctx context.Context) (c proof.Checkpoint, err error) {
	signed, err := s.client.LogFile(ctx, s.Org, s.log.Epoch, "checkpoint")
	if err != nil {
		return c, err
	}
	if c, err = proof.OpenCheckpoint(signed, s.open); err == nil {
		s.checkpoints[c] = signed
	}
	return c, err
}
