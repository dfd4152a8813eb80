package size

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// sized returns a contract of the given size. The last requirements have the expressions, and the
// first pattern has the wildcards.
func sized(t testing.TB, requirements, patterns, wildcards, expressions int) *policy.Contract {
	t.Helper()
	list := make([]string, requirements)
	for i := range list {
		var signers []string
		for len(signers) < 21 && patterns > 0 {
			signers = append(signers, fmt.Sprintf(`"cn=%s%d-%d,o=acme"`, strings.Repeat("*-", wildcards), i, patterns))
			patterns, wildcards = patterns-1, 0
		}
		list[i] = fmt.Sprintf(`"state":"ATTESTED","predicate":"test:*","signers":[%s]`, strings.Join(signers, ","))
		if i >= requirements-expressions {
			list[i] += `,"where":"predicate.x == 1"`
		}
		list[i] = "{" + list[i] + "}"
	}
	c := must.Get(policy.Parse([]byte(`{"requirements":[` + strings.Join(list, ",") + `]}`)))(t)
	return &c
}

func TestContractBounds(t *testing.T) {
	large := Of(sized(t, 60, 300, 5, 11))
	for _, test := range []struct {
		name     string
		contract *policy.Contract
		replaced Size
		want     string // the error
	}{
		{"the largest", sized(t, 50, 256, 4, 10), Size{}, ""},
		{"one requirement more", sized(t, 51, 0, 0, 0), Size{}, "requirements: too many: 51 entries, at most 50"},
		{"one pattern more", sized(t, 50, 257, 0, 0), Size{},
			"too many patterns of signers: 257 in all lists together, at most 256"},
		{"one wildcard more", sized(t, 1, 1, 5, 0), Size{}, "too many *: 5 in a value of a pattern of signers, at most 4"},
		{"one expression more", sized(t, 50, 0, 0, 11), Size{}, "too many with where: 11, at most 10"},
		{"as large as the one before", sized(t, 60, 300, 5, 11), large, ""},
		{"smaller than the one before", sized(t, 55, 290, 2, 0), large, ""},
		{"larger than a large one", sized(t, 60, 301, 0, 0), large, "at most 300"},
		{"larger than a small one", sized(t, 51, 0, 0, 0), Of(sized(t, 1, 300, 0, 0)), "at most 50"},
	} {
		err := Check(test.contract, test.replaced)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// Every list of signers counts.
func TestPatternsOfAllLists(t *testing.T) {
	c, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"a","signers":["cn=a","cn=b"],
  "carry":["merge"],"carry_signers":["cn=c"]}],
  "exceptions":{"signers":["cn=d"]},"artifacts":{"signers":["cn=*e*"]}}`))
	if want := (Size{requirements: 1, patterns: 5, wildcards: 2}); err != nil || Of(&c) != want {
		t.Errorf("%+v, %v; want %+v", Of(&c), err, want)
	}
}

// What an earlier release has stored is derived as it was.
func TestLargeStoredContract(t *testing.T) {
	large := sized(t, 200, 4200, 0, 0)
	c, err := policy.ParseStored(large.Canonical())
	if err != nil || !IsLarge(&c) {
		t.Fatalf("large: %t, %v", IsLarge(&c), err)
	}
	d := c.Derive(policy.Facts{Attested: true, Evidence: []policy.Evidence{{Predicate: "test:go", Status: ledger.Pass,
		Signer: identity.DN{CN: "0-4200", O: "acme"}}}}, 1)
	if !d.Requirements[0].Met || d.Requirements[1].Met {
		t.Errorf("a stored contract is not evaluated: %+v", d.Requirements[:2])
	}
}
