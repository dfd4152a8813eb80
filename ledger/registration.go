package ledger

import (
	"cmp"
	"strings"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// The limits of a registration.
const (
	maxParents   = 64
	maxAncestors = 500
	maxContained = 10_000
	maxRefLen    = 255
	maxMessage   = 64 << 10
)

// A Registration is what a client reports about a commit. All fields are optional. A
// later registration of the same commit replaces the fields that it sets. Only the author
// cannot change, and policies go on using all targets, changed paths, committers,
// co-authors and signing keys that were ever claimed.
type Registration struct {
	Branch string `json:"branch,omitzero"`
	// Target is the branch that the commit is meant for. If empty, it is the repo's
	// default branch.
	Target string `json:"target,omitzero"`
	// Base is the merge base with the mainline. Changes are relative to it.
	Base    string   `json:"base,omitzero"`
	Parents []string `json:"parents,omitempty"`
	// Ancestors are the commits after Base up to this one, at most 500.
	Ancestors []string `json:"ancestors,omitempty"`
	// Contained are the tips in flight that Base already contains.
	Contained   []string `json:"contained,omitempty"`
	Author      Author   `json:"author,omitzero"`
	Committer   Author   `json:"committer,omitzero"`
	Message     string   `json:"message,omitzero"`
	CommittedAt Time     `json:"committed_at,omitzero"`
	// SigningKey is the fingerprint of the SSH key that signed the commit object: the hex
	// SHA-256 of its SubjectPublicKeyInfo, as identities have it.
	SigningKey string `json:"signing_key,omitzero"`
	// Object is the raw commit object, as git cat-file commit prints it: its hash is the
	// commit's id. If given, tree, parents, author, committer, message and time are taken
	// from it.
	Object []byte `json:"object,omitzero"`
	// Changes is the change record; nil means no change record.
	Changes []radar.Change `json:"changes,omitzero"`
}

// Check returns a field error for the first invalid field.
func (r Registration) Check() error {
	return cmp.Or(
		checkRef("branch", r.Branch),
		checkRef("target", r.Target),
		checkObject("base", r.Base),
		checkObjects("parents", r.Parents, maxParents),
		checkObjects("ancestors", r.Ancestors, maxAncestors),
		checkObjects("contained", r.Contained, maxContained),
		checkAuthor("author.name", r.Author.Name),
		checkAuthor("author.email", r.Author.Email),
		checkAuthor("committer.name", r.Committer.Name),
		checkAuthor("committer.email", r.Committer.Email),
		checkMessage(r.Message),
		checkCoAuthors(r.Message),
		checkFingerprint("signing_key", r.SigningKey),
		checkChanges(r.Changes),
	)
}

func checkChanges(changes []radar.Change) error {
	if field, fault := radar.CheckChanges(changes); fault != "" {
		return FieldErrorf(CodeInvalidField, "changes"+field, "%s", fault)
	}
	return nil
}

// checkRef accepts what git check-ref-format --branch accepts, and the empty name.
func checkRef(field, name string) error {
	if name == "" || isRef(name) {
		return nil
	}
	return FieldErrorf(CodeInvalidField, field, "%q is not a branch name of at most %d bytes (see git check-ref-format)",
		text.Clip(name), maxRefLen)
}

func isRef(name string) bool {
	if len(name) > maxRefLen || name == "@" || name == "HEAD" || name[0] == '-' || strings.HasSuffix(name, ".") {
		return false
	}
	if strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.ContainsFunc(name, notInRef) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

func notInRef(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(" ~^:?*[\\", r) }

func checkObject(field, id string) error {
	if id == "" || IsCommit(id) {
		return nil
	}
	return FieldErrorf(CodeInvalidField, field, notObject, text.Clip(id))
}

const notObject = "%q is not a full object ID (use 40 or 64 lower-case hex digits)"

func checkObjects(field string, ids []string, limit int) error {
	if len(ids) > limit {
		return FieldErrorf(CodeInvalidField, field, "too many: %d entries, at most %d", len(ids), limit)
	}
	for i, id := range ids {
		if !IsCommit(id) {
			return FieldErrorf(CodeInvalidField, text.Entry(field, i), notObject, text.Clip(id))
		}
	}
	return nil
}

func checkMessage(s string) error {
	if len(s) > maxMessage {
		return FieldErrorf(CodeInvalidField, "message", "too long: %d bytes, at most %d", len(s), maxMessage)
	}
	if strings.ContainsRune(s, 0) {
		return FieldErrorf(CodeInvalidField, "message", "contains a NUL character")
	}
	return nil
}

// checkCoAuthors returns an error if a commit message names too many co-authors, or one
// whose name is too long.
func checkCoAuthors(message string) error {
	list := CoAuthors(message)
	if len(list) > MaxCoAuthors {
		return FieldErrorf(CodeInvalidField, "message", "names more than %d co-authors", MaxCoAuthors)
	}
	for _, a := range list {
		if err := checkAuthor("message", a.Name); err != nil {
			return err
		}
		if err := checkAuthor("message", a.Email); err != nil {
			return err
		}
	}
	return nil
}

// fingerprintDigits is the length of a hex SHA-256.
const fingerprintDigits = 64

func checkFingerprint(field, s string) error {
	if s == "" || len(s) == fingerprintDigits && IsCommit(s) {
		return nil
	}
	return FieldErrorf(CodeInvalidField, field,
		"is not a fingerprint (use the hex SHA-256 of the public key's SubjectPublicKeyInfo, in lower case)")
}
