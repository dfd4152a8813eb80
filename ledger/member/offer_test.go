package member_test

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/member"
)

// The host names the orgs that may use a provider. Without names, those may that were listed.
func TestOrgsOfProviders(t *testing.T) {
	providers := member.Providers{issuer: {"acme", "globex"}, "https://any.example": {"*"}, "https://old.example": nil}
	for name, test := range map[string]struct {
		issuer, org    string
		isListed, want bool
	}{
		"named":                  {issuer, "acme", false, true},
		"listed, but not named":  {issuer, "hooli", true, false},
		"another case":           {issuer, "Acme", false, false},
		"the list has a star":    {"https://any.example", "hooli", false, true},
		"no names, listed":       {"https://old.example", "hooli", true, true},
		"no names, not listed":   {"https://old.example", "acme", false, false},
		"another issuer":         {issuer + "/", "acme", false, false},
		"another issuer, listed": {issuer + "/", "acme", true, true},
	} {
		if got := providers.MayUse(test.issuer, test.org, test.isListed); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
		if got := providers.Check(test.issuer, test.org, test.isListed) == nil; got != test.want {
			t.Errorf("%s: members and rules are accepted: %t, want %t", name, got, test.want)
		}
	}
	if err := member.Providers(nil).Check(issuer, "acme", false); err != nil {
		t.Errorf("without providers: %v", err)
	}
	if member.Providers(nil).MayUse(issuer, "acme", false) {
		t.Error("without providers, an account can sign in")
	}
}

// A first sign-in needs no consent only if no other org knows the account or would admit it.
func TestOffers(t *testing.T) {
	rules := []member.Rule{{NewRule: member.NewRule{Issuer: issuer, Claim: "groups", Value: "dev", Role: member.Reader,
		DN: "cn={sub},ou=people-dev,o=acme"}}}
	nameless := []member.Rule{{NewRule: rules[0].NewRule}}
	nameless[0].DN = "cn={login},ou=people-dev,o=acme"
	current := member.Member{ID: "mem_1", DN: "cn=x,ou=people-dev,o=acme", Role: member.Reader, SignedInAt: 1}
	added := current
	added.SignedInAt = 0
	byRule, removed, removedByRule := current, current, current
	byRule.ByRule, removed.RemovedAt = true, 1
	removedByRule.ByRule, removedByRule.RemovedAt = true, 1
	in := func(org string, m member.Member, rules []member.Rule) member.Standing {
		return member.Standing{Org: org, Member: m, Rules: rules, MayUse: true}
	}
	a, b := in("a", member.Member{}, rules), in("b", member.Member{}, rules)
	closed := func(s member.Standing) member.Standing {
		s.MayUse = false
		return s
	}

	type orgs = []member.Standing
	for name, test := range map[string]struct {
		standings orgs
		want      string // with a + if the person must agree
	}{
		"no org":                       {nil, ""},
		"one org by a rule":            {orgs{in("acme", member.Member{}, rules)}, "acme"},
		"one org, without its name":    {orgs{in("acme", member.Member{}, nameless)}, "acme"},
		"a former member by a rule":    {orgs{in("acme", removedByRule, rules)}, "acme"},
		"removed by an admin":          {orgs{in("acme", removed, rules)}, ""},
		"an org that may not":          {orgs{closed(in("acme", current, rules))}, ""},
		"several orgs by rules":        {orgs{b, a}, "+a +b"},
		"one of them has no name":      {orgs{a, in("b", member.Member{}, nameless)}, "+a +b"},
		"a second org":                 {orgs{a, in("b", byRule, rules)}, "b +a"},
		"a second org again":           {orgs{in("a", removedByRule, rules), in("b", byRule, rules)}, "b +a"},
		"two orgs of a member":         {orgs{in("b", current, nil), in("a", byRule, rules)}, "a b"},
		"added by one org":             {orgs{in("acme", added, nil)}, "acme"},
		"added by a second org":        {orgs{in("a", added, nil), in("b", byRule, rules)}, "b +a"},
		"added by one, a rule of one":  {orgs{in("a", added, nil), b}, "+a +b"},
		"added, the first may not":     {orgs{in("a", added, nil), closed(in("b", current, nil))}, "+a"},
		"the first org no longer may":  {orgs{a, closed(in("b", current, nil))}, "+a"},
		"no rule of the first matches": {orgs{a, in("b", byRule, nil)}, "+a"},
		"the other org may not":        {orgs{a, closed(b)}, "a"},
	} {
		person := account(map[string][]string{"groups": {"dev"}, "sub": {"1"}})
		offers := member.Offers(test.standings, person, 7)
		var got []string
		for _, o := range offers {
			text := o.Org
			if o.Joins {
				text = "+" + text
			}
			got = append(got, text)
			for consent, want := range map[string]bool{"": !o.Joins, o.Org: true, "other": !o.Joins} {
				person.Consent = consent
				if got := member.MayJoin(offers, person, o.Org); got != want {
					t.Errorf("%s: may join %s with the consent %q: %t, want %t", name, o.Org, consent, got, want)
				}
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		person.Consent = "none"
		if member.MayJoin(offers, person, "none") {
			t.Errorf("%s: may join an org without an offer", name)
		}
	}
}
