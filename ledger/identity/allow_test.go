package identity_test

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// entryOf returns a request to admit what e says, which is otherwise complete.
func entryOf(e ledger.SigstoreEntry) identity.NewIdentity {
	if e.TrustedRoot == "" {
		e.TrustedRoot = "public-good"
	}
	if e.Issuer == "" {
		e.Issuer = "https://ci.example"
	}
	return identity.NewIdentity{Kind: identity.SigstoreIdentity, DN: "cn=ci,ou=build,o=acme", Sigstore: &e,
		May: identity.Predicates{"test:*"}}
}

// An entry names whose certificates it admits: a subject, patterns of one owner, or a repository.
func TestEntriesAccepted(t *testing.T) {
	for _, e := range []ledger.SigstoreEntry{
		{Subject: "rita@acme.example"},
		{Subject: "https://forge.example/acme/api/.ci/x.yml@refs/heads/main"},
		{Subject: "https://forge.example/acme/*"},
		{Subject: "spiffe://acme.example/ci/*"},
		{RepositoryID: "1"},
		{RepositoryID: "1", Subject: "*"},
		{RepositoryID: "1", Ref: "*", Workflow: "*", Environment: "production", Commit: ledger.CommitAny},
		{Subject: strings.Repeat("x", 512)},
	} {
		i, err := entryOf(e).Identity()
		if err != nil {
			t.Errorf("%+v: %v", e, err)
			continue
		}
		if digest, err := i.Digest(); err != nil || digest != i.Fingerprint || i.DN != "cn=ci,ou=build,o=acme" ||
			!i.May.Match("test:go") || i.May.Match("build:x") {
			t.Errorf("%+v: got %+v with the digest %s, %v", e, i, digest, err)
		}
	}
}

// An entry that would admit every account, or is not complete, is refused.
func TestEntriesRefused(t *testing.T) {
	with := func(change func(*identity.NewIdentity)) identity.NewIdentity {
		n := entryOf(ledger.SigstoreEntry{Subject: "rita@acme.example"})
		change(&n)
		return n
	}
	for name, test := range map[string]struct {
		n     identity.NewIdentity
		field string
	}{
		"neither subject nor repository": {entryOf(ledger.SigstoreEntry{Ref: "refs/heads/main"}), "sigstore.subject"},
		"every account":                  {entryOf(ledger.SigstoreEntry{Subject: "*"}), "sigstore.subject"},
		"a host": {entryOf(ledger.SigstoreEntry{Subject: "https://forge.example/*"}),
			"sigstore.subject"},
		"a part of an owner": {entryOf(ledger.SigstoreEntry{Subject: "https://forge.example/acme*"}),
			"sigstore.subject"},
		"a pattern of hosts": {entryOf(ledger.SigstoreEntry{Subject: "https://*/acme/api"}), "sigstore.subject"},
		"no host":            {entryOf(ledger.SigstoreEntry{Subject: "https:///acme/*"}), "sigstore.subject"},
		"no owner": {entryOf(ledger.SigstoreEntry{Subject: "https://forge.example//*"}),
			"sigstore.subject"},
		"no URL":        {entryOf(ledger.SigstoreEntry{Subject: "forge/acme/api/*"}), "sigstore.subject"},
		"all addresses": {entryOf(ledger.SigstoreEntry{Subject: "*@acme.example"}), "sigstore.subject"},
		"a pattern of issuers": {entryOf(ledger.SigstoreEntry{Subject: "a@b.example", Issuer: "https://*"}),
			"sigstore.issuer"},
		"a pattern of repositories": {entryOf(ledger.SigstoreEntry{RepositoryID: "1*"}), "sigstore.repository_id"},
		"a pattern of environments": {entryOf(ledger.SigstoreEntry{RepositoryID: "1", Environment: "*"}),
			"sigstore.environment"},
		"another commit": {entryOf(ledger.SigstoreEntry{RepositoryID: "1", Commit: "all"}), "sigstore.commit"},
		"a name that is not a root": {entryOf(ledger.SigstoreEntry{RepositoryID: "1", TrustedRoot: "A/B"}),
			"sigstore.trusted_root"},
		"an invisible character": {entryOf(ledger.SigstoreEntry{Subject: "a\u200b@b.example"}), "sigstore.subject"},
		"a long subject":         {entryOf(ledger.SigstoreEntry{Subject: strings.Repeat("x", 513)}), "sigstore.subject"},
		"no issuer":              {with(func(n *identity.NewIdentity) { n.Sigstore.Issuer = "" }), "sigstore.issuer"},
		"no trusted root": {with(func(n *identity.NewIdentity) { n.Sigstore.TrustedRoot = "" }),
			"sigstore.trusted_root"},
		"no entry":          {with(func(n *identity.NewIdentity) { n.Sigstore = nil }), "sigstore"},
		"no predicates":     {with(func(n *identity.NewIdentity) { n.May = nil }), "may"},
		"no DN":             {with(func(n *identity.NewIdentity) { n.DN = "" }), "dn"},
		"an incomplete DN":  {with(func(n *identity.NewIdentity) { n.DN = "cn=ci" }), "dn"},
		"a key":             {with(func(n *identity.NewIdentity) { n.PEM = "x" }), "pem"},
		"an e-mail address": {with(func(n *identity.NewIdentity) { n.Email = "a@b.example" }), "email"},
		"a pattern of DNs":  {with(func(n *identity.NewIdentity) { n.DNPattern = "o=acme" }), "dn_pattern"},
		"an entry of a key": {with(func(n *identity.NewIdentity) { n.Kind = identity.KeyIdentity }), "sigstore"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.n.Identity()
			ledgertest.WantCode(t, err, ledger.CodeInvalidField)
			ledgertest.WantField(t, err, test.field)
		})
	}
}

// The predicates of an entry can be changed. An entry has no address and no pattern of DNs.
func TestEntriesChanged(t *testing.T) {
	i := ledgertest.Registered("idn_a", entryOf(ledger.SigstoreEntry{RepositoryID: "1"}))
	changed, err := i.Changed(identity.Change{May: &identity.Predicates{"build:*"}})
	if err != nil || !changed.May.Match("build:x") || changed.May.Match("test:go") {
		t.Errorf("got %v, %v", changed.May, err)
	}
	changed, err = i.Changed(identity.Change{May: &identity.Predicates{"*"}})
	if err != nil || !changed.May.Match("build:x") {
		t.Errorf("got %v, %v", changed.May, err)
	}
	for field, change := range map[string]identity.Change{
		"may": {May: &identity.Predicates{}}, "email": {Email: new("a@b.example")}, "dn_pattern": {DNPattern: new("o=acme")},
	} {
		_, err := i.Changed(change)
		ledgertest.WantField(t, err, field)
	}
}
