package identity

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// Predicates are patterns of the predicates that an identity may attest. Each is a
// predicate or, with a * at its end, a prefix. Nil matches every predicate.
type Predicates []string

const (
	maxMay        = 100 // patterns
	maxMayPattern = 512 // bytes
)

// Match reports whether one of the patterns matches a predicate. It is case-sensitive. Those who
// may deploy to an environment may roll back there too.
func (p Predicates) Match(predicate string) bool {
	if environment, ok := strings.CutPrefix(predicate, ledger.RollbackPredicate("")); ok &&
		p.match(ledger.EnvironmentPredicate(environment)) {
		return true
	}
	return p.match(predicate)
}

func (p Predicates) match(predicate string) bool {
	for _, pattern := range p {
		if prefix, ok := strings.CutSuffix(pattern, "*"); pattern == predicate || ok && strings.HasPrefix(predicate, prefix) {
			return true
		}
	}
	return len(p) == 0
}

// MatchSome reports whether one of the patterns matches any predicate with the given prefix.
func (p Predicates) MatchSome(prefix string) bool {
	for _, pattern := range p {
		start, isPrefix := strings.CutSuffix(pattern, "*")
		if strings.HasPrefix(start, prefix) || isPrefix && strings.HasPrefix(prefix, start) {
			return true
		}
	}
	return len(p) == 0
}

// Names reports whether a pattern that matches only predicates with the given prefix matches a
// predicate. Nil and * do not.
func (p Predicates) Names(prefix, predicate string) bool {
	return slices.ContainsFunc(p, func(pattern string) bool {
		return strings.HasPrefix(pattern, prefix) && Predicates{pattern}.Match(predicate)
	})
}

// claimPrefix returns the prefix of a predicate of claims, or "". Who claims merges and changes decides what counts for
// commits that others have signed, and who sets a baseline what runs although nobody deployed it.
func claimPrefix(predicate string) string {
	for _, prefix := range []string{"merge:", "changes:", ledger.BaselinePredicate("")} {
		if strings.HasPrefix(predicate, prefix) {
			return prefix
		}
	}
	return ""
}

// NamesClaims reports whether a predicate is not that of claims, or a pattern that begins with its prefix matches it:
// * and a shorter prefix do not give them.
func (p Predicates) NamesClaims(predicate string) bool {
	prefix := claimPrefix(predicate)
	return prefix == "" || p.Names(prefix, predicate)
}

// checked validates the patterns, and returns them as they are stored: nil if one matches
// every predicate and none names claims. Errors are about the field may.
func (p Predicates) checked() (Predicates, error) {
	if len(p) > maxMay {
		return nil, ledger.FieldErrorf(ledger.CodeInvalidField, "may", "%d patterns: at most %d (use prefixes, e.g. test:*)",
			len(p), maxMay)
	}
	all, names := len(p) == 0, false
	for i, pattern := range p {
		if problem := faultOf(pattern); problem != "" {
			return nil, ledger.FieldErrorf(ledger.CodeInvalidField, text.Entry("may", i), "%s", problem)
		}
		all = all || pattern == "*"
		names = names || claimPrefix(pattern) != ""
	}
	if all && !names {
		return nil, nil
	}
	return p, nil
}

// faultOf says what is wrong with a pattern. It is empty if nothing is.
func faultOf(pattern string) string {
	star := strings.IndexByte(pattern, '*')
	switch {
	case pattern == "":
		return "empty (use e.g. test:*, or * for every predicate)"
	case len(pattern) > maxMayPattern:
		return "too long: at most 512 bytes"
	case strings.ContainsFunc(pattern, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return text.Quote(pattern) + " has characters that no predicate has (use letters, digits and punctuation of ASCII)"
	case star >= 0 && star < len(pattern)-1:
		return text.Quote(pattern) + " has a * before its end (use a predicate, or a prefix that ends in one *)"
	}
	return ""
}

// String lists the patterns for a message, shortened if there are many.
func (p Predicates) String() string {
	const most = 5
	if len(p) == 0 {
		return "*"
	}
	var shown []string
	for _, pattern := range p[:min(len(p), most)] {
		shown = append(shown, text.Clip(pattern))
	}
	if len(p) > most {
		shown = append(shown, "…")
	}
	return strings.Join(shown, ",")
}
