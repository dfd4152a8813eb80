// Package gitobject parses git's commit objects, whose hash it checks, and verifies their SSH signatures.
package gitobject

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// The limits of a commit object.
const (
	// MaxSize is the maximum size of a commit object, in bytes.
	MaxSize = 1 << 20

	maxParents = 64
	maxName    = 320 // bytes of a name or an e-mail address
)

// A Commit is a parsed commit object. It says who wrote the commit; git does not check
// that.
type Commit struct {
	// ID is the hash of the object.
	ID string
	// Tree is the id of the root tree.
	Tree    string
	Parents []string
	// Author and Committer may have an empty name, or an empty e-mail address.
	Author, Committer Person
	// CoAuthors are those of the Co-authored-by trailers in the whole message.
	CoAuthors []ledger.Author
	// Message is the message in UTF-8, trimmed, and cut to 64 KiB as MessageText does.
	Message string
	// Object is the raw object that was parsed, not a copy.
	Object []byte

	encoding   string
	signatures [2]string // of the headers gpgsig and gpgsig-sha256
}

// A Person is the author or the committer of a commit.
type Person struct {
	ledger.Author
	// At is the time. It is 0 if the ledger does not accept it, such as one before 1970.
	At ledger.Time
	// Zone is the offset from UTC, such as +0200.
	Zone string
}

// Complete returns a registration of the commit with what the object says. It returns a
// field error if the registration says something else.
func (c *Commit) Complete(n ledger.Registration) (ledger.Registration, error) {
	if err := c.CheckClaims(n); err != nil {
		return n, err
	}
	n.Parents = append([]string{}, c.Parents...) // not nil: a root commit has none
	n.Author, n.Committer = c.Author.Author, c.Committer.Author
	n.Message, n.CommittedAt = c.Message, c.Committer.At
	return n, nil
}

// CheckClaims returns a field error if a registration contradicts the object. Fields that
// are not set do not. A message that was cut may end with spaces or not.
func (c *Commit) CheckClaims(n ledger.Registration) error {
	return cmp.Or(
		c.checkParents(n.Parents),
		contradiction("author.name", n.Author.Name, c.Author.Name),
		contradiction("author.email", n.Author.Email, c.Author.Email),
		contradiction("committer.name", n.Committer.Name, c.Committer.Name),
		contradiction("committer.email", n.Committer.Email, c.Committer.Email),
		contradiction("message", strings.TrimSpace(n.Message), strings.TrimSpace(c.Message)),
		contradiction("committed_at", n.CommittedAt.String(), c.Committer.At.String()),
	)
}

func (c *Commit) checkParents(parents []string) error {
	if parents == nil || slices.Equal(parents, c.Parents) {
		return nil
	}
	return contradictionError("parents", strings.Join(parents, ", "), strings.Join(c.Parents, ", "))
}

// contradiction returns an error if a claim is made and is not what the object says.
func contradiction(field, claim, object string) error {
	if claim == "" || claim == object {
		return nil
	}
	return contradictionError(field, claim, object)
}

func contradictionError(field, claim, object string) error {
	return ledger.FieldErrorf(ledger.CodeInvalidField, field,
		"is %s, but the commit object says %s (omit it: the ledger takes it from the object)",
		text.Quote(claim), text.Quote(object))
}

// WithoutClaims returns a registration without the fields that the object of a commit
// says.
func WithoutClaims(n ledger.Registration) ledger.Registration {
	n.Object, n.Parents, n.Author, n.Committer = nil, nil, ledger.Author{}, ledger.Author{}
	n.Message, n.CommittedAt, n.SigningKey = "", 0, ""
	return n
}

// Writers returns everybody who wrote the commit with its author: the committer and the
// co-authors, without duplicates, also those without a name. The committer comes first, and is left
// out if it is the author, unless a co-author would be taken for a forge that commits.
func (c *Commit) Writers() []ledger.Author {
	var list []ledger.Author
	if c.Committer.Author != c.Author.Author || len(c.CoAuthors) > 0 && c.CoAuthors[0].IsForge() {
		list = append(list, c.Committer.Author)
	}
	for _, a := range c.CoAuthors {
		if a != c.Author.Author && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}
