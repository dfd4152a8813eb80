package policy

import (
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// People who are one individual count once, and none of them for a commit that one of them wrote,
// however much evidence there is. Each keeps its own results.
func TestIndividualsCountOnce(t *testing.T) {
	c := mustParse(t, `{"state":"PROMOTABLE","predicate":"review:*","threshold":2,"exclude_author":true}`)
	review := func(n int, person, individual int64, status ledger.Status) Evidence {
		e := signed(fmt.Sprintf("cn=p%d,ou=review,o=acme", person), "review:code", status).as(fmt.Sprint(n))
		e.Person, e.Individual = person, individual
		return e
	}
	author := []ledger.Author{{Name: "somebody"}}

	for name, test := range map[string]struct {
		evidence []Evidence
		writers  []int64
		want     ledger.State
	}{
		"two people": {[]Evidence{review(1, 1, 1, ledger.Pass), review(2, 2, 2, ledger.Pass)}, nil, ledger.Promotable},
		"one":        {[]Evidence{review(1, 1, 1, ledger.Pass), review(2, 2, 1, ledger.Pass)}, nil, ledger.Attested},
		"one and another": {[]Evidence{review(1, 1, 1, ledger.Pass), review(2, 2, 1, ledger.Pass),
			review(3, 3, 3, ledger.Pass)}, nil, ledger.Promotable},
		"a failure of the other": {[]Evidence{review(1, 1, 1, ledger.Fail), review(2, 2, 1, ledger.Pass),
			review(3, 3, 3, ledger.Pass)}, nil, ledger.Attested},
		"an author": {[]Evidence{review(1, 2, 1, ledger.Pass), review(2, 3, 3, ledger.Pass)}, []int64{1}, ledger.Attested},
	} {
		for _, others := range []int{0, 2 * maxCompared} { // with many, they are numbered in another way
			f := attested(test.evidence...)
			f.Authors, f.AuthorPeople = author, test.writers
			for n := range others {
				e := review(100+n, int64(100+n), 0, ledger.Pass)
				e.Predicate = "lint:go"
				f.Evidence = append([]Evidence{e}, f.Evidence...)
			}
			if got, _ := c.State(f, 1000); got != test.want {
				t.Errorf("%s, with %d others: %s, want %s", name, others, got, test.want)
			}
		}
	}
}
