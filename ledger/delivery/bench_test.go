package delivery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// BenchmarkJudge judges deliveries in which every commit has a review of the 500 commits before it. Ten people review
// in turns. Each commit needs one or two of them.
func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{20, 1000, 10_000} {
		for _, needed := range []int{1, 2} {
			b.Run(fmt.Sprintf("%d commits with %d of 10 reviewers each", n, needed), func(b *testing.B) {
				commits, c := reviewed(b, n, needed)
				b.ReportAllocs()
				for b.Loop() {
					if _, gaps := Judge(c, commits, Base{Follows: true}, now); len(gaps) > 1 { // the head has one review
						b.Fatalf("%d gaps", len(gaps))
					}
				}
			})
		}
	}
}

// reviewed returns a linear history of n commits by one author, newest first, and a contract that needs the given
// number of reviews for each commit. The newest commit is tested.
func reviewed(b *testing.B, n, needed int) ([]Commit, *policy.Contract) {
	b.Helper()
	threshold := fmt.Sprintf(`"name":"review","threshold":%d`, needed)
	c := must.Get(policy.Parse([]byte(strings.Replace(contract, `"name":"review"`, threshold, 1))))(b)
	name := func(i int) string { return fmt.Sprintf("c%d", i) }
	commits := make([]Commit, n)
	wrote := &authors.Authorship{Proven: true, Several: true, Authors: []ledger.Author{{Name: "max"}}}
	for i := range commits {
		base := name(min(n, i+lineage.MaxSpan))
		f := &policy.Facts{Attested: true, Proven: true, Authors: wrote.Authors, RegisteredAt: 1,
			Spans: map[string]*authors.Authorship{base: wrote}}
		f.Evidence = []policy.Evidence{{Attestation: fmt.Sprintf("att_%06d", n-i), Predicate: "review:code",
			Status: ledger.Pass, Signer: identity.DN{CN: fmt.Sprint("rita", i%10)}, Base: base, RecordedAt: now - 1000,
			WhilePromotable: true}}
		commits[i] = Commit{lineage.Shipped{SHA: name(i), Parents: []string{name(i + 1)}, Known: true}, f}
	}
	head := commits[0].Facts
	head.Evidence = append(head.Evidence, policy.Evidence{Attestation: "att_test", Predicate: "test:go",
		Status: ledger.Pass, Signer: identity.DN{CN: "ci"}, RecordedAt: now - 1000, WhilePromotable: true})
	return commits, &c
}
