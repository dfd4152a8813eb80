package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/cmd/internal/seen"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// maxTries is how often the newest checkpoint is read if others remember larger ones.
const maxTries = 10

// errRaced means that another process has seen more of the log.
var errRaced = errors.New("other processes verify the same log all the time (try again)")

// history checks that the log extends what was seen of it before and what proofs led to, that
// witnesses have cosigned it, and remembers it. It comes after all other checks: without
// remember, what the server says is not remembered.
func (s *Session) history(ctx context.Context, remember bool) ([]verify.Check, error) {
	for range maxTries {
		before, err := s.Memory.Log(s.log.Origin)
		if err != nil {
			return nil, err
		}
		s.known = before
		var theirs []byte
		if s.Compare != nil { // before the newest one of ours, which is not smaller if there is one log
			if theirs, err = s.Compare.read(ctx, s.log.Epoch, checkpointFile); err != nil {
				return nil, fmt.Errorf("--compare %s: %w", s.Compare.Name, err)
			}
		}
		signed, err := s.client.LogFile(ctx, s.Org, s.log.Epoch, checkpointFile)
		if err != nil {
			return nil, err
		}
		newest, err := proof.OpenCheckpoint(signed, s.open)
		if err != nil {
			return []verify.Check{verify.Failure(verify.CheckCheckpoint, "the newest one of the log: %v", err)}, nil
		}

		consistency, err := s.consistency(newest, signed)
		if err != nil {
			return nil, err
		}
		checks := append([]verify.Check{consistency}, s.witnesses(signed)...)
		if s.accepted != nil {
			checks = append([]verify.Check{*s.accepted}, checks...)
		}
		if s.Compare != nil {
			compared, err := s.compare(ctx, theirs, newest, signed)
			if err != nil {
				return nil, err
			}
			checks = append(checks, compared)
		}

		failed := slices.ContainsFunc(checks, func(c verify.Check) bool { return c.Status == verify.Failed })
		if failed || !remember {
			return checks, nil
		}
		if replaced, err := s.remember(ctx, newest, signed); err != nil || replaced {
			return checks, err
		}
	}
	return nil, errRaced
}

// consistency checks that the newest checkpoint extends the one that was seen before, and
// those of proofs.
func (s *Session) consistency(newest proof.Checkpoint, signed []byte) (verify.Check, error) {
	for c, note := range s.checkpoints {
		if check, err := s.extends(c, newest, note, signed); err != nil || check.Status == verify.Failed {
			return check, err
		}
	}
	if s.known.Checkpoint == "" {
		return verify.Unasked(verify.CheckConsistency, "first contact with the log, whose key is %s", s.source), nil
	}
	before, err := proof.OpenCheckpoint([]byte(s.known.Checkpoint), s.open)
	if err != nil {
		return verify.Check{}, fmt.Errorf("read what was seen before in %s: %w", s.Memory.LogFile(s.log.Origin), err)
	}
	return s.extends(before, newest, []byte(s.known.Checkpoint), signed)
}

// extends checks that a checkpoint extends an earlier one, and stores both if it does not.
func (s *Session) extends(before, newest proof.Checkpoint, old, signed []byte) (verify.Check, error) {
	err := verify.Extends(before, newest, s.tiles)
	if err == nil {
		return verify.Passed(verify.CheckConsistency, "the log had %d of its %d events when it was seen at %s", before.Size,
			newest.Size, s.known.SeenAt), nil
	}
	if fetch, ok := errors.AsType[*verify.FetchError](err); ok {
		return verify.Check{}, fetch
	}
	check := verify.Failure(verify.CheckConsistency, "%v", err)
	check.Evidence, err = s.Memory.SaveEvidence(s.Now, s.log.Origin, map[string][]byte{
		"seen.checkpoint": old, "served.checkpoint": signed,
	})
	return check, err
}

// remember stores the newest checkpoint, unless another process has changed what is stored.
func (s *Session) remember(ctx context.Context, newest proof.Checkpoint, signed []byte) (bool, error) {
	l := seen.Log{Origin: s.log.Origin, Key: s.key.String(), Checkpoint: string(signed), SeenAt: s.Now}
	if before, err := proof.ReadCheckpoint([]byte(s.known.Checkpoint)); err == nil && before.Size == newest.Size {
		l.SeenAt = s.known.SeenAt
	}
	replaced, err := s.Memory.Replace(ctx, s.known, l)
	if err != nil || !replaced {
		return false, err
	}
	return true, s.Memory.SavePlace(ctx, seen.Place{Server: s.Server, Org: s.Org, Origin: s.log.Origin})
}

// witnesses checks the cosignatures of a checkpoint, and how old it is.
func (s *Session) witnesses(signed []byte) []verify.Check {
	if s.Policy == nil {
		return []verify.Check{verify.Unasked(verify.CheckWitnesses, "no --policy")}
	}
	if s.Policy.Quorum == trustpolicy.None {
		return []verify.Check{verify.Unasked(verify.CheckWitnesses, "the policy needs none")}
	}
	v, err := s.Policy.Verify(signed, s.key)
	checks := []verify.Check{verify.Result(verify.CheckWitnesses, err, "%d of %d have cosigned", len(v.Cosigned),
		len(s.Policy.Witnesses))}
	if s.MaxAge == 0 || err != nil {
		return checks
	}

	at := verify.CosignedAt(s.Policy, v.Cosigned)
	age := s.Now.Std().Sub(at).Round(time.Second)
	if age > s.MaxAge {
		return append(checks, verify.Failure(verify.CheckAge,
			"a quorum cosigned it %s ago, at %s, which is more than %s", age, at.UTC().Format(time.RFC3339), s.MaxAge))
	}
	return append(checks, verify.Passed(verify.CheckAge, "a quorum cosigned it %s ago", age))
}
