package verify

import (
	"crypto/ecdsa"
	"fmt"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
)

// The names of the checks of a receipt.
const (
	CheckKey      = "key"
	CheckValidity = "validity"
	CheckSubject  = "subject"
)

// MaxReceipt is the maximum length of a file with a receipt, in bytes.
const MaxReceipt = 8 << 20

// A Receipt is a receipt with its proofs, and what it must be for.
type Receipt struct {
	ledger.Receipt
	// Says is what the receipt says, before anything is verified.
	Says receipt.Receipt
	// Want is what it must be for. What is empty may be anything.
	Want receipt.Want
	// Key is the only key of receipts that is trusted; nil for all that the log announces.
	Key *ecdsa.PublicKey
}

// ParseReceipt parses a file with a receipt, as 'ledgerd receipt' writes it.
func ParseReceipt(text []byte) (r Receipt, err error) {
	if len(text) > MaxReceipt {
		return r, fmt.Errorf("the file has more than %d bytes", MaxReceipt)
	}
	if err := json.Unmarshal(text, &r.Receipt, json.RejectUnknownMembers(true)); err != nil {
		return r, fmt.Errorf("parse receipt: %w", err)
	}
	r.Says, err = receipt.Read(r.Envelope)
	return r, err
}

// Checkpoints returns the signed checkpoints to which the proofs of the receipt lead.
func (r Receipt) Checkpoints() (signed [][]byte, err error) {
	for _, text := range []string{r.Proof, r.Receipt.Key.Proof} {
		p, err := proof.ParseInclusion([]byte(text))
		if err != nil {
			return nil, err
		}
		signed = append(signed, p.Checkpoint)
	}
	return signed, nil
}

// Verify verifies the receipt with the key of the log, at a time.
func (r Receipt) Verify(log note.Verifier, now ledger.Time) (checks []Check) {
	want, isComplete := r.want()
	v, passed, err := receipt.Examine(r.Receipt, receipt.Trust{Logs: []note.Verifier{log}, Key: r.Key}, want, now)
	for step := receipt.SignatureStep; step < receipt.Steps; step++ {
		switch {
		case step < passed:
			checks = append(checks, r.passed(step, v, isComplete, log)...)
		case step == passed:
			checks = append(checks, Failure(nameOf(step), "%v", err))
		default:
			checks = append(checks, Skipped(nameOf(step), "the check %s has failed", nameOf(passed)))
		}
	}
	return checks
}

// want returns what the receipt must be for. If a part of it may be anything, it is what the
// receipt says. It reports whether org, repo, commit and state are wanted.
func (r Receipt) want() (want receipt.Want, isComplete bool) {
	want = r.Want
	isComplete = want.Org != "" && want.Repo != "" && want.Commit != "" && want.State != ledger.Draft
	if want.Org == "" {
		want.Org = r.Says.Org
	}
	if want.Repo == "" {
		want.Repo = r.Says.Repo
	}
	if want.Commit == "" {
		want.Commit = r.Says.Commit
	}
	if want.State == ledger.Draft {
		want.State = r.Says.State
	}
	if !isComplete && want.Target == "" {
		want.Target = r.Says.Target
	}
	return want, isComplete
}

func nameOf(step receipt.Step) string {
	return [receipt.Steps]string{CheckSignature, CheckKey, CheckInclusion, CheckValidity, CheckSubject}[step]
}

// passed returns the checks of a step that has passed.
func (r Receipt) passed(step receipt.Step, v receipt.Verified, isComplete bool, log note.Verifier) []Check {
	switch step {
	case receipt.SignatureStep:
		id, err := identity.Fingerprint(r.publicKey())
		return []Check{Result(CheckSignature, err, "by the key %.16s", id)}
	case receipt.KeyStep:
		source := "the log announces it"
		if r.Key != nil {
			source = "pinned, and the log announces it"
		}
		return []Check{Passed(CheckKey, "%s for receipts of %s from %s %s", source, v.Key.Org, v.Key.NotBefore,
			until(v.Key.NotAfter))}
	case receipt.LogStep:
		c := v.Checkpoint
		return []Check{
			Passed(CheckInclusion, "event %d of %d in the log, %s, is the newest that it rests on", v.Log.Index+1, c.Size,
				v.Log.Event),
			Passed(CheckCheckpoint, "%d events of %s, signed by its key %s", c.Size, c.Origin, KeyID(log)),
		}
	case receipt.ValidityStep:
		return []Check{Passed(CheckValidity, "from %s until %s; it does not say what has changed since",
			v.CreatedAt, v.ValidUntil)}
	}

	text := fmt.Sprintf("%s/%s@%s had reached %s by version %d of the policy, %s, with %d pieces of evidence",
		v.Org, v.Repo, v.Commit, v.State, v.PolicyVersion, v.PolicyDigest, len(v.Evidence)+v.Omitted)
	if v.Target != "" {
		text += " for the target branch " + v.Target
	}
	if !isComplete {
		return []Check{Unasked(CheckSubject, "%s: compare it with what you want (--repo, --commit and --state do)", text)}
	}
	return []Check{Passed(CheckSubject, "%s", text)}
}

// publicKey returns the key that comes with the receipt, which is valid.
func (r Receipt) publicKey() *ecdsa.PublicKey {
	key, _ := receipt.ParsePublicKey([]byte(r.Receipt.Key.PublicKey))
	return key
}

func until(end ledger.Time) string {
	if end == 0 {
		return "without an end"
	}
	return "until " + end.String()
}

// Agree returns a *Conflict if two checkpoints of a log have the same size and other roots. It
// needs no tiles, so it says nothing about checkpoints of other sizes.
func Agree(seen, served proof.Checkpoint) error {
	if seen.Origin == served.Origin && seen.Size == served.Size && seen.Root != served.Root {
		return &Conflict{Fork, seen, served}
	}
	return nil
}
