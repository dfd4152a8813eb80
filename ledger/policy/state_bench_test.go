package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
)

// The worst cases within the limits of contracts and of the evidence of a commit.
func BenchmarkStateWorst(b *testing.B) {
	long := strings.Repeat("a", 200)
	for name, test := range map[string]struct {
		requirement func(i int) string
		evidence    func(i int) Evidence
		facts       func(f *Facts) // may be nil
	}{
		"people": {
			requirement: func(i int) string { return `"state":"ATTESTED","predicate":"test:*","threshold":100` },
		},
		"predicates": {
			requirement: func(i int) string {
				return fmt.Sprintf(`"state":"PROMOTABLE","predicate":"test:%s%d*"`, long, i%2)
			},
			evidence: func(i int) Evidence { return worstEvidence(i, fmt.Sprintf("test:%s%d", long, i)) },
		},
		"slots": {
			requirement: func(i int) string { return `"state":"PROMOTABLE","predicate":"test:*","max_age":"90d"` },
			evidence: func(i int) Evidence {
				e := worstEvidence(i, "test:go")
				e.Person, e.Signer, e.Slot = 1, identity.DN{CN: "ci"}, fmt.Sprintf("sha256:%064d", i)
				return e
			},
		},
		"authors": {
			requirement: func(i int) string { return `"state":"PROMOTABLE","predicate":"test:*","exclude_author":true` },
			evidence:    worstNamed,
		},
		"names": {
			requirement: func(i int) string { return worstSigners(i, "cn=*a*%d") },
		},
		"wildcards": {
			requirement: func(i int) string { return worstSigners(i, "cn=*aaaaab*%d*") },
			evidence:    worstNamed,
		},
		"expressions": {
			requirement: func(i int) string {
				return `"state":"PROMOTABLE","predicate":"test:*"` + worstWhere(i)
			},
			facts: worstVerdicts,
		},
		"all": {
			requirement: func(i int) string {
				return worstSigners(i, "cn=*aaaaab*%d*") + `,"exclude_author":true,"threshold":100,"max_age":"90d"` +
					worstWhere(i) + worstPaths(i)
			},
			evidence: worstNamed,
			facts: func(f *Facts) {
				worstChanges(f)
				f.Exceptions = worstExceptions()
				worstVerdicts(f)
			},
		},
		"distinct": {
			requirement: func(i int) string {
				state, from := "ATTESTED", ""
				if i >= 25 {
					state, from = "PROMOTABLE", `,"distinct_from":["ATTESTED"]`
				}
				return fmt.Sprintf(`"state":%q,"predicate":"test:%03d*","threshold":7%s`, state, i, from)
			},
			evidence: func(i int) Evidence {
				e := worstEvidence(i, fmt.Sprintf("test:%03d", (i*37+i/50*11)%50))
				e.Person = int64(i%150 + 1)
				return e
			},
		},
		"exceptions": {
			requirement: func(i int) string {
				return fmt.Sprintf(`"name":"r%d","state":"PROMOTABLE","predicate":"test:*","threshold":100`, i)
			},
			facts: func(f *Facts) { f.Exceptions = worstExceptions() },
		},
		"paths": {
			requirement: func(i int) string {
				return `"state":"PROMOTABLE","predicate":"test:*"` + worstPaths(i)
			},
			facts: worstChanges,
		},
	} {
		for _, carry := range []bool{false, true} {
			b.Run(fmt.Sprint(name, "/carry=", carry), func(b *testing.B) {
				if test.evidence == nil {
					test.evidence = func(i int) Evidence { return worstEvidence(i, "test:go") }
				}
				c, f := worstContract(b, test.requirement, carry), worstFacts(test.evidence, carry)
				if test.facts != nil {
					test.facts(&f)
				}
				for b.Loop() {
					c.State(f, policyNow)
				}
			})
		}
	}
}

// worstSigners returns a requirement with its part of the patterns that a contract may have.
func worstSigners(i int, format string) string {
	var patterns []string
	for n := range MaxPatterns / MaxRequirements {
		patterns = append(patterns, fmt.Sprintf("%q", fmt.Sprintf(format, i*100+n)))
	}
	return `"state":"PROMOTABLE","predicate":"test:*","signers":[` + strings.Join(patterns, ",") + `]`
}

