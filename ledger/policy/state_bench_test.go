package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/assign"
)

// The worst cases within all bounds of contracts and commits: what the writer decides at
// once, for one attestation, after what takes longer was prepared.
func BenchmarkStateWorst(b *testing.B) {
	long := strings.Repeat("a", 200)
	for name, test := range map[string]struct {
		requirement func(i int) string
		evidence    func(i int) Evidence
	}{
		"people": {
			func(i int) string { return `"state":"ATTESTED","predicate":"test:*","threshold":100` },
			func(i int) Evidence { return worstEvidence(i, "test:go") },
		},
		"predicates": {
			func(i int) string { return fmt.Sprintf(`"state":"PROMOTABLE","predicate":"test:%s%d"`, long, i) },
			func(i int) Evidence { return worstEvidence(i, fmt.Sprintf("test:%s%d", long, i)) },
		},
		"slots": {
			func(i int) string { return `"state":"PROMOTABLE","predicate":"test:*","max_age":"90d"` },
			func(i int) Evidence {
				e := worstEvidence(i, "test:go")
				e.Person, e.Signer, e.Slot = 1, identity.DN{CN: "ci"}, fmt.Sprintf("sha256:%064d", i)
				return e
			},
		},
		"authors": {
			func(i int) string { return `"state":"PROMOTABLE","predicate":"test:*","exclude_author":true` },
			func(i int) Evidence {
				e := worstEvidence(i, "test:go")
				for n := range 16 {
					e.Emails = append(e.Emails, fmt.Sprintf("Somebody.%04d.%d@Example.ORG", i, n))
				}
				return e
			},
		},
		"names": {
			func(i int) string {
				var patterns []string
				for n := range 20 {
					patterns = append(patterns, fmt.Sprintf("%q", fmt.Sprintf("cn=*a*%d-%d", i, n)))
				}
				return `"state":"PROMOTABLE","predicate":"test:*","signers":[` + strings.Join(patterns, ",") + `]`
			},
			func(i int) Evidence { return worstEvidence(i, "test:go") },
		},
		"wildcards": {
			func(i int) string {
				var patterns []string
				for n := range 20 {
					patterns = append(patterns, fmt.Sprintf("%q", "cn="+strings.Repeat("*a", 120)+fmt.Sprintf("*%d-%d", i, n)))
				}
				return `"state":"PROMOTABLE","predicate":"test:*","signers":[` + strings.Join(patterns, ",") + `]`
			},
			func(i int) Evidence {
				e := worstEvidence(i%480, "test:go")
				e.Person, e.Signer.CN = int64(i+1), fmt.Sprintf("%s%d", strings.Repeat("a", 250), i%480)
				return e
			},
		},
		"distinct": {
			func(i int) string {
				state, from := "ATTESTED", ""
				if i >= 100 {
					state, from = "PROMOTABLE", `,"distinct_from":["ATTESTED"]`
				}
				return fmt.Sprintf(`"state":%q,"predicate":"test:%03d*","threshold":7%s`, state, i, from)
			},
			func(i int) Evidence {
				e := worstEvidence(i, fmt.Sprintf("test:%03d", (i*37+i/200*11)%200))
				e.Person = int64(i%150 + 1)
				return e
			},
		},
		"exceptions": {
			func(i int) string {
				return fmt.Sprintf(`"name":"r%d","state":"PROMOTABLE","predicate":"test:*","threshold":100`, i)
			},
			func(i int) Evidence { return worstEvidence(i, "test:go") },
		},
	} {
		b.Run(name, func(b *testing.B) {
			c, f := worstContract(b, test.requirement), worstFacts(test.evidence)
			if name == "exceptions" {
				f.Exceptions = worstExceptions()
			}
			c.Prepare(&f)
			for b.Loop() {
				c.State(f, policyNow)
			}
		})
	}
}

func worstContract(b *testing.B, requirement func(i int) string) Contract {
	var requirements []string
	for i := range assign.MaxRequirements {
		requirements = append(requirements, "{"+requirement(i)+"}")
	}
	c, err := Parse([]byte(`{"exceptions":{"signers":["o=acme"],"max_duration":"30d"},` +
		`"requirements":[` + strings.Join(requirements, ",") + `]}`))
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func worstFacts(evidence func(i int) Evidence) Facts {
	f := Facts{Attested: true, Targets: []string{"main"}, Memo: new(testMemo)}
	for i := range 100 {
		email := fmt.Sprintf("a%d@example.org", i)
		f.Authors = append(f.Authors, ledger.Author{Name: fmt.Sprint("Author ", i), Email: email})
	}
	for i := range MaxTopics {
		f.Evidence = append(f.Evidence, evidence(i))
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

// worstEvidence returns a passing attestation by the n-th person.
func worstEvidence(n int, predicate string) Evidence {
	return Evidence{
		Attestation: fmt.Sprintf("att_%026d", n), Predicate: predicate, PredicateType: "https://example.org/test/v1",
		Signer: identity.DN{CN: fmt.Sprintf("person-%d", n), OU: "engineering", O: "acme"}, Person: int64(n + 1),
		Status: ledger.Pass, RecordedAt: policyNow.Add(-time.Minute),
	}
}
