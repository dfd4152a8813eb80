package policy

import (
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// Evidence is what a derivation knows of one attestation: the latest of its
// signer for its predicate.
type Evidence struct {
	Attestation string // its id
	Predicate   string
	Signer      identity.DN
	Emails      []string
	Status      ledger.Status
	RecordedAt  ledger.Time
	// WhilePromotable tells that the commit was PROMOTABLE when it was
	// recorded, without which it cannot count for DEPLOYED.
	WhilePromotable bool
}

// Facts is what a derivation knows of a commit.
type Facts struct {
	Author ledger.Author
	// Branch is that of which the commit was registered.
	Branch string
	// Target is the branch that the commit is meant for.
	Target string
	// Changes are the changed paths, old ones too; they count only where
	// HasChanges says that the commit came with a change record.
	Changes    []string
	HasChanges bool
	// Evidence holds the latest attestation of each predicate and identity.
	Evidence []Evidence
	// Attested tells that anything was ever recorded.
	Attested bool
	// Deployed tells that the commit is DEPLOYED and was not rolled back.
	Deployed bool
	// Overlaps are the commit's open overlaps with those registered before it.
	// They count only if RadarSettings.Blocks.
	Overlaps []OpenOverlap
}

// An OpenOverlap is what a derivation knows of an overlap of the commit with one
// registered before it.
type OpenOverlap struct {
	Level radar.Level
	// Commit and Branch are those of the other side.
	Commit string
	Branch string
	// Path is the strongest path, and Reason why the two overlap there.
	Path   string
	Reason radar.Reason
	// Until is when it ends by the age of its commits; zero for never.
	Until ledger.Time
}

// String names the level, the other branch (or commit, if it has none), the
// path and the reason.
func (o OpenOverlap) String() string {
	var b strings.Builder
	b.WriteString(o.Level.String() + " with ")
	if o.Branch != "" {
		b.WriteString(o.Branch)
	} else {
		b.WriteString(o.Commit[:min(len(o.Commit), shortSHA)])
	}
	if o.Path != "" {
		b.WriteString(" at " + o.Path)
	}
	if o.Reason != "" {
		b.WriteString(" (" + strings.ReplaceAll(string(o.Reason), "_", " ") + ")")
	}
	return b.String()
}

// shortSHA is the number of digits to which a commit's SHA is shortened.
const shortSHA = 12
