package idp_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/member"
)

func TestRead(t *testing.T) {
	got, err := idp.Read(strings.NewReader(`
- name: okta
  label: Okta
  issuer: https://acme.okta.com
  client_id: 0oa1
  client_secret: hunter2
  scopes: [openid, groups]
  orgs: [acme, globex]
- {name: keycloak, issuer: "http://127.0.0.1:8081/realms/acme", client_id: ledgerd, client_secret: 007}
- {name: any, issuer: https://any.example, client_id: a, client_secret: b, orgs: ["*"]}
`))
	must.OK(t, err)
	want := []idp.Config{
		{Name: "okta", Label: "Okta", Issuer: "https://acme.okta.com", ClientID: "0oa1", ClientSecret: "hunter2",
			Scopes: []string{"openid", "groups"}, Orgs: []string{"acme", "globex"}},
		{Name: "keycloak", Label: "keycloak", Issuer: "http://127.0.0.1:8081/realms/acme", ClientID: "ledgerd",
			ClientSecret: "007", Scopes: []string{"openid", "profile", "email"}},
		{Name: "any", Label: "any", Issuer: "https://any.example", ClientID: "a", ClientSecret: "b",
			Scopes: []string{"openid", "profile", "email"}, Orgs: []string{"*"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, want %#v", got, want)
	}

	orgs := member.Providers{"https://acme.okta.com": {"acme", "globex"}, "http://127.0.0.1:8081/realms/acme": nil,
		"https://any.example": {"*"}}
	if got := idp.Orgs(got); !reflect.DeepEqual(got, orgs) {
		t.Errorf("the orgs are %v, want %v", got, orgs)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if text := fmt.Sprintf(verb, got); strings.Contains(text, "hunter2") || strings.Contains(text, "68756e74657232") {
			t.Errorf("%s shows a secret: %s", verb, text)
		}
	}
}

// The error of a file says what is wrong, and quotes no secret.
func TestReadRefuses(t *testing.T) {
	const valid = "- {name: okta, issuer: https://acme.okta.com, client_id: a, client_secret: hunter2"
	for name, test := range map[string]struct{ text, want string }{
		"nothing":             {"", "not a list of providers"},
		"no list":             {"name: okta", "not a list of providers"},
		"an empty list":       {"[]", "0 providers"},
		"no YAML":             {"- {hunter2", "not valid YAML"},
		"two documents":       {valid + "}\n---\n" + valid + "}", "not a single valid YAML document"},
		"a text":              {"- hunter2", "line 1: a provider has the keys client_id"},
		"an unknown key":      {valid + ", secret: hunter2}", `line 1: unknown key "secret" (use client_id, client_secret`},
		"a key with no space": {"- client_secret:hunter2: x", `unknown key "client_secret" (use`},
		"a key twice":         {valid + ", name: other}", "duplicate key name"},
		"a secret as a list":  {strings.Replace(valid, "hunter2", "[hunter2]", 1) + "}", "must be a single value"},
		"no secret":           {strings.Replace(valid, "hunter2", `""`, 1) + "}", "client_secret of okta"},
		"a long secret":       {valid + strings.Repeat("hunter2", 200) + "}", "more than 1000 bytes"},
		"no name":             {strings.Replace(valid, "name: okta, ", "", 1) + "}", "name is missing"},
		"a name as a path":    {strings.Replace(valid, "okta", "a/b", 1) + "}", `name "a/b"`},
		"a name twice":        {valid + "}\n" + valid + "}", "line 2: another provider has the name okta"},
		"an issuer twice": {valid + "}\n" + strings.Replace(valid, "okta,", "again,", 1) + "}",
			"line 2: provider okta has the issuer https://acme.okta.com, too"},
		"an issuer over http": {strings.Replace(valid, "https:", "http:", 1) + "}", "does not begin with https://"},
		"no issuer":           {strings.Replace(valid, "https://acme.okta.com", `""`, 1) + "}", "issuer of okta is missing"},
		"no client":           {strings.Replace(valid, "client_id: a", `client_id: ""`, 1) + "}", "client_id of okta"},
		"scopes as a text":    {valid + ", scopes: openid email}", "scopes must be a list"},
		"no openid":           {valid + ", scopes: [email]}", "lack openid"},
		"two scopes in one":   {valid + `, scopes: [openid, "a b"]}`, `"a b" is not a scope`},
		"orgs as a text":      {valid + ", orgs: acme}", "orgs must be a list"},
		"no orgs":             {valid + ", orgs: []}", "orgs must be a list of 1 to 1000 values"},
		"too many orgs":       {valid + ", orgs: [" + strings.Repeat("a, ", 1001) + "]}", "orgs must be a list of 1 to 1000"},
		"no name of an org":   {valid + ", orgs: [Acme]}", `orgs of okta: "Acme" is not the name of an org`},
		"all orgs and one":    {valid + `, orgs: ["*", acme]}`, `"*" is not the name of an org (use names, or only "*"`},
		"a label with a line": {valid + `, label: "a\nb"}`, "label of okta"},
		"a large file":        {"#" + strings.Repeat(" ", 64<<10), "more than 65536 bytes"},
	} {
		_, err := idp.Read(strings.NewReader(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error with %q", name, err, test.want)
		}
	}
}
