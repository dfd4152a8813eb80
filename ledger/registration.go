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
	maxAuthorLen = 320
	maxMessage   = 64 << 10
)

// An Author is the author of a commit, as recorded by git.
type Author struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// A Registration is what a client reports about a commit. All fields are optional. A
// later registration of the same commit replaces the fields that it sets.
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
	Message     string   `json:"message,omitzero"`
	CommittedAt Time     `json:"committed_at,omitzero"`
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
		checkMessage(r.Message),
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

func checkAuthor(field, s string) error {
	if len(s) > maxAuthorLen {
		return FieldErrorf(CodeInvalidField, field, "too long: %d bytes, at most %d", len(s), maxAuthorLen)
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return FieldErrorf(CodeInvalidField, field, "contains a control character")
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

// SameAs reports whether two authors are the same person. It compares e-mail addresses,
// ignoring case, or names if one of them has no address.
func (a Author) SameAs(b Author) bool {
	if a.Email != "" && b.Email != "" {
		return strings.EqualFold(a.Email, b.Email)
	}
	return a.Name != "" && a.Name == b.Name
}
