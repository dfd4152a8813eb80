package member_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
)

const issuer = "https://idp.example"

func account(claims map[string][]string) member.Account {
	return member.Account{Issuer: issuer, Subject: "1", Claims: claims}
}

// A rule admits accounts of its issuer with its claim, whose value is the text or in the list.
func TestRulesMatchClaims(t *testing.T) {
	rule := member.NewRule{Issuer: issuer, Claim: "groups", Value: "dev", Role: member.Reader,
		DN: "cn={sub},ou=people-dev,o=acme"}
	for name, test := range map[string]struct {
		account member.Account
		want    bool
	}{
		"the text":      {account(map[string][]string{"groups": {"dev"}}), true},
		"in the list":   {account(map[string][]string{"groups": {"ops", "dev"}}), true},
		"another text":  {account(map[string][]string{"groups": {"developers"}}), false},
		"another case":  {account(map[string][]string{"groups": {"Dev"}}), false},
		"another claim": {account(map[string][]string{"roles": {"dev"}}), false},
		"no claim":      {account(nil), false},
		"another provider": {
			member.Account{Issuer: "https://other.example", Claims: map[string][]string{"groups": {"dev"}}}, false,
		},
	} {
		if got := rule.Match(test.account); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// A rule can be about the account, and not about the token, the client or the sign-in. Those that earlier
// releases accepted admit nobody.
func TestProtocolClaims(t *testing.T) {
	for claim, want := range map[string]bool{
		"iss": true, "aud": true, "azp": true, "exp": true, "iat": true, "nbf": true, "auth_time": true, "nonce": true,
		"acr": true, "amr": true, "at_hash": true, "c_hash": true, "s_hash": true, "jti": true, "sid": true, "typ": true,
		"token_use": true, "ver": true, "AUD": true, "email_verified": true,
		"idp": true, "nonce_supported": true, "tid": true, "cid": true, "rat": true, "uti": true, "appid": true,
		"is_private_email": true, "updated_at": true, "act": true, "cnf": true, "origin_jti": true,
		"sub": false, "groups": false, "hd": false, "email": false, "audience": false, "roles": false, "oid": false,
		"upn": false, "preferred_username": false, "wids": false, "realm_access": false, "groups_direct": false,
		"cognito:groups": false, "amr_groups": false,
	} {
		rule := member.NewRule{Issuer: issuer, Claim: claim, Value: "x", Role: member.Reader,
			DN: "cn={sub},ou=people-dev,o=acme"}
		if got := rule.Check() != nil; got != want {
			t.Errorf("%s is refused: %t, want %t", claim, got, want)
		}
		if got := rule.Match(account(map[string][]string{claim: {"x"}})); got == want {
			t.Errorf("%s admits: %t, want %t", claim, got, !want)
		}
	}
}

// Of several rules, the one with the highest role counts, and of those the first. The decision of
// an admin takes precedence over rules, and a DN never changes.
func TestAccountsAreAdmitted(t *testing.T) {
	rule := func(value string, role member.Role, dn string) member.Rule {
		return member.Rule{ID: dn, NewRule: member.NewRule{Issuer: issuer, Claim: "groups", Value: value, Role: role,
			DN: "cn=" + dn + ",ou=people-dev,o=acme"}}
	}
	rules := []member.Rule{rule("dev", member.Reader, "r"), rule("ops", member.Maintainer, "m"),
		rule("dev", member.Maintainer, "n"), rule("root", member.Admin, "{login}")}
	known := member.Member{ID: "mem_1", DN: "cn=x,ou=people-dev,o=acme", Role: member.Reader, Name: "Before"}
	removed, byRule, removedByRule := known, known, known
	removed.RemovedAt, byRule.ByRule = 1, true
	removedByRule.RemovedAt, removedByRule.ByRule = 1, true

	for name, test := range map[string]struct {
		before member.Member
		groups []string
		want   string // role and cn; empty: not admitted
	}{
		"by one rule":   {member.Member{}, []string{"ops"}, "maintainer m"},
		"by several":    {member.Member{}, []string{"dev", "ops"}, "maintainer m"},
		"by the second": {member.Member{}, []string{"dev"}, "maintainer n"},
		"by no rule":    {member.Member{}, []string{"sales"}, ""},
		"by an admin":   {known, nil, "reader x"},
		"by an admin, whom a rule would give more": {known, []string{"ops"}, "reader x"},
		"removed by an admin":                      {removed, []string{"ops"}, ""},
		"the rule gives more":                      {byRule, []string{"ops"}, "maintainer x"},
		"no rule any more":                         {byRule, nil, ""},
		"a rule again":                             {removedByRule, []string{"ops"}, "maintainer x"},
	} {
		a := account(map[string][]string{"groups": test.groups})
		a.Name = "Ann"
		after, err := member.Admit(test.before, rules, a, 7)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := ""
		if after.RemovedAt == 0 {
			cn, _, _ := strings.Cut(strings.TrimPrefix(after.DN, "cn="), ",")
			got = after.Role.String() + " " + cn
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		if isNew := after.Name == "Ann" && after.SignedInAt == 7; isNew != (test.want != "") {
			t.Errorf("%s: the name is %q, signed in at %v", name, after.Name, after.SignedInAt)
		}
	}
	root := account(map[string][]string{"groups": {"root"}})
	if after, err := member.Admit(member.Member{}, rules, root, 7); err == nil {
		t.Errorf("an account without the claim of its DN became %v", after)
	}
}

// After a change by an admin, rules no longer decide.
func TestChangesOfMembers(t *testing.T) {
	yes, no, admin := true, false, member.Admin
	m := member.Member{Role: member.Reader, ByRule: true}
	for name, test := range map[string]struct {
		before member.Member
		change member.Change
		want   member.Member
	}{
		"the role":      {m, member.Change{Role: &admin}, member.Member{Role: member.Admin}},
		"removed":       {m, member.Change{Removed: &yes}, member.Member{Role: member.Reader, RemovedAt: 7}},
		"removed again": {member.Member{RemovedAt: 3}, member.Change{Removed: &yes}, member.Member{RemovedAt: 3}},
		"restored":      {member.Member{RemovedAt: 3}, member.Change{Removed: &no}, member.Member{}},
	} {
		if got := test.change.Apply(test.before, 7); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// The DN of a rule has the texts of claims, which cannot add attributes to it.
func TestNamesOfRules(t *testing.T) {
	claims := map[string][]string{"login": {"ann"}, "odd": {"ann,o=evil"}, "bidi": {"a\u202eb"}, "list": {"a", "b"},
		"long": {string(make([]byte, 3000))}, "empty": {""}}
	for template, want := range map[string]string{
		"cn={login},ou=people-dev,o=acme":   "cn=ann,ou=people-dev,o=acme",
		"cn={login}-x,ou=people-dev,o=acme": "cn=ann-x,ou=people-dev,o=acme",
		"cn={odd},ou=people-dev,o=acme":     `cn=ann\,o\=evil,ou=people-dev,o=acme`,
		"cn={bidi},ou=people-dev,o=acme":    "",
		"cn={list},ou=people-dev,o=acme":    "",
		"cn={none},ou=people-dev,o=acme":    "",
		"cn={empty},ou=people-dev,o=acme":   "",
		"cn={long},ou=people-dev,o=acme":    "",
		"cn=x,ou={login},o=acme":            "",
	} {
		dn, err := member.NewRule{DN: template}.NameOf(account(claims))
		if want == "" {
			if err == nil {
				t.Errorf("%s: got %s, want an error", template, dn)
			}
			continue
		}
		if err != nil || dn.Fold() != want && dn.String() != want {
			t.Errorf("%s: got %s, %v; want %s", template, dn, err, want)
		}
	}
}

// A rule that is invalid names the field.
func TestInvalidRules(t *testing.T) {
	valid := member.NewRule{Issuer: issuer, Claim: "groups", Value: "dev", Role: member.Reader,
		DN: "cn={login},ou=people-dev,o=acme"}
	must.OK(t, valid.Check())
	for name, test := range map[string]struct {
		change func(*member.NewRule)
		field  string
	}{
		"no issuer":       {func(n *member.NewRule) { n.Issuer = "" }, "issuer"},
		"without TLS":     {func(n *member.NewRule) { n.Issuer = "http://idp.example" }, "issuer"},
		"a query":         {func(n *member.NewRule) { n.Issuer += "?a=b" }, "issuer"},
		"an empty query":  {func(n *member.NewRule) { n.Issuer += "?" }, "issuer"},
		"no claim":        {func(n *member.NewRule) { n.Claim = "" }, "claim"},
		"email_verified":  {func(n *member.NewRule) { n.Claim = "email_verified" }, "claim"},
		"the client":      {func(n *member.NewRule) { n.Claim = "aud" }, "claim"},
		"in another case": {func(n *member.NewRule) { n.Claim = "Azp" }, "claim"},
		"client in a DN":  {func(n *member.NewRule) { n.DN = "cn={sub},ou=people-{aud},o=acme" }, "dn"},
		"no value":        {func(n *member.NewRule) { n.Value = "" }, "value"},
		"a control":       {func(n *member.NewRule) { n.Value = "a\n" }, "value"},
		"no role":         {func(n *member.NewRule) { n.Role = 0 }, "role"},
		"no DN":           {func(n *member.NewRule) { n.DN = "" }, "dn"},
		"of a CI job":     {func(n *member.NewRule) { n.DN = "cn={login},ou=ci-build,o=acme" }, "dn"},
		"no unit":         {func(n *member.NewRule) { n.DN = "cn={login},ou=people-,o=acme" }, "dn"},
		"no organization": {func(n *member.NewRule) { n.DN = "cn={login},ou=people-dev" }, "dn"},
		"open brace":      {func(n *member.NewRule) { n.DN = "cn={login,ou=people-dev,o=acme" }, "dn"},
		"closing brace":   {func(n *member.NewRule) { n.DN = "cn=login},ou=people-dev,o=acme" }, "dn"},
		"an escape":       {func(n *member.NewRule) { n.DN = `cn=a\,b,ou=people-dev,o=acme` }, "dn"},
	} {
		n := valid
		test.change(&n)
		e, ok := errors.AsType[*ledger.Error](n.Check())
		if !ok || e.Code != ledger.CodeInvalidField || e.Fields[0].Field != test.field {
			t.Errorf("%s: got %v, want an error about %s", name, e, test.field)
		}
	}
}
