package signing

import (
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// A Run is a command that was run, or is said to have been.
type Run struct {
	// Predicate names what it has shown, such as test:go.
	Predicate         string
	Annotations       []string // key=value
	Status            ledger.Status
	Started, Finished time.Time
	// IsAttempt reports whether a deployment that failed has changed nothing.
	IsAttempt bool
	// Again is why a commit is deployed that was rolled back.
	Again string
	// Base is the commit since which the changes were reviewed.
	Base string
	// Artifacts are linked with the commit.
	Artifacts []attestation.Artifact
}

// NewStatement returns a statement of ledgerd's own type about a run on a commit.
func NewStatement(repo, commit string, r Run) ([]byte, error) {
	predicate := attestation.ResultPredicate{
		Predicate:  r.Predicate,
		Result:     ledger.Result{Status: r.Status, DurationMS: r.Finished.Sub(r.Started).Milliseconds()},
		Repo:       repo,
		StartedOn:  ledger.TimeOf(r.Started),
		FinishedOn: ledger.TimeOf(r.Finished),
		Again:      r.Again,
		Base:       r.Base,
	}
	if r.IsAttempt {
		predicate.Rollout = ledger.RolloutFailed
	}
	for _, annotation := range r.Annotations {
		if predicate.Annotations == nil {
			predicate.Annotations = make(map[string]string)
		}
		key, value, _ := strings.Cut(annotation, "=")
		predicate.Annotations[key] = value
	}
	return attestation.NewStatement(repo, commit, predicate, r.Artifacts...)
}
