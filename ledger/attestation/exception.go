package attestation

import (
	"time"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// exceptionPrefix is the prefix of the predicates of exceptions, which the ledger reserves.
const exceptionPrefix = "exception:"

const (
	// maxReason is the maximum length of a reason, in characters.
	maxReason = 1000
	// maxException is the longest time from now to the end of an exception.
	maxException = 366 * 24 * time.Hour
)

// An Exception is the body of the predicate type for exceptions.
type Exception struct {
	// Repo is the repo that the exception is for, as org/name.
	Repo string `json:"repo"`
	// Requirement is the name of the requirement in the repo's contract.
	Requirement string `json:"requirement"`
	Reason      string `json:"reason"`
	// Until is when the exception ends. One that ends at once ends those before it.
	Until ledger.Time `json:"until"`
	// IssuedOn makes the statements of two exceptions differ that are otherwise equal.
	IssuedOn ledger.Time `json:"issuedOn,omitzero"`
}

// ExceptionPredicate returns the predicate of exceptions for a requirement.
func ExceptionPredicate(requirement string) string { return exceptionPrefix + requirement }

// check returns an error for the first invalid field.
func (x *Exception) check() error {
	switch {
	case x.Repo == "":
		return fault("repo", "required (use e.g. acme/api): an exception is for one repo")
	case !isRepo(x.Repo):
		return fault("repo", "%q is not a repo (use e.g. acme/api)", text.Clip(x.Repo))
	case x.Requirement == "":
		return fault("requirement", "required: the name of a requirement in the repo's policy")
	case !ledger.IsExcusable(x.Requirement):
		return fault("requirement", "%q is not the name of a requirement (use letters, digits and . _ -, at most %d bytes, "+
			"or rollback:ENV)", text.Clip(x.Requirement), ledger.MaxRequirementName)
	case x.Reason == "":
		return fault("reason", "required: say why the requirement need not be met")
	case x.Until == 0:
		return fault("until", "required: when the exception ends, an RFC 3339 time")
	}
	return checkReason("reason", x.Reason)
}

// checkReason validates the text of a reason in a field of a predicate.
func checkReason(field, reason string) error {
	if utf8.RuneCountInString(reason) > maxReason {
		return fault(field, "too long: at most %d characters", maxReason)
	}
	if err := identity.CheckVisible(reason); err != nil {
		return fault(field, "%v", err)
	}
	return nil
}

// fault returns an error about a field of the predicate.
func fault(field, format string, args ...any) error {
	return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate."+field, format, args...)
}

// checkEnd refuses an exception that ends too long after now.
func (x *Exception) checkEnd(now ledger.Time) error {
	if x.Until <= now.Add(maxException) {
		return nil
	}
	return ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.until",
		"%s is more than %d days from now, %s (use an earlier time)", x.Until, maxException/(24*time.Hour), now)
}
