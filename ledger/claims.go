package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// What registrations claim of a commit is not signed, so it can only make the policy
// stricter: every claim is added to those before. These are the limits.
const (
	maxTargets     = 100
	maxWriters     = 200
	maxSigningKeys = 10
)

// AddTarget returns the targets ever claimed for a commit, oldest first, with one more.
func AddTarget(claimed []string, target string) ([]string, error) {
	if target == "" || slices.Contains(claimed, target) {
		return claimed, nil
	}
	if len(claimed) >= maxTargets {
		return claimed, FieldErrorf(CodeInvalidField, "target",
			"the commit already has %d targets (an admin can correct them)", maxTargets)
	}
	return append(slices.Clip(claimed), target), nil
}

// AddWriters returns everybody who was ever claimed to have written a commit with its
// author, oldest first, with the committer and the co-authors of a registration.
func AddWriters(writers []Author, n Registration) ([]Author, error) {
	writers = slices.Clip(writers)
	claimed := CoAuthors(n.Message)
	if n.Committer != (Author{}) {
		claimed = slices.Insert(claimed, 0, n.Committer)
	}
	for _, w := range claimed {
		if w == n.Author || slices.Contains(writers, w) {
			continue
		}
		if len(writers) >= maxWriters {
			return writers, FieldErrorf(CodeInvalidField, "message",
				"the commit would have more than %d committers and co-authors", maxWriters)
		}
		writers = append(writers, w)
	}
	return writers, nil
}

// AddSigningKey returns the fingerprints of the keys ever claimed to have signed a commit, oldest first, with one more.
func AddSigningKey(keys []string, key string) ([]string, error) {
	if key == "" || slices.Contains(keys, key) {
		return keys, nil
	}
	if len(keys) >= maxSigningKeys {
		return keys, FieldErrorf(CodeInvalidField, "signing_key", "the commit already has %d signing keys", maxSigningKeys)
	}
	return append(slices.Clip(keys), key), nil
}

// The limits of what a record shows of corrections.
const (
	// MaxCorrections is the maximum number of corrections in a commit's record.
	MaxCorrections = 100
	// MaxCorrected is the maximum length in bytes of the values in a Correction.
	MaxCorrected = 1000
)

// A CommitCorrection replaces what registrations have claimed of a commit. A member that is nil replaces nothing.
type CommitCorrection struct {
	// Targets replaces all targets. The last one is the newest, which the radar uses. If
	// the list is empty, the commit is meant for the default branch.
	Targets *[]string
	// Changes replaces all change records. A nil list forgets them, so that the commit may have changed any path.
	Changes *[]radar.Change
}

// Check returns a field error for the first invalid field.
func (c CommitCorrection) Check() error {
	if c.Targets == nil && c.Changes == nil {
		return FieldErrorf(CodeInvalidField, "targets", "is required, or changes: there is nothing to correct")
	}
	if c.Targets != nil {
		if err := checkTargets(*c.Targets); err != nil {
			return err
		}
	}
	if c.Changes != nil {
		return checkChanges(*c.Changes)
	}
	return nil
}

func checkTargets(targets []string) error {
	if len(targets) > maxTargets {
		return FieldErrorf(CodeInvalidField, "targets", "too many: %d entries, at most %d", len(targets), maxTargets)
	}
	for i, target := range targets {
		field := text.Entry("targets", i)
		switch {
		case target == "":
			return FieldErrorf(CodeInvalidField, field, "is empty (name a branch)")
		case slices.Contains(targets[:i], target):
			return FieldErrorf(CodeInvalidField, field, "%q is listed twice", text.Clip(target))
		}
		if err := checkRef(field, target); err != nil {
			return err
		}
	}
	return nil
}

// ParseBranch returns name if it is the name of a branch.
func ParseBranch(name string) (string, error) {
	if name == "" || !isRef(name) {
		return "", fmt.Errorf("%q is not a branch name (see git check-ref-format)", text.Clip(name))
	}
	return name, nil
}

// ByObject is the name in a Correction of what the commit object has corrected.
const ByObject = "commit object"

// A Correction is what an administrator or the commit object has corrected in a commit.
type Correction struct {
	At Time `json:"at"`
	// By is the name of the administrator's token, or ByObject.
	By string `json:"by"`
	// Field is targets or changes. If the commit object has corrected it, it is author,
	// writers, parents, message, committed_at or signing_keys.
	Field string `json:"field"`
	// Before and After are the values, cut to MaxCorrected bytes: branches, paths, people or
	// ids, separated by commas. No change record is "all paths".
	Before string `json:"before"`
	After  string `json:"after"`
}

// CorrectedText returns a list as a Correction has it.
func CorrectedText(list []string) string {
	s := strings.Join(list, ", ")
	if len(s) <= MaxCorrected {
		return s
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(s[:MaxCorrected-len(ellipsis)], "") + ellipsis
}

// MaxMergeClaims is the maximum number of claims of merges of one commit: one of each person about each source.
const MaxMergeClaims = 16

// A MergeClaim is a signed claim that a commit is a clean merge of a commit of the mainline, the parent, with another
// commit, the source.
type MergeClaim struct {
	Source string `json:"source"`
	// Parent is empty if the claim is of an early release.
	Parent string `json:"parent,omitzero"`
	// Kind is merge, squash, update or rebase.
	Kind        string `json:"kind"`
	Attestation string `json:"attestation"`
	Identity    string `json:"identity"`
	RecordedAt  Time   `json:"recorded_at"`
	// ParentState is the standing of the parent, or DRAFT if Reason is set. Of a claim of an early release, it is the
	// state that the first parent had when the claim was recorded, up to which evidence about the source carries.
	ParentState State `json:"parent_state"`
	// Reason is why nothing carries. It is empty if what the parent meets decides.
	Reason string `json:"reason,omitzero"`
}
