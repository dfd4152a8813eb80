package attestation

import (
	"strings"

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
	StartedOn  ledger.Time `json:"startedOn,omitzero"`
	FinishedOn ledger.Time `json:"finishedOn,omitzero"`
	// Rollout is ledger.RolloutFailed in the statement of a deployment that failed, and has changed
	// nothing of what runs. Without it, a failure is a rollback.
	Rollout string `json:"rollout,omitzero"`
	// Again is why a commit is deployed to an environment from which it was rolled back.
	Again string `json:"again,omitzero"`
	// Base is the commit since which the changes were reviewed. Without it, a review is about the commit alone.
	Base        string            `json:"base,omitzero"`
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
		Rollout     string       `json:"rollout"`
		Again       string       `json:"again"`
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
	b := body{predicate: p.Predicate, result: result, repo: p.Repo, finishedAt: p.FinishedOn.time()}
	if _, ok := ledger.EnvironmentOf(p.Predicate); ok {
		if err := checkRollout(p.Rollout, p.Again, result.Status); err != nil {
			return body{}, err
		}
		b.again = p.Again
		if p.Rollout != "" {
			b.result.Status = ledger.Recorded // it is no outcome of what runs
		}
	}
	return b, nil
}

// checkRollout validates what the statement of a deployment says of it besides its result.
func checkRollout(rollout, again string, status ledger.Status) error {
	switch {
	case rollout != "" && rollout != ledger.RolloutFailed:
		return fault("rollout", "%q is not known (use %s, or leave it out)", text.Clip(rollout), ledger.RolloutFailed)
	case rollout != "" && !status.IsFailure():
		return fault("rollout", "%s contradicts the status %s (use fail or error)", rollout, status)
	case again == "":
		return nil
	case status != ledger.Pass:
		return fault("again", "only for a deployment with the status pass: this is %s", status)
	}
	return checkReason("again", again)
}

// checkBase validates the base of a statement about a commit.
func checkBase(base, predicate, commit string) error {
	fault := func(format string, args ...any) error {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.base", format, args...)
	}
	switch {
	case !strings.HasPrefix(predicate, ledger.ReviewPrefix):
		return fault("only for a review: this is %s", text.Clip(predicate))
	case !ledger.IsCommit(base):
		return fault("%q is not a full object ID (use 40 or 64 lower-case hex digits)", text.Clip(base))
	case len(base) != len(commit):
		return fault("is of another hash function than the commit")
	case base == commit:
		return fault("is the commit itself")
	}
	return nil
}

// insteadOf says what to do instead of using a reserved prefix.
func insteadOf(prefix string) string {
	switch prefix {
	case mergePrefix:
		return "use another name; to claim a merge, use ledgerd attest --squash-of or --merge-of"
	case exceptionPrefix:
		return "use another name; to grant an exception, use ledgerd exception grant"
	case ledger.RollbackPredicate(""):
		return "use another name; to roll a commit back, use ledgerd rollback"
	case ledger.BaselinePredicate(""):
		return "use another name; to say what runs in an environment already, use ledgerd environment baseline"
	case "changes:":
		return "use another name; to say which paths commits change, use ledgerd commit register --key"
	}
	return "use another name"
}

// checkReserved refuses the name of a result that is reserved.
func checkReserved(predicate string) error {
	prefix := ledger.ReservedPrefix(predicate)
	if prefix == "" {
		return nil
	}
	return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.predicate",
		"%q begins with %s, which is reserved (%s)", text.Clip(predicate), prefix, insteadOf(prefix))
}

// checkResult validates a predicate of the ledger's own type.
func checkResult(predicate, repo string, r ledger.Result) error {
	if !ledger.IsPredicateName(predicate) {
		return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.predicate",
			"%q is not a predicate name (use e.g. test:go)", text.Clip(predicate))
	}
	if !ledger.IsReservedLater(ledger.ReservedPrefix(predicate)) { // see CheckNew
		if err := checkReserved(predicate); err != nil {
			return err
		}
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

const (
	// SignedCommitPredicate is the predicate of the SSH signature in a commit object. Only
	// the ledger gives it.
	SignedCommitPredicate = "signed:commit"
	// SignedCommitType is its predicate type. No statement may have it.
	SignedCommitType = "https://github.com/ledgerd/ledgerd/predicate/signed-commit/v1"
)

// IsCommitObject reports whether an envelope is a commit object, as that of an attestation
// that OfCommit returned. All others are JSON.
func IsCommitObject(envelope []byte) bool {
	const start = "tree "
	return len(envelope) > len(start) && string(envelope[:len(start)]) == start
}

// refuseSignedCommit refuses statements of SignedCommitType.
func refuseSignedCommit([]byte) (body, error) {
	return body{}, ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicateType",
		"only the SSH signature in a commit object gives %s (register the commit with its object)", SignedCommitPredicate)
}
