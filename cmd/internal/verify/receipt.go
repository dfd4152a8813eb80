package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/cmd/internal/seen"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// Receipt verifies a receipt as of a time, and that the log extends what its proofs lead to.
func (s *Session) Receipt(ctx context.Context, r verify.Receipt, at ledger.Time) (verify.Report, error) {
	if r.Says.Log.Origin != s.log.Origin {
		return s.earlierReceipt(ctx, r, at)
	}
	checks := r.Verify(s.open, at)
	for c, signed := range opened(r, s.open) {
		s.checkpoints[c] = signed
	}
	return s.report(ctx, "receipt", receiptID(r), checks)
}

// earlierReceipt verifies a receipt that an earlier log covers.
func (s *Session) earlierReceipt(ctx context.Context, r verify.Receipt, at ledger.Time) (verify.Report, error) {
	origin := r.Says.Log.Origin
	_, key, err := s.logKey(origin)
	if another, ok := errors.AsType[*anotherKeyError](err); ok {
		return s.report(ctx, "receipt", receiptID(r), []verify.Check{verify.Failure(verify.CheckConsistency, "%v", another)})
	}
	if err != nil {
		return verify.Report{}, err
	}
	open, err := key.Verifier()
	if err != nil {
		return verify.Report{}, err
	}
	checks := r.Verify(open, at)
	check, err := s.extended(ctx, origin, opened(r, open))
	if err != nil {
		return verify.Report{}, err
	}
	return s.report(ctx, "receipt", receiptID(r), append(checks, check))
}

// extended checks that an earlier log has what checkpoints of it say.
func (s *Session) extended(ctx context.Context, origin string, covering map[proof.Checkpoint][]byte) (
	check verify.Check, err error,
) {
	if len(covering) == 0 {
		return verify.Skipped(checkEpoch, "the proofs of the receipt are not valid"), nil
	}
	chain, err := s.chain(ctx)
	i := slices.IndexFunc(chain, func(e epoch) bool { return e.tree.Origin == origin })
	if err == nil && i < 0 {
		err = fmt.Errorf("the log is %s, which does not replace %s", s.log.Origin, origin)
	}

	for c, signed := range covering {
		if err != nil {
			break
		}
		err = verify.Extends(c, chain[i].tree, chain[i].tiles)
		if _, ok := errors.AsType[*verify.Conflict](err); ok {
			check = verify.Failure(checkEpoch, "the log %s: %v", origin, err)
			check.Evidence, err = s.Memory.SaveEvidence(s.Now, origin, map[string][]byte{"receipt.checkpoint": signed})
			return check, err
		}
	}
	if fetch, ok := errors.AsType[*verify.FetchError](err); ok {
		return check, fetch
	}
	return verify.Result(checkEpoch, err, "%s has replaced the log, and commits to all events that the receipt rests on",
		s.log.Origin), nil
}

// opened returns the signed checkpoints to which the proofs of a receipt lead.
func opened(r verify.Receipt, key note.Verifier) map[proof.Checkpoint][]byte {
	list, err := r.Checkpoints()
	if err != nil {
		return nil // the receipt does not verify
	}
	known := make(map[proof.Checkpoint][]byte)
	for _, signed := range list {
		if c, err := proof.OpenCheckpoint(signed, key); err == nil {
			known[c] = signed
		}
	}
	return known
}

// receiptID says what a receipt is for.
func receiptID(r verify.Receipt) string {
	return fmt.Sprintf("%s/%s@%.12s %s", r.Says.Org, r.Says.Repo, r.Says.Commit, r.Says.State)
}

// Offline verifies a receipt as of a time, without a server: with the key of the log that the
// policy has, or that was seen before. It is an error if neither has it.
func Offline(o Options, r verify.Receipt, at ledger.Time) (verify.Report, error) {
	report := func(checks ...verify.Check) (verify.Report, error) {
		return verify.NewReport("receipt", receiptID(r), checks), nil
	}
	known, key, err := o.logKey(r.Says.Log.Origin)
	if another, ok := errors.AsType[*anotherKeyError](err); ok {
		return report(verify.Failure(verify.CheckConsistency, "%v", another))
	}
	if err != nil {
		return verify.Report{}, err
	}
	open, err := key.Verifier()
	if err != nil {
		return verify.Report{}, err
	}

	checks := r.Verify(open, at)
	if slices.ContainsFunc(checks, func(c verify.Check) bool { return c.Status == verify.Failed }) {
		return report(checks...)
	}
	covering, err := r.Checkpoints()
	if err != nil {
		return verify.Report{}, err
	}
	consistency, err := o.agree(known, covering, open)
	if err != nil {
		return verify.Report{}, err
	}
	s := &Session{Options: o, key: key}
	return report(slices.Concat(checks, []verify.Check{consistency}, s.witnesses(covering[0]))...)
}

// An anotherKeyError says that the policy has another key of a log than was seen before.
type anotherKeyError struct{ pinned, known, file string }

func (e *anotherKeyError) Error() string {
	return fmt.Sprintf("ANOTHER KEY: the policy has the key %s of the log, which had %s before "+
		"(if this is right, delete %s)", e.pinned, e.known, e.file)
}

// logKey returns the key of a log that the policy has, or that was seen before, and what was
// seen of the log.
func (o Options) logKey(origin string) (known seen.Log, key trustpolicy.Key, err error) {
	if known, err = o.Memory.Log(origin); err != nil {
		return known, key, err
	}
	vkey := known.Key
	if o.Policy != nil && len(o.Policy.Logs) > 0 { // then only these are trusted
		i := slices.IndexFunc(o.Policy.Logs, func(l trustpolicy.Log) bool { return l.Key.Name == origin })
		if i < 0 {
			return known, key, fmt.Errorf("the policy has no key of the log %s", origin)
		}
		if vkey = o.Policy.Logs[i].Key.String(); known.Key != "" && vkey != known.Key {
			return known, key, &anotherKeyError{vkey, known.Key, o.Memory.LogFile(origin)}
		}
	}
	if vkey == "" {
		return known, key, fmt.Errorf("the key of the log %s is not known: give it in --policy (or run the command "+
			"once with the server of the log, which names it)", origin)
	}
	key, err = trustpolicy.ParseKey(vkey, trustpolicy.LogTypes()...)
	return known, key, err
}

// agree compares the checkpoints of proofs with each other and with what was seen before, as
// far as that takes no tiles.
func (o Options) agree(known seen.Log, covering [][]byte, open note.Verifier) (check verify.Check, err error) {
	all := covering
	if known.Checkpoint != "" {
		all = append([][]byte{[]byte(known.Checkpoint)}, covering...)
	}

	list := make([]proof.Checkpoint, len(all))
	for i, signed := range all {
		if list[i], err = proof.OpenCheckpoint(signed, open); err != nil {
			return check, err
		}
		for j := range i {
			err := verify.Agree(list[j], list[i])
			if err == nil {
				continue
			}
			check = verify.Failure(verify.CheckConsistency, "%v", err)
			check.Evidence, err = o.Memory.SaveEvidence(o.Now, list[i].Origin, map[string][]byte{
				"seen.checkpoint": all[j], "served.checkpoint": signed,
			})
			return check, err
		}
	}
	return verify.Unasked(verify.CheckConsistency,
		"without the server, whether the newest checkpoint of the log extends this one is not known"), nil
}
