package policy

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/fields"
)

// A Requirement is one rule of a contract: evidence that a commit needs to reach State.
type Requirement struct {
	// Name identifies the requirement in exceptions. It is optional, and unique in the
	// contract.
	Name  string       `json:"name,omitzero"`
	State ledger.State `json:"state"`
	// Predicate is the predicate of the evidence: exact, or a prefix ending in *. With
	// ://, it is the predicate's type.
	Predicate string `json:"predicate,omitzero"`
	// Type is the predicate type of the evidence, in place of Predicate: exact, or a
	// prefix ending in *.
	Type string `json:"type,omitzero"`
	// Signers are the signers whose evidence counts. If empty, any trusted identity does.
	Signers []identity.Pattern `json:"signers"`
	// Threshold is the number of distinct signers needed.
	Threshold int `json:"threshold"`
	// Accept holds the statuses that count.
	Accept []ledger.Status `json:"accept"`
	// MaxAge is how long evidence counts after it was recorded; 0 means no limit.
	MaxAge ledger.Duration `json:"max_age,omitzero"`
	// ExcludeAuthor says whether evidence signed by those who wrote the commit is ignored.
	ExcludeAuthor AuthorRule `json:"exclude_author"`
	// DistinctFrom holds lower states. The people who count here must be others than
	// those needed for the requirements of these states.
	DistinctFrom []ledger.State `json:"distinct_from,omitempty"`
	// Levels are those that a verification summary must state, such as SLSA_SOURCE_LEVEL_3, or
	// a higher one of the same track: https://slsa.dev/spec/v1.2/verification_summary.
	Levels []string `json:"levels,omitempty"`
	// Where is a CEL expression on the statement. If it is set, evidence counts only if
	// the expression is true.
	Where string `json:"where,omitzero"`
	// Passkey reports whether evidence counts only if a passkey has confirmed it.
	Passkey bool `json:"passkey,omitzero"`
	// Covers says whether evidence speaks for all files of a commit or for its change alone.
	Covers Coverage `json:"covers,omitzero"`
	// Delivery reports whether a deployment counts only if all commits that it ships are covered. It is for DEPLOYED.
	Delivery bool `json:"delivery,omitzero"`
	// Carry says which other commits' evidence counts as well. It is empty for DEPLOYED.
	Carry CarryRule `json:"carry,omitzero"`
	// CarrySigners are those whose claims of merges count. It is set if Carry has merges.
	CarrySigners []identity.Pattern `json:"carry_signers,omitempty"`
	// Paths and Branches are globs. They limit the requirement to commits that change a
	// matching path, and to commits with a matching target branch.
	Paths    []string `json:"paths"`
	Branches []string `json:"branches"`
}

// end returns when e expires as evidence for a commit, or zero for never. Without a MaxAge, carried
// evidence counts if it was not too old when the ledger first learnt of the commit, and does not age
// from then on: what runs does not lose its standing with time.
func (r *Requirement) end(f *Facts, e *Evidence) ledger.Time {
	if r.MaxAge > 0 {
		return e.RecordedAt.Add(r.MaxAge.Std())
	}
	if e.Source == 0 {
		return 0
	}
	if end := e.RecordedAt.Add(defaultCarryAge.Std()); f.RegisteredAt == 0 || end < f.RegisteredAt {
		return end
	}
	return 0
}

// Subject returns the predicate or the type that the requirement is about.
func (r *Requirement) Subject() string { return cmp.Or(r.Predicate, r.Type) }

// isAbout reports whether the requirement is about the predicate of e, or about its
// type: a predicate with :// is the URI of a type.
func (r *Requirement) isAbout(e *Evidence) bool {
	switch {
	case r.Type != "":
		return matchesPredicate(r.Type, e.PredicateType)
	case IsTypePattern(r.Predicate):
		return matchesPredicate(r.Predicate, e.PredicateType)
	}
	return matchesPredicate(r.Predicate, e.Predicate)
}

// isSigner reports whether a signer matches any pattern, if there are any.
func (r *Requirement) isSigner(d identity.DN) bool {
	return len(r.Signers) == 0 || matchesAny(r.Signers, d)
}

func matchesAny(patterns []identity.Pattern, d identity.DN) bool {
	for i := range patterns {
		if patterns[i].Match(d) {
			return true
		}
	}
	return false
}

// IsTypePattern reports whether a predicate in a contract or in a filter is a pattern for
// predicate types, which are URIs.
func IsTypePattern(predicate string) bool { return strings.Contains(predicate, "://") }

// matchesPredicate reports whether predicate matches pattern, which is exact or a prefix
// ending in *.
func matchesPredicate(pattern, predicate string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(predicate, prefix)
	}
	return pattern == predicate
}

// hasExpression reports whether a statement must meet an expression.
func (r *Requirement) hasExpression() bool { return r.Where != "" || len(r.Levels) > 0 }

// Expression returns the CEL expression that a statement must meet: Where, and that it states the Levels. A requirement
// without both has none, and the text is empty.
func (r *Requirement) Expression() string {
	if len(r.Levels) == 0 {
		return r.Where
	}
	var all []string
	for _, level := range r.Levels {
		names := []string{strconv.Quote(level)}
		if track, number, ok := fields.SplitLevel(level); ok {
			for n := number + 1; n <= fields.MaxLevel; n++ {
				names = append(names, strconv.Quote(track+strconv.Itoa(n)))
			}
		}
		all = append(all, "predicate.verifiedLevels.exists(l, l in ["+strings.Join(names, ", ")+"])")
	}
	if r.Where != "" {
		all = append(all, "("+r.Where+"\n)") // it may end with a comment
	}
	return strings.Join(all, " && ")
}
