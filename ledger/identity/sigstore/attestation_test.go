package sigstore_test

import (
	"crypto/x509"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

const (
	ciIssuer  = "https://ci.example"
	ciSubject = "https://forge.example/acme/api/.ci/release.yml@refs/heads/main"
)

// extensions are those of the certificates in these tests.
func extensions() map[int]string {
	return map[int]string{8: ciIssuer, 13: ledgertest.Commit, 14: "refs/heads/main", 15: "4711",
		18: "https://forge.example/acme/api/.ci/start.yml@refs/heads/main", 21: ciSubject + "/runs/1", 23: "production"}
}

// allows returns an org that trusts an instance, and admits what an entry does as an identity.
func allows(s *ledgertest.Sigstore, entries ...ledger.SigstoreEntry) *identity.Keyring {
	var ids []identity.Identity
	for i, e := range entries {
		e.TrustedRoot = "own"
		ids = append(ids, ledgertest.Registered("idn_"+string(rune('a'+i)), identity.NewIdentity{
			Kind: identity.SigstoreIdentity, Sigstore: &e, DN: "cn=release,ou=build,o=acme",
			May: identity.Predicates{"test:*"}}))
	}
	root := ledgertest.Must(identity.NewTrustedRoot("own", s.TrustedRoot(nil), sigstore.ParseRoot))
	root.Version = 1
	return ledgertest.Must(identity.NewKeyring(ids, sigstore.ParseRoot, root))
}

func bundle(s *ledgertest.Sigstore, leaf *ledgertest.Party) *ledgertest.Bundle {
	payload := ledgertest.Passed()
	return s.Bundle(leaf, payload, attestation.PAE(attestation.StatementType, payload), ledgertest.Now.Std())
}

// Each field of an entry must match the certificate, or the bundle is refused with both values.
func TestEntriesMatch(t *testing.T) {
	s := ledgertest.NewSigstore()
	signed := bundle(s, s.Leaf(ciSubject, extensions())).JSON()
	full := ledger.SigstoreEntry{
		Issuer: ciIssuer, Subject: ciSubject, RepositoryID: "4711", Ref: "refs/heads/main", Environment: "production",
		Workflow: "https://forge.example/acme/api/.ci/start.yml@refs/heads/main",
	}
	for name, test := range map[string]struct {
		change func(*ledger.SigstoreEntry)
		why    string // empty: it is admitted
	}{
		"all fields": {func(*ledger.SigstoreEntry) {}, ""},
		"only a subject": {func(e *ledger.SigstoreEntry) {
			*e = ledger.SigstoreEntry{Issuer: ciIssuer, Subject: ciSubject}
		}, ""},
		"only a repo": {func(e *ledger.SigstoreEntry) {
			*e = ledger.SigstoreEntry{Issuer: ciIssuer, RepositoryID: "4711"}
		}, ""},
		"a pattern":  {func(e *ledger.SigstoreEntry) { e.Subject = "https://forge.example/acme/*/release.yml@*" }, ""},
		"patterns":   {func(e *ledger.SigstoreEntry) { e.Ref, e.Workflow = "refs/*/main", "*start*" }, ""},
		"any commit": {func(e *ledger.SigstoreEntry) { e.Commit = ledger.CommitAny }, ""},
		"another issuer": {func(e *ledger.SigstoreEntry) { e.Issuer = "https://ci.example/" },
			`the issuer "https://ci.example/"`},
		"another subject": {func(e *ledger.SigstoreEntry) { e.Subject += "x" }, "the subject "},
		"the beginning of a subject": {func(e *ledger.SigstoreEntry) {
			e.Subject = strings.TrimSuffix(ciSubject, "main")
		}, "the subject "},
		"another pattern": {func(e *ledger.SigstoreEntry) { e.Subject = "https://forge.example/acme/*@refs/tags/*" },
			"the subject "},
		"another repository": {func(e *ledger.SigstoreEntry) { e.RepositoryID = "471" },
			`the repository_id "471", and the certificate has "4711"`},
		"another ref": {func(e *ledger.SigstoreEntry) { e.Ref = "refs/tags/*" },
			`the ref "refs/tags/*", and the certificate has "refs/heads/main"`},
		"another environment": {func(e *ledger.SigstoreEntry) { e.Environment = "staging" },
			`the environment "staging", and the certificate has "production"`},
		"another workflow": {func(e *ledger.SigstoreEntry) { e.Workflow = ciSubject }, "the workflow "},
	} {
		t.Run(name, func(t *testing.T) {
			entry := full
			test.change(&entry)
			a, err := attestation.Verify(signed, allows(s, entry), ledgertest.Now)
			if test.why == "" {
				ledgertest.WantCode(t, err, "")
				return
			}
			ledgertest.WantCode(t, err, ledger.CodeUntrustedIdentity)
			if a != nil || err == nil || !strings.Contains(err.Error(), test.why) {
				t.Errorf("got %v, want %q", err, test.why)
			}
		})
	}
}

// In a subject and a workflow, only a * at the end matches the @ before the ref. So a branch whose name contains
// @refs/heads/main is not taken for main.
func TestPatternsDoNotCrossTheRef(t *testing.T) {
	s := ledgertest.NewSigstore()
	const owner = "https://forge.example/acme/"
	for _, test := range []struct {
		pattern, name string
		matches       bool
	}{
		{owner + "*@refs/heads/main", owner + "api/.ci/x.yml@refs/heads/main", true},
		{owner + "*@refs/heads/main", owner + "api/.ci/x.yml@refs/heads/eve@refs/heads/main", false},
		{owner + "*/x.yml@refs/heads/main", owner + "api/.ci/eve.yml@refs/heads/y/x.yml@refs/heads/main", false},
		{owner + "*/x.yml@*", owner + "api/.ci/x.yml@refs/heads/a@b", true},
		{owner + "*/x.yml@*", owner + "api/.ci/eve.yml@refs/heads/y/x.yml@refs/heads/main", false},
		{owner + "*/x.yml*", owner + "api/.ci/eve.yml@refs/heads/y/x.yml", false},
		{owner + "*@*", owner + "api/.ci/x.yml@refs/heads/a@b", true},
		{owner + "*", owner + "api/.ci/x.yml@refs/heads/a@b", true},
	} {
		names := extensions()
		names[18] = test.name
		signed := bundle(s, s.Leaf(test.name, names)).JSON()
		for _, entry := range []ledger.SigstoreEntry{
			{Issuer: ciIssuer, Subject: test.pattern}, {Issuer: ciIssuer, Subject: test.name, Workflow: test.pattern},
		} {
			_, err := attestation.Verify(signed, allows(s, entry), ledgertest.Now)
			if (err == nil) != test.matches {
				t.Errorf("%+v and %s: got %v", entry, test.name, err)
			}
		}
	}
}

// An entry with a field that the certificate lacks does not match.
func TestEntriesNeedWhatTheyName(t *testing.T) {
	s := ledgertest.NewSigstore()
	for number, entry := range map[int]ledger.SigstoreEntry{
		14: {Ref: "*"}, 15: {RepositoryID: "4711"}, 18: {Workflow: "*"}, 23: {Environment: "production"}, 8: {},
	} {
		names := extensions()
		delete(names, number)
		entry.Issuer, entry.Subject = ciIssuer, ciSubject
		_, err := attestation.Verify(bundle(s, s.Leaf(ciSubject, names)).JSON(), allows(s, entry), ledgertest.Now)
		ledgertest.WantCode(t, err, ledger.CodeUntrustedIdentity)
		if err != nil && !strings.Contains(err.Error(), "the certificate has none") {
			t.Errorf("without extension %d: %v", number, err)
		}
	}
}

// The statement must be about the commit in the certificate, unless the entry says otherwise.
func TestCertificateCommit(t *testing.T) {
	s := ledgertest.NewSigstore()
	entry := ledger.SigstoreEntry{Issuer: ciIssuer, Subject: ciSubject}
	anyCommit := entry
	anyCommit.Commit = ledger.CommitAny
	other := strings.Repeat("a", 40)

	for name, test := range map[string]struct {
		commit  string // in the certificate
		entries []ledger.SigstoreEntry
		signer  string // the identity; empty: refused
	}{
		"the same commit":    {ledgertest.Commit, []ledger.SigstoreEntry{entry}, "idn_a"},
		"another commit":     {other, []ledger.SigstoreEntry{entry}, ""},
		"no commit":          {"", []ledger.SigstoreEntry{entry}, ""},
		"any commit":         {other, []ledger.SigstoreEntry{anyCommit}, "idn_a"},
		"any, without one":   {"", []ledger.SigstoreEntry{anyCommit}, "idn_a"},
		"one of two entries": {other, []ledger.SigstoreEntry{entry, anyCommit}, "idn_b"},
	} {
		t.Run(name, func(t *testing.T) {
			names := extensions()
			if names[13] = test.commit; test.commit == "" {
				delete(names, 13)
			}
			signed := bundle(s, s.Leaf(ciSubject, names)).JSON()
			keys := allows(s, test.entries...)

			recorded, recordedErr := attestation.VerifyRecorded(signed, ledgertest.Commit, keys, ledgertest.Now)
			a, err := attestation.Verify(signed, keys, ledgertest.Now)
			if test.signer == "" {
				ledgertest.WantCode(t, err, ledger.CodeCertificateCommit)
				ledgertest.WantCode(t, recordedErr, ledger.CodeCertificateCommit)
				return
			}
			if err != nil || recordedErr != nil {
				t.Fatal(err, recordedErr)
			}
			if a.Signer.Identity != test.signer || recorded.Signer.Identity != test.signer {
				t.Errorf("signed by %s, recorded as by %s; want %s", a.Signer.Identity, recorded.Signer.Identity, test.signer)
			}
		})
	}
}

// The certificate must be valid at the time of the timestamp. When the bundle is received does not
// matter.
func TestKeylessTime(t *testing.T) {
	s := ledgertest.NewSigstore()
	leaf := s.Leaf(ciSubject, extensions())
	keys := allows(s, ledger.SigstoreEntry{Issuer: ciIssuer, Subject: ciSubject})
	payload := ledgertest.Passed()
	for _, test := range []struct {
		signed time.Time
		want   ledger.Code
	}{
		{leaf.Cert.NotBefore, ""},
		{leaf.Cert.NotAfter, ""},
		{leaf.Cert.NotBefore.Add(-time.Second), ledger.CodeExpiredCertificate},
		{leaf.Cert.NotAfter.Add(time.Second), ledger.CodeExpiredCertificate},
	} {
		b := s.Bundle(leaf, payload, attestation.PAE(attestation.StatementType, payload), test.signed)
		for _, received := range []ledger.Time{ledgertest.Now, ledgertest.Now.Add(400 * 24 * time.Hour)} {
			_, err := attestation.Verify(b.JSON(), keys, received)
			ledgertest.WantCode(t, err, test.want)
		}
	}
}

// A bundle whose parts do not fit together is refused, with the reason.
func TestKeylessBundlesRefused(t *testing.T) {
	s, other := ledgertest.NewSigstore(), ledgertest.NewSigstore()
	keys := allows(s, ledger.SigstoreEntry{Issuer: ciIssuer, Subject: ciSubject})
	leaf := s.Leaf(ciSubject, extensions())
	witness := func() []byte { // a DSSE envelope with the certificate, and nothing that proves the time
		b := bundle(s, leaf)
		return ledgertest.Must(json.Marshal(map[string]any{
			"payload": b.Payload, "payloadType": attestation.StatementType, "signatures": []map[string]any{
				{"sig": b.Signature, "certificate": []byte(ledgertest.CertPEM(leaf.Cert))}},
		}))
	}
	for name, test := range map[string]struct {
		body func() []byte
		want ledger.Code
		why  string
	}{
		"a certificate of another instance": {func() []byte {
			return bundle(s, other.Leaf(ciSubject, extensions())).JSON()
		}, ledger.CodeUntrustedIdentity, "stale"},
		"a timestamp of another instance": {func() []byte {
			b := bundle(s, leaf)
			b.Timestamps = [][]byte{other.Timestamp(b.Signature, ledgertest.Now.Std())}
			return b.JSON()
		}, ledger.CodeUntrustedIdentity, "no timestamp authority of the trusted root"},
		"a timestamp of another signature": {func() []byte {
			b := bundle(s, leaf)
			b.Timestamps = [][]byte{s.Timestamp([]byte("x"), ledgertest.Now.Std())}
			return b.JSON()
		}, ledger.CodeUntrustedIdentity, "or the timestamp is not of this signature"},
		"no timestamp": {func() []byte {
			b := bundle(s, leaf)
			b.Timestamps = nil
			return b.JSON()
		}, ledger.CodeUntrustedIdentity, "no timestamp proves when it was signed"},
		"another signature": {func() []byte {
			b := bundle(s, leaf)
			b.Signature[len(b.Signature)-1] ^= 1
			return b.JSON()
		}, ledger.CodeInvalidSignature, "does not match"},
		"another payload": {func() []byte {
			b := bundle(s, leaf)
			b.Payload = append(b.Payload, ' ')
			return b.JSON()
		}, ledger.CodeInvalidSignature, "does not match"},
		"an envelope without a bundle": {witness, ledger.CodeUntrustedIdentity, "send the Sigstore bundle"},
		"two subjects": {func() []byte {
			two := ledgertest.NewCert(s.CA, leaf.Cert.Subject, ledgertest.NewP256(), func(c *x509.Certificate) {
				ledgertest.Fulcio(ciSubject, extensions())(c)
				c.EmailAddresses = []string{"eve@evil.example"}
			})
			return bundle(s, two).JSON()
		}, ledger.CodeUntrustedIdentity, "2 subjects"},
		"a subject and a host": {func() []byte {
			two := ledgertest.NewCert(s.CA, leaf.Cert.Subject, ledgertest.NewP256(), func(c *x509.Certificate) {
				ledgertest.Fulcio(ciSubject, extensions())(c)
				c.DNSNames = []string{"evil.example"}
			})
			return bundle(s, two).JSON()
		}, ledger.CodeUntrustedIdentity, "2 subjects"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := attestation.Verify(test.body(), keys, ledgertest.Now)
			ledgertest.WantCode(t, err, test.want)
			if err != nil && !strings.Contains(err.Error(), test.why) {
				t.Errorf("got %v, want %q", err, test.why)
			}
		})
	}
}

