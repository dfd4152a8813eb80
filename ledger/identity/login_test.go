package identity_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// newKey returns a request for a key with e-mail addresses and logins.
func newKey(emails, logins []string) identity.NewIdentity {
	cert := ledgertest.CertIdentity(ledgertest.NewCert(ledgertest.NewRoot(), ledgertest.CIName(), ledgertest.NewP256(),
		ledgertest.AsSigner).Cert)
	return identity.NewIdentity{Kind: identity.KeyIdentity, PEM: cert.PEM, Emails: emails, Logins: logins}
}

func TestLogins(t *testing.T) {
	for given, want := range map[string]string{ // empty: refused
		"github:eve":                         "github:eve",
		"GitHub:Eve":                         "github:Eve",
		"github.com:eve":                     "github:eve",
		"gitlab.com:eve":                     "gitlab:eve",
		"codeberg.org:eve":                   "codeberg:eve",
		"github:dependabot[bot]":             "github:dependabot[bot]",
		"GitLab.Acme.Example:eve.x":          "gitlab.acme.example:eve.x",
		"git-1.acme.example:1":               "git-1.acme.example:1",
		"www.acme.example:eve":               "www.acme.example:eve",
		"www.github.com:eve":                 "",
		"users.noreply.github.com:eve":       "",
		"noreply.codeberg.org:eve":           "",
		"Users.NoReply.git.acme.example:eve": "",
		"eve":                                "",
		"github:":                            "",
		"github:-":                           "",
		":eve":                               "",
		"forge:eve":                          "",
		"https://github.com:eve":             "",
		"acme..example:eve":                  "",
		".example:eve":                       "",
		"github:eve@acme.example":            "",
		"github:eve:x":                       "",
		"github:e ve":                        "",
		"github:e\nve":                       "",
		"github:\u0435ve":                    "",
		"github:" + strings.Repeat("e", 248): "",
	} {
		got, err := newKey(nil, []string{given}).Identity()
		if want == "" {
			wantInvalid(t, given, err, "logins[0]")
		} else if err != nil || !slices.Equal(got.Logins, []string{want}) {
			t.Errorf("%q: %q, %v, want %q", given, got.Logins, err, want)
		}
	}

	many := make([]string, 17)
	for i := range many {
		many[i] = fmt.Sprint("github:eve", i)
	}
	_, err := newKey(nil, many).Identity()
	wantInvalid(t, "17 logins", err, "logins")
	got, err := newKey(nil, []string{"github:eve", "github.com:Eve", "gitlab:eve"}).Identity()
	if err != nil || !slices.Equal(got.Logins, []string{"github:eve", "gitlab:eve"}) {
		t.Errorf("one twice: %q, %v", got.Logins, err)
	}
	root := identity.NewIdentity{Kind: identity.RootIdentity, PEM: ledgertest.RootIdentity(ledgertest.NewRoot().Cert).PEM,
		Logins: many[:1]}
	_, err = root.Identity()
	wantInvalid(t, "a root with a login", err, "logins")
	root.Logins, root.Emails = nil, []string{"ca@acme.example"}
	_, err = root.Identity()
	wantInvalid(t, "a root with addresses", err, "emails")
}

// The error about a host that no author has says which to use.
func TestHostsOfNoReplyAddressesAreNotForges(t *testing.T) {
	for given, want := range map[string]string{
		"users.noreply.github.com:eve": "(use github:eve)", "noreply.codeberg.org:eve": "(use codeberg:eve)",
		"www.gitlab.com:eve": "(use gitlab:eve)", "noreply.git.acme.example:eve": "(use git.acme.example:eve)",
	} {
		if _, err := newKey(nil, []string{given}).Identity(); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}

func TestEmailsOfAnIdentity(t *testing.T) {
	const a, b, c = "a@acme.example", "b@acme.example", "c@acme.example"
	for name, test := range map[string]struct {
		email  string
		emails []string
		want   []string // all of them
		field  string   // that is refused
	}{
		"one":               {a, nil, []string{a}, ""},
		"a list of one":     {"", []string{a}, []string{a}, ""},
		"several":           {"", []string{a, b}, []string{a, b}, ""},
		"the first of them": {a, []string{a, b}, []string{a, b}, ""},
		"one twice":         {"", []string{a, b, a}, []string{a, b}, ""},
		"another first":     {b, []string{a, b}, nil, "emails"},
		"no address":        {"", []string{a, "x"}, nil, "emails[1]"},
		"an empty one":      {"", []string{""}, nil, "emails[0]"},
		"too many":          {"", slices.Repeat([]string{a}, 17), nil, "emails"},
	} {
		n := newKey(test.emails, nil)
		n.Email = test.email
		got, err := n.Identity()
		if test.field != "" {
			wantInvalid(t, name, err, test.field)
			continue
		}
		if err != nil || !slices.Equal(got.Addresses(), test.want) || got.Email != test.want[0] ||
			len(got.Emails) == 1 {
			t.Errorf("%s: %q and %q, %v, want %q", name, got.Email, got.Emails, err, test.want)
		}
	}

	known, err := newKey([]string{a, b}, nil).Identity()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change identity.Change
		want   []string
	}{
		"nothing":        {identity.Change{}, []string{a, b}},
		"the first":      {identity.Change{Email: new(c)}, []string{c, b}},
		"to the second":  {identity.Change{Email: new(b)}, []string{b}},
		"none for first": {identity.Change{Email: new("")}, []string{b}},
		"all":            {identity.Change{Emails: new([]string{c, a, b})}, []string{c, a, b}},
		"to one":         {identity.Change{Emails: new([]string{c})}, []string{c}},
	} {
		if got, err := known.Changed(test.change); err != nil || !slices.Equal(got.Addresses(), test.want) {
			t.Errorf("%s: %q, %v, want %q", name, got.Addresses(), err, test.want)
		}
	}
}

// What identities of before say, and log, has the same bytes.
func TestNamesAreLoggedIfTheySayMore(t *testing.T) {
	for name, test := range map[string]struct {
		emails, logins []string
		want           bool
	}{
		"one address": {[]string{"a@acme.example"}, nil, false},
		"two":         {[]string{"a@acme.example", "b@acme.example"}, nil, true},
		"a login":     {nil, []string{"github:eve"}, true},
	} {
		i, err := newKey(test.emails, test.logins).Identity()
		if err != nil {
			t.Fatal(err)
		}
		e, err := i.Logged(ledger.IdentityAdded)
		if err != nil {
			t.Fatal(err)
		}
		body := string(ledger.Render(e))
		if got := strings.Contains(body, `"emails"`) || strings.Contains(body, `"logins"`); got != test.want {
			t.Errorf("%s: %s", name, body)
		}
	}
}

func wantInvalid(t *testing.T, what string, err error, field string) {
	t.Helper()
	var e *ledger.Error
	if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != field {
		t.Errorf("%s: %v, want an error about %s", what, err, field)
	}
}
