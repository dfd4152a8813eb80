package attestation

import (
	"fmt"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A ResultPredicate is the body of the ledger's own predicate type.
type ResultPredicate struct {
	Predicate string        `json:"predicate"`
	Result    ledger.Result `json:"result"`
	// StartedOn and FinishedOn make the statements of two runs differ.
	StartedOn   ledger.Time       `json:"startedOn,omitzero"`
	FinishedOn  ledger.Time       `json:"finishedOn,omitzero"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// A body is the content of a predicate.
type body struct {
	predicate string
	result    ledger.Result
	sources   resources // of provenance: the dependencies
}

// resources is a list of resources in a statement, and its path.
type resources struct {
	path string
	list []resourceJSON
}

// parsePredicate parses the predicate according to its type.
func (d *statementJSON) parsePredicate(predicate []byte) (body, error) {
	switch {
	case d.PredicateType == ResultPredicateType:
		return parseResult(predicate)
	case strings.HasPrefix(d.PredicateType, testResultType):
		return d.parseTestResult(predicate)
	case strings.HasPrefix(d.PredicateType, verificationType):
		return d.parseVerification(predicate)
	case strings.HasPrefix(d.PredicateType, provenanceType):
		return d.parseProvenance(predicate)
	}
	return body{predicate: d.PredicateType, result: ledger.Result{Status: ledger.Pass}}, nil
}

func parseResult(predicate []byte) (body, error) {
	var p struct {
		Predicate string        `json:"predicate"`
		Result    ledger.Result `json:"result"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}
	if err := checkResult(p.Predicate, p.Result); err != nil {
		return body{}, err
	}
	return body{predicate: p.Predicate, result: p.Result}, nil
}

func checkResult(predicate string, r ledger.Result) error {
	if !ledger.IsPredicateName(predicate) {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.predicate",
			"%q is not a predicate name (use e.g. test:go)", text.Clip(predicate))
	}
	switch r.Status {
	case ledger.Pass, ledger.Warn, ledger.Fail, ledger.Errored, ledger.Skip:
	default:
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.result.status",
			"%q is not a status (use pass, warn, fail, error or skip)", text.Clip(string(r.Status)))
	}
	if r.DurationMS < 0 || r.DurationMS > maxDurationMS {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.result.duration_ms",
			"%d is out of range (use 0 to %d, one year)", r.DurationMS, int64(maxDurationMS))
	}
	return nil
}

func (d *statementJSON) parseTestResult(predicate []byte) (body, error) {
	var p struct {
		Result string `json:"result"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}
	statuses := map[string]ledger.Status{"PASSED": ledger.Pass, "WARNED": ledger.Warn, "FAILED": ledger.Fail}
	status, ok := statuses[p.Result]
	if !ok {
		return body{}, ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.result",
			"%q is not a test result (use PASSED, WARNED or FAILED)", text.Clip(p.Result))
	}
	return body{predicate: d.PredicateType, result: ledger.Result{Status: status}}, nil
}

func (d *statementJSON) parseVerification(predicate []byte) (body, error) {
	var p struct {
		Result string `json:"verificationResult"`
		Old    string `json:"verification_result"` // before v1
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}
	if p.Result == "" {
		p.Result = p.Old
	}
	statuses := map[string]ledger.Status{"PASSED": ledger.Pass, "FAILED": ledger.Fail}
	status, ok := statuses[p.Result]
	if !ok {
		return body{}, ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.verificationResult",
			"%q is not a verification result (use PASSED or FAILED)", text.Clip(p.Result))
	}
	return body{predicate: d.PredicateType, result: ledger.Result{Status: status}}, nil
}

// A provenanceJSON is SLSA provenance of v1, or of a version before it.
type provenanceJSON struct {
	BuildDefinition struct {
		ResolvedDependencies []resourceJSON `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Metadata struct {
			StartedOn  moment `json:"startedOn"`
			FinishedOn moment `json:"finishedOn"`
		} `json:"metadata"`
	} `json:"runDetails"`
	Materials []resourceJSON `json:"materials"`
	Metadata  struct {
		BuildStartedOn  moment `json:"buildStartedOn"`
		BuildFinishedOn moment `json:"buildFinishedOn"`
	} `json:"metadata"`
}

func (d *statementJSON) parseProvenance(predicate []byte) (body, error) {
	var p provenanceJSON
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}
	b := body{predicate: d.PredicateType, result: ledger.Result{Status: ledger.Pass}}

	b.sources = resources{"predicate.buildDefinition.resolvedDependencies", p.BuildDefinition.ResolvedDependencies}
	from, to := p.RunDetails.Metadata.StartedOn, p.RunDetails.Metadata.FinishedOn
	if strings.HasPrefix(d.PredicateType, provenanceType+"0.") {
		b.sources = resources{"predicate.materials", p.Materials}
		from, to = p.Metadata.BuildStartedOn, p.Metadata.BuildFinishedOn
	}
	if !from.at.IsZero() && !to.at.IsZero() {
		b.result.DurationMS = min(max(to.at.Sub(from.at).Milliseconds(), 0), maxDurationMS)
	}
	return b, nil
}

func decodePredicate(predicate []byte, v any) error {
	if len(predicate) == 0 || predicate[0] != '{' {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate", "must be a JSON object")
	}
	return decodeStatement(predicate, v, "predicate")
}

// A moment is a time in provenance. An empty text means none.
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

// The foreign predicate types whose results are parsed, without their versions. A future
// version may be refused for a missing member, which is better than counting as a pass.
const (
	testResultType   = "https://in-toto.io/attestation/test-result/v"
	verificationType = "https://slsa.dev/verification_summary/v"
	provenanceType   = "https://slsa.dev/provenance/v"
)

// maxDurationMS is a year. A longer duration is an error of measurement.
const maxDurationMS = 365 * 24 * 60 * 60 * 1000
