package policy

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
)

// An AuthorRule says whether evidence by those who wrote a commit counts.
type AuthorRule uint8

// The author rules, the stricter ones later. In a contract, they are false, true, "proven" and
// "known".
const (
	AuthorCounts AuthorRule = iota
	// AuthorExcluded leaves out those who wrote the commit. If they are unknown, nobody
	// counts.
	AuthorExcluded
	// ProvenAuthorExcluded is like AuthorExcluded, but takes the commit's object to know
	// them: what registrations claim is not enough.
	ProvenAuthorExcluded
	// KnownAuthorExcluded is like ProvenAuthorExcluded, but also needs to know each of them as
	// somebody of the org, who might have signed evidence by another name.
	KnownAuthorExcluded
)

// MarshalJSON returns the rule as contracts have it.
func (r AuthorRule) MarshalJSON() ([]byte, error) {
	return []byte([...]string{"false", "true", `"proven"`, `"known"`}[r]), nil
}

// UnmarshalJSON decodes what MarshalJSON returns.
func (r *AuthorRule) UnmarshalJSON(data []byte) error {
	for rule := AuthorCounts; rule <= KnownAuthorExcluded; rule++ {
		if text, _ := rule.MarshalJSON(); bytes.Equal(text, data) {
			*r = rule
			return nil
		}
	}
	return errors.New("not an author rule")
}

// A Coverage says what the evidence that counts for a requirement speaks for.
type Coverage string

// The coverages. The zero value is CoversTree, which contracts leave out.
const (
	// CoversTree is that of tests and builds: evidence about the newest commit speaks for all files.
	CoversTree Coverage = ""
	// CoversChange is that of reviews: each commit of a delivery must be covered.
	CoversChange Coverage = "change"
)

// A CarryRule is a set of ways in which evidence of other commits carries to a commit.
type CarryRule uint8

// The ways in which evidence carries.
const (
	// CarryTree carries the evidence of commits with the same proven tree.
	CarryTree CarryRule = 1 << iota
	// CarryMerge carries the evidence of commits of which the commit is a clean merge, as
	// somebody claims.
	CarryMerge
)

var carryNames = map[string]CarryRule{"tree": CarryTree, "merge": CarryMerge}

// MarshalJSON returns the rule as contracts have it: a list of names.
func (r CarryRule) MarshalJSON() ([]byte, error) {
	var names [][]byte
	for _, name := range []string{"tree", "merge"} {
		if r&carryNames[name] != 0 {
			names = append(names, strconv.AppendQuote(nil, name))
		}
	}
	return append(append([]byte{'['}, bytes.Join(names, []byte{','})...), ']'), nil
}

// UnmarshalJSON decodes what MarshalJSON returns, also with blanks.
func (r *CarryRule) UnmarshalJSON(data []byte) error {
	compact := jsontext.Value(bytes.Clone(data))
	if err := compact.Compact(); err != nil {
		return err
	}
	for rule := range CarryTree | CarryMerge + 1 {
		if text, _ := rule.MarshalJSON(); bytes.Equal(text, compact) {
			*r = rule
			return nil
		}
	}
	return errors.New("not a list of ways to carry evidence")
}

// defaultCarryAge is how long evidence carries if the requirement has no max_age.
const defaultCarryAge = ledger.Duration(30 * 24 * time.Hour)