func worstExpression(i int) string {
	return fmt.Sprintf("predicate.x != '%s%d'", strings.Repeat("a", 2000), i%MaxExpressions)
}

func worstPaths(i int) string {
	glob := "*" + strings.Repeat("a", 120)
	return fmt.Sprintf(`,"paths":["%s[b%02d]*","%s[c%02d]*"]`, glob, i, glob, i)
}

func worstChanges(f *Facts) {
	var paths []string
	for i := range glob.MaxMatched {
		paths = append(paths, fmt.Sprintf("%s/%04d", strings.Repeat("a", 1800), i))
	}
	signChanges(f, paths...)
}

func worstWhere(i int) string {
	if i >= MaxExpressions {
		return ""
	}
	return fmt.Sprintf(`,"where":%q`, worstExpression(i))
}

func worstContract(b *testing.B, requirement func(i int) string, carry bool) Contract {
	var requirements []string
	for i := range MaxRequirements {
		r := requirement(i)
		if carry {
			r += `,"carry":["tree"]`
		}
		requirements = append(requirements, "{"+r+"}")
	}
	c, err := Parse([]byte(`{"exceptions":{"signers":["o=acme"],"max_duration":"30d"},` +
		`"requirements":[` + strings.Join(requirements, ",") + `]}`))
	must.OK(b, err)
	return c
}

func worstFacts(evidence func(i int) Evidence, carry bool) Facts {
	f := Facts{Attested: true, Targets: []string{"main"}}
	for i := range 100 {
		email := fmt.Sprintf("a%d@example.org", i)
		f.Authors = append(f.Authors, ledger.Author{Name: fmt.Sprint("Author ", i), Email: email})
	}
	for i := range MaxTopics {
		f.Evidence = append(f.Evidence, evidence(i))
	}
	if !carry {
		return f
	}
	for i := range 20 {
		f.Sources = append(f.Sources, Source{Commit: fmt.Sprintf("%040d", i), SameTree: true,
			Authorship: authors.Authorship{Authors: f.Authors[:25]}})
	}
	for i := range MaxTopics {
		e := evidence(MaxTopics + i)
		e.Source = i%20 + 1
		f.Carried = append(f.Carried, e)
	}
	return f
}

func worstExceptions() (list []Exception) {
	for i := range 200 {
		list = append(list, Exception{Attestation: fmt.Sprintf("att_x%04d", i), Requirement: fmt.Sprintf("r%d", i),
			Signer: identity.DN{CN: "sec", O: "acme"}, RecordedAt: policyNow, Until: policyNow.Add(time.Hour)})
	}
	return list
}

// worstNamed returns a passing attestation by the n-th person, who has a long name and many addresses.
func worstNamed(n int) Evidence {
	e := worstEvidence(n, "test:go")
	e.Signer.CN = fmt.Sprintf("%s%d", strings.Repeat("a", 250), worstSigner(n))
	for i := range 16 {
		e.Emails = append(e.Emails, fmt.Sprintf("Somebody.%04d.%d@Example.ORG", n, i))
	}
	return e
}

func worstVerdicts(f *Facts) {
	f.Verdicts = make(Verdicts)
	for _, e := range slices.Concat(f.Evidence, f.Carried) {
		for n := range MaxExpressions {
			f.Verdicts.Add(worstExpression(n), e.Attestation, Verdict{True: true})
		}
	}
}

// worstSigner returns the number of a signer: as many as are allowed have signed the commit's own
// evidence, and as many others what carries.
func worstSigner(n int) int { return n/MaxTopics*MaxSigners + n%MaxSigners }

// worstEvidence returns a passing attestation by the n-th person.
func worstEvidence(n int, predicate string) Evidence {
	return Evidence{
		Attestation: fmt.Sprintf("att_%026d", n), Predicate: predicate, PredicateType: "https://example.org/test/v1",
		Signer: identity.DN{CN: fmt.Sprintf("person-%d", worstSigner(n)), OU: "engineering", O: "acme"}, Person: int64(n + 1),
		Status: ledger.Pass, RecordedAt: policyNow.Add(-time.Minute),
	}
}
