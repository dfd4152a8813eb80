package lint

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Facts is what Check needs to know of an org.
type Facts struct {
	// Signers holds the keys and the roots that are neither revoked nor expired. Missing
	// reports whether there are more.
	Signers []Signer
	Missing bool
	// SameNames has the names of those who count as several people only since an upgrade.
	SameNames []SameName
	// Signed holds, for each of Contract.Subjects, predicates or types that match it and were
	// signed in the org: the first ones, if there are many. AnySigned reports whether
	// anything was.
	Signed    map[string][]string
	AnySigned bool
	// AllProven reports whether the newest commits of the repo are all proven, and there are
	// enough of them to expect the same of the next.
	AllProven bool
	// UnknownAuthors counts, among the newest commits of the repo, NewestCommits, those that were
	// written by somebody whom the org does not know. It is 0 if no requirement excludes authors.
	UnknownAuthors, NewestCommits int
	// HasArtifacts reports whether any statement of the org is about an artifact, such as an image.
	HasArtifacts bool
	// Type returns what is known of the statements of a type. If it is nil, nothing is.
	Type func(uri string) TypeFacts
	// RecordedPredicates are patterns of the predicates of statements without an outcome.
	RecordedPredicates []string
}

// A Signer is a key or a root that the org trusts.
type Signer struct {
	// Person is who counts by a key: keys of one individual have the same number.
	Person int64
	DN     identity.DN
	// May has patterns of the predicates that the identity may attest; empty: all.
	May []string
	// IsRoot reports whether it is a root. Its certificates match Certifies; who has one is
	// not known.
	IsRoot    bool
	Certifies identity.Pattern
}

// name returns the name of a key, or the pattern of a root.
func (s *Signer) name() string {
	if s.IsRoot {
		return "the root of " + cmp.Or(s.Certifies.String(), "any name")
	}
	return s.DN.String()
}

// A SameName is a common name, e-mail address or login of signers who count as several people,
// although no administrator has said that they are.
type SameName struct {
	Name string
	DNs  []string
}

// TypeFacts is what is known of the statements of a type.
type TypeFacts struct {
	// Predicates is a pattern of their predicates.
	Predicates string
	// Outcome reports whether any of them has another status than recorded.
	Outcome bool
}

// typeOf returns what is known of a type, or of a pattern of types.
func (f *Facts) typeOf(uri string) TypeFacts {
	if f.Type == nil || strings.HasSuffix(uri, "*") {
		return TypeFacts{Predicates: "*", Outcome: true}
	}
	return f.Type(uri)
}

// predicatesOf returns a pattern of the predicates that a requirement is about.
func (f *Facts) predicatesOf(r *policy.Requirement) string {
	subject := r.Subject()
	if policy.IsTypePattern(subject) {
		return f.typeOf(subject).Predicates
	}
	return subject
}

// maxSteps limits how many identities are compared with how many patterns for one review.
// A comparison takes less than 50 ns.
const maxSteps = 2_000_000

// exceptionPredicates is a pattern for the predicates of exceptions.
const exceptionPredicates = "exception:*"

// reviewPredicates is a pattern for the predicates of reviews.
const reviewPredicates = "review:*"

// mergePredicates is a pattern for the predicates of claims of merges.
const mergePredicates = "merge:*"

// signers knows who can sign what a contract asks for.
type signers struct {
	needs []signerNeed // by requirement
	// exceptions is what exceptions ask for, and artifacts what links of artifacts do.
	exceptions, artifacts signerNeed
	// claims is what carry_signers ask for, by requirement. It is nil without any.
	claims map[int]*signerNeed
}

// A signerNeed says who can sign for a requirement.
type signerNeed struct {
	// people are those whose keys match the patterns and may attest the predicate.
	people peopleSet
	// unknown reports whether others can too, because a root may certify them.
	unknown bool
	// anyMay and allMay report whether any, and whether every identity may attest the
	// predicate.
	anyMay, allMay bool
	// everybody reports whether each identity can sign, there are several, and none is a root.
	everybody bool
}

