package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/policy/lint"
)

func TestPeople(t *testing.T) {
	const review = `{"state":"PROMOTABLE","predicate":"review:*"`
	tester, rita := key(1, "cn=ci,ou=build,o=acme", "test:*"), key(2, "cn=rita,ou=review,o=acme", "review:*")
	ops := key(3, "cn=ops,ou=platform,o=acme", "deploy:*")
	both := key(4, "cn=bob,ou=dev,o=acme", "test:*", "review:*")
	signIn := key(4, "cn=bob,ou=review,o=acme", "review:*") // counts once with both
	unlimited := key(5, "cn=old,ou=dev,o=acme")
	const apart = `{"state":"ATTESTED","predicate":"test:*"},` + review + `,"distinct_from":["ATTESTED"]},` + deployByOps
	const together = `{"state":"ATTESTED","predicate":"test:*"},` + review + "}," + deployByOps
	for _, test := range []struct {
		name, requirements string
		signers            []lint.Signer
		want               []string // parts of the messages
	}{
		{"each has a job", together, []lint.Signer{tester, rita, ops}, nil},
		{"a tester who reviews", together, []lint.Signer{tester, rita, ops, both},
			[]string{"1 person can sign for all requirements of ATTESTED and PROMOTABLE alone"}},
		{"a tester who reviews under another name", together,
			[]lint.Signer{tester, ops, key(4, "cn=bob,ou=dev,o=acme", "test:*"), signIn}, []string{"1 person can sign for all"}},
		{"two reviews", `{"state":"ATTESTED","predicate":"test:*"},` + review + `,"threshold":2},` + deployByOps,
			[]lint.Signer{tester, rita, ops, both}, nil},
		{"distinct", apart, []lint.Signer{tester, rita, ops, both}, nil},
		{"a lint that the tester does not sign",
			together + `,{"state":"ATTESTED","predicate":"lint:*","signers":["ou=build"]}`,
			[]lint.Signer{tester, rita, ops, both, key(1, "cn=ci,ou=build,o=acme", "lint:*")}, nil},
		{"a lint of some paths",
			together + `,{"state":"ATTESTED","predicate":"lint:*","signers":["ou=build"],"paths":["a/**"]}`,
			[]lint.Signer{tester, rita, ops, both, key(1, "cn=ci,ou=build,o=acme", "lint:*")},
			[]string{"1 person can sign for all"}},

		{"a key without may", apart, []lint.Signer{tester, rita, ops, unlimited},
			[]string{"cn=old,ou=dev,o=acme may attest every predicate"}},
		{"a key without may, and signers", testByCI + "," + reviewByAda + "," + deployByOps,
			[]lint.Signer{tester, rita, ops, unlimited}, nil},
	} {
		c := parseContract(t, `{"requirements":[`+test.requirements+`]}`)
		review := lint.Check(c, facts(c, nil, test.signers...))
		matches := func(f lint.Finding, want string) bool { return strings.Contains(f.Message, want) }
		if !slices.EqualFunc(review.Findings, test.want, matches) {
			t.Errorf("%s: got %+v, want %q", test.name, review.Findings, test.want)
		}
	}
}

func TestSameNames(t *testing.T) {
	c := parseContract(t, `{"requirements":[`+testByCI+","+reviewByAda+","+deployByOps+`]}`)
	f := facts(c, nil, ci, reviewer, platform)
	f.SameNames = []lint.SameName{{Name: "rita", DNs: []string{"cn=rita,ou=a,o=acme", "cn=Rita,ou=b,o=acme"}}}
	review := lint.Check(c, f)
	const want = `cn=rita,ou=a,o=acme and cn=Rita,ou=b,o=acme have the name "rita", and count as 2 people since an upgrade`
	if len(review.Findings) != 1 || review.Findings[0].Message != want || review.Findings[0].Code != lint.FindingSameName {
		t.Errorf("got %+v", review.Findings)
	}
}
