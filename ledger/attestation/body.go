package attestation

import (
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A body is the content of a predicate.
type body struct {
	predicate  string // without one, the predicate type is the name
	slot       string // of a merge: its source
	result     ledger.Result
	finishedAt ledger.Time
	repo       string    // the repo that it is for, if it says so
	sources    resources // of provenance: the dependencies
	source     string    // of provenance: the URI of the repo that was built
	config     resources // of provenance by Tekton: the dependencies that say what to run
	exception  Exception // of an exception: what it says
	verified   []string  // of verification summaries: the URIs of what was verified
	merge      *Merge    // of a merge: what it claims
	rollback   *Rollback // of a rollback: what it says
	baseline   *Baseline // of a baseline: what it says
	changes    *Changes  // of a change record: what it says
	again      string    // of a deployment: why the commit is deployed although it was rolled back
}

// An actorJSON is a builder or a verifier.
type actorJSON struct {
	ID    string       `json:"id"`
	Other otherMembers `json:",embed"`
}

// statusOf returns the status for the result that a statement states in the given field.
func statusOf(field, result string, statuses map[string]ledger.Status, what, use string) (ledger.Status, error) {
	status, ok := statuses[result]
	if !ok {
		return "", ledger.FieldErrorf(ledger.CodeInvalidStatement, field, "%q is not a %s (use %s)",
			text.Clip(result), what, use)
	}
	return status, nil
}

func decodePredicate(predicate []byte, v any) error {
	if !isObject(predicate) {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate", "must be a JSON object")
	}
	return decodeStatement(predicate, v, "predicate")
}

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// A moment is a time in a predicate. An empty text means none.
type moment struct{ at time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *moment) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return fmt.Errorf("%q is not an RFC 3339 time", text.Clip(string(b)))
	}
	m.at = t
	return nil
}

func (m moment) time() ledger.Time {
	if m.at.IsZero() {
		return 0
	}
	return ledger.TimeOf(m.at)
}

// durationMS returns the milliseconds between two times, or 0 if one is missing.
func durationMS(from, to moment) int64 {
	if from.at.IsZero() || to.at.IsZero() {
		return 0
	}
	return min(max(to.at.Sub(from.at).Milliseconds(), 0), maxDurationMS)
}

// maxDurationMS is a year. A longer duration is an error of measurement.
const maxDurationMS = 365 * 24 * 60 * 60 * 1000
