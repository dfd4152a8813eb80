// Package search understands the queries of a search, and decides how well the names and
// texts of the ledger match them.
package search

import (
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// Limits of a query.
const (
	// MaxQuery is the maximum length of a query, in bytes.
	MaxQuery = 200
	// maxWords is the maximum number of words in a query.
	maxWords = 10
	// minDigits is the minimum number of hex digits of a commit ID or a digest.
	minDigits = 7
)

// A Query is a parsed query. It has at least one word.
type Query struct {
	// Text is the query as it was given, without white space around it.
	Text string
	// folded is the query as it is compared, and words are its words.
	folded string
	words  []string
}

// Parse parses a query. White space separates words.
func Parse(query string) (q Query, err error) {
	invalid := func(format string, args ...any) (Query, error) {
		return Query{}, ledger.FieldErrorf(ledger.CodeInvalidParameter, "q", format, args...)
	}
	switch {
	case len(query) > MaxQuery:
		return invalid("%d bytes: at most %d", len(query), MaxQuery)
	case !utf8.ValidString(query):
		return invalid("invalid UTF-8")
	case strings.ContainsFunc(query, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }):
		return invalid("%s has control characters", text.Quote(query))
	}

	q.Text = strings.TrimSpace(query)
	q.folded = fold(q.Text)
	q.words = strings.Fields(q.folded)
	switch {
	case len(q.words) == 0:
		return invalid("empty: give words, a commit ID, a digest or the ID of a record")
	case len(q.words) > maxWords:
		return invalid("%d words: at most %d", len(q.words), maxWords)
	}
	return q, nil
}

// Commit returns the commit ID in the query, or its prefix, of at least 7 hex digits. It is
// empty if the query has none.
func (q Query) Commit() string {
	if sha := strings.ToLower(q.Text); ledger.IsCommitPrefix(sha) {
		return sha
	}
	return ""
}

// The prefixes of the IDs by which records are found.
const (
	Attestations = "att_"
	Events       = "evt_"
	Webhooks     = "whk_"
	Identities   = "idn_"
)

// ID returns the ID of a record in the query, and its prefix. Both are empty if the query
// is not the ID of a record that can be found.
func (q Query) ID() (prefix, id string) {
	for _, prefix := range []string{Attestations, Events, Webhooks, Identities} {
		if len(q.Text) != len(prefix)+ulid.EncodedSize || !strings.EqualFold(q.Text[:len(prefix)], prefix) {
			continue
		}
		id := strings.ToUpper(q.Text[len(prefix):])
		if _, err := ulid.ParseStrict(id); err == nil {
			return prefix, prefix + id
		}
	}
	return "", ""
}

// A Digest is the digest of an artifact or a payload in a query, or its prefix.
type Digest struct {
	// Algorithm is sha256, sha384 or sha512; empty if the query has no digest.
	Algorithm string
	// Digits are at least 7 hex digits.
	Digits string
}

// Digest returns the digest in the query. 64 hex digits without an algorithm are one, too.
func (q Query) Digest() Digest {
	name := strings.ToLower(q.Text)
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		name = name[at+1:] // a reference to an image
	}
	if len(name) == ledger.DigestDigits("sha256") && text.IsHex(name) {
		return Digest{"sha256", name}
	}
	algorithm, digits, ok := strings.Cut(name, ":")
	if !ok || len(digits) < minDigits || len(digits) > ledger.DigestDigits(algorithm) || !text.IsHex(digits) {
		return Digest{}
	}
	return Digest{algorithm, digits}
}

// String returns the digest as artifacts have it.
func (d Digest) String() string { return d.Algorithm + ":" + d.Digits }

// IsFull reports whether all digits are given.
func (d Digest) IsFull() bool {
	return d.Algorithm != "" && len(d.Digits) == ledger.DigestDigits(d.Algorithm)
}

// Range returns the first and the last digest that the digits may begin.
func (d Digest) Range() (first, last []byte) {
	missing := ledger.DigestDigits(d.Algorithm) - len(d.Digits)
	first, _ = hex.DecodeString(d.Digits + strings.Repeat("0", missing))
	last, _ = hex.DecodeString(d.Digits + strings.Repeat("f", missing))
	return first, last
}

// IsExact reports whether the query names one record: a full commit ID, a full digest or an
// ID.
func (q Query) IsExact() bool {
	prefix, _ := q.ID()
	return prefix != "" || q.Digest().IsFull() || ledger.IsCommit(q.Commit())
}

// A Rank says how well a text matches a query. A lower one is better.
type Rank int

// The ranks.
const (
	Equal     Rank = iota + 1 // the text is the query
	Prefix                    // the text begins with the query
	WordStart                 // each word of the query begins a word of the text
	Inside                    // each word of the query is somewhere in the text
	No        Rank = 0        // a word of the query is missing
)

// Match returns how well a text matches the query.
func (q Query) Match(text string) Rank { return q.matchFolded(fold(text)) }

func (q Query) matchFolded(text string) Rank {
	rank := WordStart
	for _, word := range q.words {
		switch inside, begins := find(text, word); {
		case !inside:
			return No
		case !begins:
			rank = Inside
		}
	}
	switch {
	case text == q.folded:
		return Equal
	case strings.HasPrefix(text, q.folded):
		return Prefix
	}
	return rank
}

// find reports whether a text has a word, and whether the word begins one of the text.
func find(text, word string) (inside, begins bool) {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return inside, false
		}
		at := from + i
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		if at == 0 || !unicode.IsLetter(before) && !unicode.IsDigit(before) {
			return true, true
		}
		inside = true
		_, size := utf8.DecodeRuneInString(text[at:])
		from = at + size
	}
}

// fold returns a text as it is compared: in NFKC, without case and with single spaces.
func fold(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return identity.FoldText(s)
		}
	}
	return strings.ToLower(s) // fast, since most texts have only ASCII
}

// MatchCommit returns how well a commit matches the query: by its branch, or by all its
// texts. Each word of the query is in any of them.
func (q Query) MatchCommit(c ledger.CommitSummary) (branch, commit Rank) {
	texts := []string{fold(c.Message), fold(c.Author.Name), fold(c.Author.Email)}
	name := fold(c.Branch)
	branch = q.matchFolded(name)
	for _, text := range texts {
		if rank := q.matchFolded(text); rank != No && (commit == No || rank < commit) {
			commit = rank
		}
	}
	if commit != No {
		return branch, commit
	}

	if branch == No {
		texts = append(texts, name)
	}
	return branch, q.matchTogether(texts)
}

// matchTogether is Inside if each word of the query is in any of the texts.
func (q Query) matchTogether(texts []string) Rank {
	for _, word := range q.words {
		isFound := false
		for _, text := range texts {
			isFound = isFound || strings.Contains(text, word)
		}
		if !isFound {
			return No
		}
	}
	return Inside
}
