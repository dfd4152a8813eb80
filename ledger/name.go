package ledger

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

var (
	orgName       = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,38}$`)
	deletedName   = regexp.MustCompile(`^~[0-9]{1,19}$`)
	repoName      = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	predicateName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`)
)

// CheckOrg returns an error if name is not a valid org name.
func CheckOrg(name string) error {
	if !orgName.MatchString(name) {
		return FieldErrorf(CodeInvalidField, "name",
			"%q is not an org name (use 1 to 39 of a-z, 0-9 and -, not - first)", name)
	}
	return nil
}

// CheckRepo returns an error if name is not a valid repo name.
func CheckRepo(name string) error {
	if !repoName.MatchString(name) || name == "." || name == ".." {
		return FieldErrorf(CodeInvalidField, "name",
			"%q is not a repo name (use 1 to 100 of A-Z, a-z, 0-9, dot, underscore and -)", name)
	}
	return nil
}

// DeletedName returns the name of a deleted org or repo, by its row id. No other can have it.
func DeletedName(id int64) string { return "~" + strconv.FormatInt(id, 10) }

// A FormerName is a name that an org or a repo had.
type FormerName struct {
	Name string `json:"name"`
	// Events is how many events the org had when it ended: those have the name, unless they have
	// an earlier one.
	Events int64 `json:"events"`
}

// NameAt returns the name that an org or a repo had at an event of the org, of which there were
// so many before. former has its former names, oldest first.
func NameAt(former []FormerName, present string, before int64) string {
	for _, f := range former {
		if before < f.Events {
			return f.Name
		}
	}
	return present
}

// IsDeletedName reports whether a name is one of a deleted org or repo.
func IsDeletedName(name string) bool { return deletedName.MatchString(name) }

// IsPredicateName reports whether s is a valid name for a predicate of the ledger's own
// predicate type, such as test:go. A URI is not valid: URIs name the predicates of
// other types, and must not be confused with ours.
func IsPredicateName(s string) bool {
	return predicateName.MatchString(s) && !strings.Contains(s, "://")
}

// MaxRequirementName is the maximum length of a requirement's name, in bytes.
const MaxRequirementName = 64

// IsRequirementName reports whether s is a valid name for a requirement of a contract.
func IsRequirementName(s string) bool {
	return len(s) <= MaxRequirementName && predicateName.MatchString(s) && !strings.ContainsAny(s, ":/")
}

// IsCommit reports whether s is a full object id: 40 (SHA-1) or 64 (SHA-256)
// lower-case hex digits.
func IsCommit(s string) bool { return text.IsObject(s) }

// IsCommitPrefix reports whether s is an object id or a prefix of one: 7 to 64
// lower-case hex digits.
func IsCommitPrefix(s string) bool { return len(s) >= 7 && len(s) <= 64 && text.IsHex(s) }

// ReviewPrefix begins the predicates of reviews.
const ReviewPrefix = "review:"

// rollbackPrefix begins the predicates of statements of the type RollbackType, and the
// requirements of exceptions that open a gate which a rollback has shut.
const rollbackPrefix = "rollback:"

// baselinePrefix begins the predicates of statements of the type BaselineType.
const baselinePrefix = "baseline:"

// changesPrefix begins the predicates of statements of the type ChangesType.
const changesPrefix = "changes:"

// ChangesType is the predicate type of change records: which paths the commits since another one change.
const ChangesType = "https://github.com/ledgerd/ledgerd/predicate/changes/v1"

// ChangesPredicate is the predicate of change records.
const ChangesPredicate = changesPrefix + "paths"

// ReservedPrefix returns the reserved prefix of a predicate name, or "". Only the ledger
// gives such names. Earlier releases have recorded results with those of IsReservedLater.
func ReservedPrefix(name string) string {
	for _, prefix := range []string{
		"signed:", "merge:", "exception:", rollbackPrefix, baselinePrefix, changesPrefix,
	} {
		if len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			return prefix
		}
	}
	return ""
}

// IsReservedLater reports whether a prefix is reserved in this release and was not in all before.
func IsReservedLater(prefix string) bool {
	return prefix == rollbackPrefix || prefix == baselinePrefix || prefix == changesPrefix
}

// Short returns the first 12 digits of a hash or of an id of git, for display.
func Short(id string) string { return id[:min(len(id), 12)] }

// ShortSlot shortens the slot of an attestation, for display: the algorithm and the first
// 12 digits of its digest, those of the ID of a commit, or the beginning of a name.
func ShortSlot(slot string) string {
	algorithm, digest, ok := strings.Cut(slot, ":")
	switch {
	case !ok && IsCommit(slot):
		return Short(slot)
	case !ok:
		return slot[:min(len(slot), 40)] // it is ASCII
	}
	return algorithm + ":" + Short(digest)
}