// A revoked entry admits nothing, and is named if no other admits the certificate.
func TestRevokedEntries(t *testing.T) {
	s := ledgertest.NewSigstore()
	signed := bundle(s, s.Leaf(ciSubject, extensions())).JSON()
	entry := func(id string, e ledger.SigstoreEntry) identity.Identity {
		e.TrustedRoot, e.Issuer = "own", ciIssuer
		return ledgertest.Registered(id, identity.NewIdentity{Kind: identity.SigstoreIdentity, Sigstore: &e,
			DN: "cn=release,ou=build,o=acme", May: identity.Predicates{"test:*"}})
	}
	root := ledgertest.Must(identity.NewTrustedRoot("own", s.TrustedRoot(nil), sigstore.ParseRoot))
	revoked := ledgertest.Revoked(entry("idn_a", ledger.SigstoreEntry{Subject: ciSubject}))
	other := entry("idn_b", ledger.SigstoreEntry{Subject: "rita@acme.example"})

	for _, ids := range [][]identity.Identity{{revoked}, {revoked, other}} {
		keys := ledgertest.Must(identity.NewKeyring(ids, sigstore.ParseRoot, root))
		_, err := attestation.Verify(signed, keys, ledgertest.Now)
		ledgertest.WantCode(t, err, ledger.CodeRevokedIdentity)
	}
	active := entry("idn_c", ledger.SigstoreEntry{RepositoryID: "4711"})
	keys := ledgertest.Must(identity.NewKeyring([]identity.Identity{revoked, active}, sigstore.ParseRoot, root))
	a, err := attestation.Verify(signed, keys, ledgertest.Now)
	if err != nil || a.Signer.Identity != "idn_c" {
		t.Errorf("got %+v, %v", a, err)
	}
}

// A keyring of a program that parses no trusted roots admits no keyless certificate.
func TestKeyringsWithoutAParserAdmitNoKeylessCertificates(t *testing.T) {
	s := ledgertest.NewSigstore()
	root := ledgertest.Must(identity.NewTrustedRoot("own", s.TrustedRoot(nil), sigstore.ParseRoot))
	entry := ledgertest.Registered("idn_a", identity.NewIdentity{Kind: identity.SigstoreIdentity,
		DN: "cn=release,ou=build,o=acme", May: identity.Predicates{"test:*"},
		Sigstore: &ledger.SigstoreEntry{TrustedRoot: "own", Issuer: ciIssuer, Subject: ciSubject}})
	keys := ledgertest.Must(identity.NewKeyring([]identity.Identity{entry}, nil, root))

	_, err := attestation.Verify(bundle(s, s.Leaf(ciSubject, extensions())).JSON(), keys, ledgertest.Now)
	ledgertest.WantCode(t, err, ledger.CodeUntrustedIdentity)
	_, err = identity.NewTrustedRoot("own", s.TrustedRoot(nil), nil)
	ledgertest.WantCode(t, err, ledger.CodeInvalidField)
}
