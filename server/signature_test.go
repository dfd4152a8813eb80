package server

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// signedCommit returns a commit object with an SSH signature for a namespace.
func (s *signer) signedCommit(t testing.TB, raw rawCommit, namespace string) rawCommit {
	t.Helper()
	sha, text := storetest.SignObject(t, s.key, namespace, []byte(raw.text))
	return rawCommit{sha, string(text)}
}

// pushSigned registers a commit with its object, and returns what became of the signature.
func (b *backend) pushSigned(raw rawCommit, status int) ledger.CommitSignature {
	b.t.Helper()
	c := decode[ledger.Commit](b.register(raw.sha, raw.body("")).want(status))
	if c.Signature == nil {
		b.t.Fatal("nothing about the signature")
	}
	if got := b.commit(raw.sha); got.Signature != nil || !got.Proven || got.State != c.State {
		b.t.Errorf("the record: %+v, the response %s", got, c.State)
	}
	return *c.Signature
}

func TestSignedCommit(t *testing.T) {
	b := newBackend(t)
	b.setPolicy(`"requirements":[{"state":"ATTESTED","predicate":"signed:commit","signers":["ou=dev,o=acme"]},
		{"state":"PROMOTABLE","predicate":"review:*"}]`)
	ada := newSigner(t, "cn=Ada,ou=dev,o=acme")
	raw := ada.signedCommit(t, rawCommitOf("Ada <ada@x>", "Ada <ada@x>", "Pay"), "git")

	if s := b.pushSigned(raw, 201); s.Attestation != "" || !strings.Contains(s.Reason, "not a trusted key") {
		t.Errorf("by an unknown key: %+v", s)
	}
	b.expect("by an unknown key", raw.sha, ledger.Draft, "")

	ada.id = b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: ada.publicPEM(t), DN: ada.dn}).ID
	first := b.pushSigned(raw, 200)
	again := b.pushSigned(raw, 200)
	if first.Attestation == "" || again != first {
		t.Errorf("by a trusted key: %+v, again %+v", first, again)
	}
	b.expect("by a trusted key", raw.sha, ledger.Attested, "")
	if attestations, events := b.count(); attestations != 1 || events != 1 {
		t.Errorf("%d attestations, %d events", attestations, events)
	}

	at := attestationsPath + "/" + first.Attestation
	rec := decode[ledger.AttestationRecord](b.get(at).want(200))
	if rec.Predicate != "signed:commit" || rec.PredicateType != attestation.SignedCommitType ||
		rec.Result.Status != ledger.Pass || rec.Identity != ada.dn || rec.Commit != raw.sha {
		t.Errorf("the attestation: %+v", rec)
	}
	envelope := b.get(at + "/envelope").want(200)
	if string(envelope.body) != raw.text || envelope.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("the envelope: %s %q", envelope.header.Get("Content-Type"), envelope.body)
	}

	// It is evidence of this commit, and not of another one with the same tree.
	other := rawCommitOf("Ada <ada@x>", "Ada <ada@x>", "Other")
	b.register(other.sha, other.body("")).want(201)
	b.expect("another commit", other.sha, ledger.Draft, "")
}

