package server

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// run records a pass with an annotation run_url.
func (b *backend) run(s *signer, commit, predicate, url, note string) ledger.AttestationRecord {
	b.t.Helper()
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", commit, attestation.ResultPredicate{
		Predicate: predicate, Result: ledger.Result{Status: ledger.Pass},
		Annotations: map[string]string{"run_url": url, "note": note},
	})
	must.OK(b.t, err)
	return decode[ledger.AttestationRecord](b.attest(s.sign(b.t, payload)).want(201))
}

// Who asks for it learns which key signed an attestation, and where its run is.
func TestVerification(t *testing.T) {
	b := newBackend(t)
	ci, mac := b.signer("cn=ci,ou=build,o=acme"), b.signer("cn=mac,ou=build,o=acme")
	const run = "https://ci.acme.example/runs/7"
	var want []ledger.Verification
	record := func(s *signer, url, shown, note string) {
		public, err := identity.Fingerprint(s.key.Public())
		must.OK(t, err)
		rec := b.run(s, commitID(1), "test:go", url, note)
		w := ledger.Verification{Key: public, IdentityID: s.id, RunURL: shown}
		want = append(want, w)
		got := decode[ledger.AttestationRecord](b.get(attestationsPath + "/" + rec.ID).want(200)).Verification
		if rec.Verification != nil || got == nil || *got != w {
			t.Errorf("recorded with %+v, read as %+v, want %+v", rec.Verification, got, w)
		}
	}
	record(ci, run, run, "")
	record(mac, "javascript:alert(1)", "", "")
	record(mac, run, "", strings.Repeat("long", 5000))

	for i, a := range decode[ledger.Page[ledger.AttestationRecord]](
		b.get(attestationsPath + "?verification=true&order=asc").want(200)).Data {
		if a.Verification == nil || *a.Verification != want[i] {
			t.Errorf("in the list: %+v, want %+v", a.Verification, want[i])
		}
	}
	for _, a := range decode[ledger.Page[ledger.AttestationRecord]](b.get(attestationsPath).want(200)).Data {
		if a.Verification != nil {
			t.Errorf("not asked for: %+v", a.Verification)
		}
	}
	b.get(attestationsPath+"?verification=false").wantFields(400, ledger.CodeInvalidParameter, "verification")
}
