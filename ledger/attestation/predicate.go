package attestation

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A ResultPredicate is the body of the ledger's own predicate type.
type ResultPredicate struct {
	Predicate string        `json:"predicate"`
	Result    ledger.Result `json:"result"`
	// Repo is the repo that the statement is for, as org/name. Another repo refuses it.
	Repo string `json:"repo,omitzero"`
	// StartedOn and FinishedOn make the statements of two runs differ.
	StartedOn   ledger.Time       `json:"startedOn,omitzero"`
	FinishedOn  ledger.Time       `json:"finishedOn,omitzero"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func parseResult(predicate []byte) (body, error) {
	var p struct {
		Predicate string `json:"predicate"`
		Result    struct {
			Status     ledger.Status `json:"status"`
			DurationMS int64         `json:"duration_ms"`
			Other      otherMembers  `json:",embed"`
		} `json:"result"`
		Repo        string       `json:"repo"`
		StartedOn   moment       `json:"startedOn"`
		FinishedOn  moment       `json:"finishedOn"`
		Annotations skipped      `json:"annotations"` // known, so that few statements have others
		Other       otherMembers `json:",embed"`
	}
	if err := decodePredicate(predicate, &p); err != nil {
		return body{}, err
	}

	result := ledger.Result{Status: p.Result.Status, DurationMS: p.Result.DurationMS}
	if err := checkResult(p.Predicate, p.Repo, result); err != nil {
		return body{}, err
	}
	return body{predicate: p.Predicate, result: result, repo: p.Repo, finishedAt: p.FinishedOn.time()}, nil
}

// insteadOf says what to do instead of using a reserved prefix.
func insteadOf(prefix string) string {
	switch prefix {
	case mergePrefix:
		return "use another name; to claim a merge, use ledgerd attest --squash-of or --merge-of"
	case exceptionPrefix:
		return "use another name; to grant an exception, use ledgerd exception grant"
	}
	return "use another name"
}

// checkResult validates a predicate of the ledger's own type.
func checkResult(predicate, repo string, r ledger.Result) error {
	if !ledger.IsPredicateName(predicate) {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.predicate",
			"%q is not a predicate name (use e.g. test:go)", text.Clip(predicate))
	}
	if prefix := ledger.ReservedPrefix(predicate); prefix != "" {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.predicate",
			"%q begins with %s, which is reserved (%s)", text.Clip(predicate), prefix, insteadOf(prefix))
	}
	if repo != "" && !isRepo(repo) {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.repo",
			"%q is not a repo (use e.g. acme/api)", text.Clip(repo))
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
