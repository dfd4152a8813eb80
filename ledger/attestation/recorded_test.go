package attestation_test

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// A recorded attestation verifies with the key of its signer, near the time at which its
// certificate was valid.
func TestVerifyRecorded(t *testing.T) {
	const commit = "df043c8a9b1077440b11a9cb418b676e1ac2dd2b"
	env := ledgertest.Must(attestation.ParseEnvelope([]byte(toolsFile("v2-leaf-new.bundle"))))
	leaf := env.Certificates[0]
	at := func(from time.Time, d time.Duration) ledger.Time { return ledger.TimeOf(from.Add(d)) }
	for _, test := range []struct {
		name, file, trusted string
		at                  ledger.Time
		want                ledger.Code
	}{
		{"a key", "wit-ed.json", "ed25519.pub", ledgertest.Now, ""},
		{"another key", "wit-ed.json", "ec-P-256.pub", ledgertest.Now, ledger.CodeUntrustedIdentity},
		{"a certificate", "v2-leaf-new.bundle", "int.crt", ledgertest.Now, ""},
		{"a certificate of another CA", "v2-leaf-new.bundle", "ca.crt", ledgertest.Now, ledger.CodeUntrustedIdentity},
		{"an hour after it expired", "v2-leaf-new.bundle", "int.crt", at(leaf.NotAfter, time.Hour), ""},
		{"later", "v2-leaf-new.bundle", "int.crt", at(leaf.NotAfter, time.Hour+time.Second), ledger.CodeExpiredCertificate},
		{"an hour before it was valid", "v2-leaf-new.bundle", "int.crt", at(leaf.NotBefore, -time.Hour), ""},
		{"earlier", "v2-leaf-new.bundle", "int.crt", at(leaf.NotBefore, -time.Hour-time.Second),
			ledger.CodeExpiredCertificate},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := attestation.VerifyRecorded([]byte(toolsFile(test.file)), commit, toolsOrg(test.trusted), test.at)
			ledgertest.WantCode(t, err, test.want)
			if err == nil && (a.Commit != commit || a.Signer.Key == [32]byte{} || a.PayloadDigest == [32]byte{}) {
				t.Errorf("got %+v", a)
			}
		})
	}
}

// A statement that only an earlier release could read is still signed.
func TestVerifyRecordedUnreadableStatement(t *testing.T) {
	key := ledgertest.NewP256()
	body := ledgertest.Must(attestation.SignDSSE(key, []byte(`{"_type":"https://example.com/other"}`)))
	keys := ledgertest.Keyring(ledgertest.KeyIdentity(key.Public()))
	a, err := attestation.VerifyRecorded(body, "", keys, ledgertest.Now)
	if err == nil || a == nil || a.Signer.Key == [32]byte{} {
		t.Errorf("got %+v, %v; want a signer and an error", a, err)
	}
}