// isNobodys reports whether it is known that nobody can sign.
func (n *signerNeed) isNobodys() bool { return !n.unknown && n.people.count() == 0 }

// newSigners compares the identities with the contract. If that takes too many steps, or
// if identities are missing, it returns nil, and why.
func newSigners(c policy.Contract, f *Facts) (s *signers, unchecked string) {
	if f.Missing {
		return nil, fmt.Sprintf("who can sign what: the org has more than %d identities", len(f.Signers))
	}
	x := newIndex(c, f)
	if steps := x.steps(f.Signers); steps > maxSteps {
		return nil, fmt.Sprintf("who can sign what: comparing %d identities with the contract takes %d steps, more than %d",
			len(f.Signers), steps, maxSteps)
	}

	people := make(map[int64]int) // positions by number
	needs := make([]signerNeed, len(x.subjects))
	for i := range needs {
		needs[i] = signerNeed{
			people: newPeopleSet(len(f.Signers)), allMay: len(f.Signers) > 0, everybody: len(f.Signers) > 1,
		}
	}
	for i := range f.Signers {
		id := &f.Signers[i]
		if _, ok := people[id.Person]; !ok && !id.IsRoot {
			people[id.Person] = len(people)
		}
		matches, may := x.matches(id), x.may(id.May)
		for at := range needs {
			n := &needs[at]
			n.anyMay, n.allMay = n.anyMay || may[at], n.allMay && may[at]
			canSign := may[at] && x.isSigner(at, matches)
			n.everybody = n.everybody && canSign && !id.IsRoot
			switch {
			case !canSign:
			case id.IsRoot:
				n.unknown = true
			default:
				n.people.add(people[id.Person])
			}
		}
	}
	s = &signers{needs: needs[:len(c.Requirements)], claims: make(map[int]*signerNeed)}
	rest := needs[len(c.Requirements):]
	s.exceptions, s.artifacts = rest[0], rest[1]
	for n, i := range carryMerges(c) {
		s.claims[i] = &rest[2+n]
	}
	return s, ""
}

// carryMerges returns the positions of the requirements with merge in carry.
func carryMerges(c policy.Contract) (list []int) {
	for i := range c.Requirements {
		if c.Requirements[i].Carry&policy.CarryMerge != 0 {
			list = append(list, i)
		}
	}
	return list
}

// An index has the patterns of a contract for comparing them with identities. The
// requirements are followed by the exceptions, the links of artifacts and the claims of
// merges.
type index struct {
	subjects    []string // patterns of predicates, by requirement
	patternList          // of signers
	of          [][]int  // the positions of the patterns of each requirement
	// known remembers what lists of predicates may attest.
	known map[string][]bool
	// anyClaimer is that of the contract.
	anyClaimer bool
}

func newIndex(c policy.Contract, f *Facts) *index {
	x := &index{known: make(map[string][]bool), anyClaimer: c.AnyClaimer()}
	add := func(subject string, signers []identity.Pattern) {
		x.subjects, x.of = append(x.subjects, subject), append(x.of, x.add(signers))
	}

	for i := range c.Requirements {
		r := &c.Requirements[i]
		add(f.predicatesOf(r), r.Signers)
	}
	add(exceptionPredicates, c.Exceptions.Signers)
	add("*", c.Artifacts.Signers)
	for _, i := range carryMerges(c) {
		add(mergePredicates, c.Requirements[i].CarrySigners)
	}
	return x
}

// steps returns the number of comparisons that the identities need.
func (x *index) steps(signers []Signer) int {
	steps := len(x.patterns) * len(signers)
	seen := make(map[string]bool)
	for i := range signers {
		if key := strings.Join(signers[i].May, "\n"); key != "" && !seen[key] {
			seen[key] = true
			steps += len(signers[i].May) * len(x.subjects)
		}
	}
	return steps
}