// A signature that gives no evidence does not keep the commit from being registered.
func TestSignaturesThatDoNotCount(t *testing.T) {
	b := newBackend(t)
	ada := b.signer("cn=Ada,ou=dev,o=acme")
	raw := rawCommitOf("Ada <ada@x>", "Ada <ada@x>", "Pay")
	signed := ada.signedCommit(t, raw, "git")
	changed := rawCommit{text: strings.Replace(signed.text, "Pay", "Steal", 1)}
	changed.sha = objectID(changed.text)

	revoked := b.signer("cn=Eve,ou=dev,o=acme")
	b.delete("/v1/orgs/acme/identities/" + revoked.id).want(204)
	limited := newSigner(t, "cn=Bob,ou=dev,o=acme")
	limited.id = b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: limited.publicPEM(t), DN: limited.dn,
		May: identity.Predicates{"test:*"}}).ID

	for why, c := range map[string]rawCommit{
		"does not match":            changed,
		"another namespace":         ada.signedCommit(t, raw, "file"),
		"was revoked":               revoked.signedCommit(t, raw, "git"),
		"may attest only test:*":    limited.signedCommit(t, raw, "git"),
		"not a trusted key":         newSigner(t, "cn=x,ou=x,o=x").signedCommit(t, raw, "git"),
		"SSH signature is malforme": {text: strings.Replace(signed.text, "U1NI", "AAAA", 1)},
	} {
		c.sha = objectID(c.text)
		if s := b.pushSigned(c, 201); s.Attestation != "" || !strings.Contains(s.Reason, why) {
			t.Errorf("%s: %+v", why, s)
		}
	}
	pgp := rawCommit{text: strings.Replace(raw.text, "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n\n", 1)}
	pgp.sha = objectID(pgp.text)
	if c := decode[ledger.Commit](b.register(pgp.sha, pgp.body("")).want(201)); c.Signature != nil {
		t.Errorf("PGP: %+v", c.Signature)
	}
	if attestations, _ := b.count(); attestations != 0 {
		t.Errorf("%d attestations", attestations)
	}

	// Nobody can state the same in another way.
	envelope, err := attestation.SignDSSE(ada.key, fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1",
		"subject":[{"name":"x","digest":{"gitCommit":%q}}],"predicateType":%q,"predicate":{}}`, raw.sha,
		attestation.SignedCommitType))
	must.OK(t, err)
	b.attest(envelope).wantFields(422, ledger.CodeInvalidStatement, "predicateType")
}

// The owner of the key that signed the object is an author, whatever name they put into it.
// Once the object is known, a key that was only claimed is nobody's.
func TestSignerOfTheObjectIsAnAuthor(t *testing.T) {
	b := newBackend(t)
	ada, bob := b.signer("cn=Ada,ou=dev,o=acme"), b.signer("cn=Bob,ou=dev,o=acme")
	late := newSigner(t, "cn=Cy,ou=dev,o=acme") // trusted later
	b.setPolicy(`"requirements":[{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true}]`)
	fingerprint, err := identity.Fingerprint(bob.key.Public())
	must.OK(t, err)

	raw := ada.signedCommit(t, rawCommitOf("Eve <eve@x>", "Eve <eve@x>", "Pay"), "git")
	b.register(raw.sha, fmt.Sprintf(`{"author":{"name":"Eve","email":"eve@x"},"signing_key":%q}`, fingerprint)).want(201)
	b.passes(bob, raw.sha, "review:code")
	b.expect("by the claim", raw.sha, ledger.Attested, "by the commit's author")
	b.register(raw.sha, raw.body("")).want(200)
	b.expect("bob did not sign it", raw.sha, ledger.Promotable, "")
	b.register(raw.sha, fmt.Sprintf(`{"signing_key":%q}`, fingerprint)).want(200)
	b.expect("claimed again", raw.sha, ledger.Promotable, "")
	if c := b.commit(raw.sha); len(c.SigningKeys) != 1 || c.SigningKeys[0] == fingerprint ||
		len(c.Corrections) != 1 || c.Corrections[0].Field != "signing_keys" {
		t.Errorf("keys %v, corrections %+v", c.SigningKeys, c.Corrections)
	}

	for i, s := range []*signer{ada, late} {
		raw := s.signedCommit(t, rawCommitOf("Eve <eve@x>", "Eve <eve@x>", fmt.Sprint(i)), "git")
		b.register(raw.sha, raw.body("")).want(201)
		if s == late {
			b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: s.publicPEM(t), DN: s.dn})
		}
		b.passes(s, raw.sha, "review:code")
		b.expect(s.dn, raw.sha, ledger.Attested, "by the commit's author")
	}
}

// Identities that change at the same time do not lose a signature, or record one twice.
func TestSignaturesWhileIdentitiesChange(t *testing.T) {
	b := newBackend(t)
	ada := b.signer("cn=Ada,ou=dev,o=acme")
	var pushes, others sync.WaitGroup
	others.Go(func() {
		for i := range 100 { // without an end, a push may be refused again and again
			b.signer(fmt.Sprintf("cn=s%d,ou=x,o=x", i))
		}
	})

	for n := range 4 {
		pushes.Go(func() {
			for i := range 5 {
				raw := ada.signedCommit(t, rawCommitOf("Ada <ada@x>", "Ada <ada@x>", fmt.Sprint(n, i)), "git")
				for deadline := time.Now().Add(time.Minute); ; { // 503 says to send it again
					r := b.register(raw.sha, raw.body(""))
					if r.status < 300 {
						break
					}
					if r.status != 503 || time.Now().After(deadline) {
						t.Errorf("commit %d of %d: status %d", i, n, r.status)
						break
					}
				}
			}
		})
	}
	pushes.Wait()
	others.Wait()
	if attestations, events := b.count(); attestations != 20 || events != 20 {
		t.Errorf("%d attestations, %d events", attestations, events)
	}
}
