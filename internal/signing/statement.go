package signing

import (
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// NewStatement returns a statement of ledgerd's own type with the result of a command. The
// annotations have the form key=value.
func NewStatement(
	repo, commit, name string, annotations []string, status ledger.Status, started, finished time.Time,
) ([]byte, error) {
	predicate := attestation.ResultPredicate{
		Predicate:  name,
		Result:     ledger.Result{Status: status, DurationMS: finished.Sub(started).Milliseconds()},
		Repo:       repo,
		StartedOn:  ledger.TimeOf(started),
		FinishedOn: ledger.TimeOf(finished),
	}
	for _, annotation := range annotations {
		if predicate.Annotations == nil {
			predicate.Annotations = make(map[string]string)
		}
		key, value, _ := strings.Cut(annotation, "=")
		predicate.Annotations[key] = value
	}
	return attestation.NewStatement(repo, commit, predicate)
}