// matches reports for each pattern whether it matches the identity, or may match a
// certificate of the root.
func (x *index) matches(id *Signer) []bool {
	matches := make([]bool, len(x.patterns))
	for i, p := range x.patterns {
		if id.IsRoot {
			matches[i] = p.Overlaps(id.Certifies)
		} else {
			matches[i] = p.Match(id.DN)
		}
	}
	return matches
}

// isSigner reports whether a requirement has no patterns, or one that matches.
func (x *index) isSigner(at int, matches []bool) bool {
	return len(x.of[at]) == 0 || slices.ContainsFunc(x.of[at], func(p int) bool { return matches[p] })
}

// may reports for each requirement whether any of the patterns allows its predicate.
func (x *index) may(patterns []string) []bool {
	key := strings.Join(patterns, "\n")
	if may, ok := x.known[key]; ok {
		return may
	}
	may := make([]bool, len(x.subjects))
	for i, subject := range x.subjects {
		if subject == mergePredicates && !x.anyClaimer {
			may[i] = slices.ContainsFunc(patterns, namesMerges)
			continue
		}
		allows := func(p string) bool { return patternsOverlap(p, subject) }
		may[i] = len(patterns) == 0 || slices.ContainsFunc(patterns, allows)
	}
	x.known[key] = may
	return may
}

// namesMerges reports whether a pattern of an identity names claims of merges.
func namesMerges(pattern string) bool {
	return strings.HasPrefix(pattern, strings.TrimSuffix(mergePredicates, "*"))
}

// A peopleSet is a set of people, by their positions.
type peopleSet []uint64

func newPeopleSet(n int) peopleSet { return make(peopleSet, (n+63)/64) }

func (s peopleSet) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s peopleSet) count() (n int) { return s.common(s) }

// common returns the number of people who are in both sets.
func (s peopleSet) common(other peopleSet) (n int) {
	for i := range s {
		n += bits.OnesCount64(s[i] & other[i])
	}
	return n
}

// keep removes those who are not in the other set.
func (s peopleSet) keep(other peopleSet) {
	for i := range s {
		s[i] &= other[i]
	}
}

// subjectField returns the name of the member that Subject returns.
func subjectField(r *policy.Requirement) string {
	if r.Type != "" {
		return "type"
	}
	return "predicate"
}

// patternsOverlap reports whether two patterns for predicates match a name in common.
func patternsOverlap(a, b string) bool {
	a, aWild := strings.CutSuffix(a, "*")
	b, bWild := strings.CutSuffix(b, "*")
	switch {
	case aWild && bWild:
		return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
	case aWild:
		return strings.HasPrefix(b, a)
	case bWild:
		return strings.HasPrefix(a, b)
	}
	return a == b
}

// patternCovers reports whether a pattern matches every name that another one does.
func patternCovers(pattern, other string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	return pattern == other || wild && strings.HasPrefix(other, prefix)
}

