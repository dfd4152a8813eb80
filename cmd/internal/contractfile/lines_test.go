package contractfile

import (
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/policytest"
)

// TestLinesShowEveryChange checks that every difference between two contracts shows in
// their lines: 'policy apply' prints the changes from them.
func TestLinesShowEveryChange(t *testing.T) {
	policytest.EachVariant(t, func(t *testing.T, base, variant policy.Contract) {
		if lines := Lines(variant); slices.Equal(lines, Lines(base)) {
			t.Errorf("the lines do not show the change: %q", lines)
		}
	})
}

func TestTypeLine(t *testing.T) {
	c, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","type":"https://slsa.dev/*"}]}`))
	must.OK(t, err)
	if got, want := Lines(c)[0], "ATTESTED needs type https://slsa.dev/*"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestYAMLHasEveryMember checks that a contract is the same after it was written as YAML
// and read again, by the present rules.
func TestYAMLHasEveryMember(t *testing.T) {
	policytest.EachVariant(t, func(t *testing.T, _, variant policy.Contract) {
		variant.Rules = policy.Rules
		text, err := YAML(policy.Policy{Contract: variant})
		must.OK(t, err)
		file, err := Read("policy.yaml", text)
		must.OK(t, err)
		if !file.Is(variant.Digest()) {
			t.Errorf("%s\nis read as %s, want %s", text, file.JSON(), variant.Canonical())
		}
	})
}

func TestLinesOfTrust(t *testing.T) {
	c, err := policy.Parse([]byte(`{"requirements":[{"name":"second","state":"PROMOTABLE","predicate":"review:*",` +
		`"distinct_from":["ATTESTED"],"where":"predicate.level == \"high\"","passkey":true}],"targets":"claimed",` +
		`"exceptions":{"signers":["ou=security","cn=boss"],"max_duration":"48h"}}`))
	must.OK(t, err)
	want := []string{
		`second: PROMOTABLE needs review:* distinct_from=[ATTESTED] where="predicate.level == \"high\"" passkey`,
		"targets claimed", "exceptions by ou=security or cn=boss max_duration=48h",
	}
	if got := Lines(c)[:3]; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}

	c.Rules = 0 // those of earlier releases
	if got := Lines(c); len(got) != 4 || !strings.HasPrefix(got[3], "radar ") {
		t.Errorf("the last line is %q, want that of the radar after three others", got[len(got)-1])
	}
}