// A Finding is a part of a contract that probably does not mean what its author wants.
type Finding struct {
	Code  FindingCode `json:"code"`
	Level Level       `json:"level"`
	// Field is the path of the member, such as requirements[2].signers.
	Field   string `json:"field"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

// A Level says how much a finding matters.
type Level string

// The levels of findings.
const (
	Error   Level = "error"   // the contract lets through what it should not, or nobody can meet it
	Warning Level = "warning" // it may be right: time or the work of others may show
)

// A FindingCode is the kind of a finding.
type FindingCode string

// Level returns the level of findings of the kind.
func (c FindingCode) Level() Level {
	switch c {
	case FindingNeverSigned, FindingNoDeployment, FindingAuthorClaimed, FindingAuthorUnknown, FindingNobodyLinks,
		FindingTooLarge, FindingDeliveryUnchecked:
		return Warning
	}
	return Error
}

// The kinds of findings.
const (
	FindingAnySigner         FindingCode = "any_signer"          // every trusted identity satisfies it alone
	FindingToolWithoutSigner FindingCode = "tool_without_signer" // any signer can claim to be the tool
	FindingNoRequirements    FindingCode = "no_requirements"     // a state is reached without any evidence
	FindingAuthorClaimed     FindingCode = "author_claimed"      // exclude_author takes a registration's word
	FindingAuthorUnknown     FindingCode = "author_unknown"      // exclude_author does not know who some authors are
	FindingNoDeployment      FindingCode = "no_deployment"       // no commit becomes DEPLOYED
	FindingNoIdentities      FindingCode = "no_identities"       // the org trusts nobody
	FindingNobodyMatches     FindingCode = "nobody_matches"      // no trusted identity can sign it
	FindingThresholdTooHigh  FindingCode = "threshold_too_high"  // fewer people can sign it than needed
	FindingTooFewPeople      FindingCode = "too_few_people"      // distinct_from asks for more people than match
	FindingNeverSigned       FindingCode = "never_signed"        // no such evidence was ever recorded
	FindingNeverCounts       FindingCode = "never_counts"        // such evidence never has an accepted status
	FindingNeverCarries      FindingCode = "never_carries"       // carry is set, but such evidence does not carry
	FindingNeverConfirmed    FindingCode = "never_confirmed"     // passkey is set, but no passkey confirms such evidence
	FindingClaimsByTests     FindingCode = "claims_by_tests"     // who claims merges signs what they carry, too
	FindingMixedEnvironments FindingCode = "mixed_environments"  // counts deployments to other environments
	FindingAnyLinker         FindingCode = "any_linker"          // every identity links artifacts
	FindingNobodyLinks       FindingCode = "nobody_links"        // no identity links artifacts
	FindingOneForAll         FindingCode = "one_for_all"         // one person can test and review alone
	FindingMayEverything     FindingCode = "may_everything"      // an identity may attest every predicate
	FindingSameName          FindingCode = "same_name"           // people with one name count twice
	FindingTooLarge          FindingCode = "too_large"           // larger than a new contract may be
	FindingClaimedTargets    FindingCode = "claimed_targets"     // anyone who registers a commit decides what applies
	FindingUnsignedPaths     FindingCode = "unsigned_paths"      // the same, by the paths that it claims
	FindingDeliveryUnchecked FindingCode = "delivery_unchecked"  // only the deployed commit must have its change reviewed
	FindingReviewCoversTree  FindingCode = "review_covers_tree"  // the same for one review, although delivery is set
)

// A Review is the result of Check.
type Review struct {
	Findings []Finding `json:"findings"`
	// Truncated counts the findings beyond MaxFindings.
	Truncated int `json:"truncated,omitzero"`
	// Unchecked says what was not checked, and why. It is empty if everything was.
	Unchecked string `json:"unchecked,omitzero"`
}

// HasErrors reports whether any finding is an error. Those beyond MaxFindings may be.
func (r Review) HasErrors() bool {
	return r.Truncated > 0 || slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level == Error })
}

// MaxFindings is the maximum number of findings that a Review lists.
const MaxFindings = 200

// A linter collects the findings about a contract.
type linter struct {
	policy.Contract
	facts   Facts
	signers *signers // nil if it is not known who can sign what
	review  Review
}

func (l *linter) add(code FindingCode, field, fix, format string, args ...any) {
	if len(l.review.Findings) == MaxFindings {
		l.review.Truncated++
		return
	}
	l.review.Findings = append(l.review.Findings, Finding{code, code.Level(), field, fmt.Sprintf(format, args...), fix})
}

func (l *linter) requires(s ledger.State) bool {
	return slices.ContainsFunc(l.Requirements, func(r policy.Requirement) bool { return r.State == s })
}

// isApart reports whether distinct_from asks for another person than those of a lower
// state.
func (l *linter) isApart(r *policy.Requirement) bool {
	return slices.ContainsFunc(r.DistinctFrom, l.requires)
}

func peopleText(n int) string {
	if n == 1 {
		return "1 person"
	}
	return fmt.Sprintf("%d people", n)
}
