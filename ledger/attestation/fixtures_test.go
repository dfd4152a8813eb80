package attestation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

func toolsFile(name string) string {
	return string(ledgertest.Must(os.ReadFile(filepath.Join("..", "testdata", "tools", name))))
}

// toolsOrg returns a keyring with a key or CA certificate of testdata/tools.
func toolsOrg(file string) *identity.Keyring {
	n := identity.NewIdentity{Kind: identity.RootIdentity, PEM: toolsFile(file)}
	if strings.HasSuffix(file, ".pub") {
		n.Kind, n.DN = identity.KeyIdentity, "cn=ci,ou=build,o=acme"
	}
	return ledgertest.Keyring(ledgertest.Registered("idn_"+file, n))
}

// Envelopes of other tools give what the README of testdata/tools says.
func TestVerifyTools(t *testing.T) {
	const (
		commit   = "df043c8a9b1077440b11a9cb418b676e1ac2dd2b"
		commitOf = "b3daad08624002ff4fad4bbf0ecadee7bb3918b2" // of the statements without a repo
	)
	for _, test := range []struct {
		file, trusted string
		commit        string
		want          ledger.Code
		detail        string
	}{
		{file: "webcrypto-p1363-nokeyid.json", trusted: "ec-P-256.pub", commit: commitOf},
		{file: "webcrypto-p1363-nokeyid.json", trusted: "gce-vsa.pub", want: ledger.CodeUntrustedIdentity},
		{file: "gce-vsa.jsonl", trusted: "gce-vsa.pub", want: ledger.CodeNoCommitSubject},
		{file: "gce-vsa.jsonl", trusted: "ec-P-256.pub", want: ledger.CodeUntrustedIdentity},
		{file: "intoto-go-rsa-2048.json", trusted: "rsa-2048.pub", commit: commitOf},
		{file: "sha1-and-gitCommit.bundle", trusted: "c2.pub", commit: commit},
		{file: "v2-leaf-new.bundle", trusted: "int.crt", commit: commit},
		{file: "v2-leaf-new.bundle", trusted: "ca.crt", want: ledger.CodeUntrustedIdentity,
			detail: "certificate of cn=leafci,ou=build,o=acme was issued by cn=acme int,o=acme, which is not registered " +
				"(register it as a root)"},
		{file: "wit-ed.json", trusted: "ed25519.pub", commit: commit},
		{file: "wit-x509i.json", trusted: "ca.crt", commit: commit},
		{file: "wit-x509i.json", trusted: "int.crt", commit: commit},
	} {
		t.Run(test.file+" with "+test.trusted, func(t *testing.T) {
			got, err := attestation.Verify([]byte(toolsFile(test.file)), toolsOrg(test.trusted), ledgertest.Now)
			ledgertest.WantCode(t, err, test.want)
			if err != nil && !strings.Contains(err.Error(), test.detail) {
				t.Errorf("got error %q, want %q in it", err, test.detail)
			}
			if err == nil && got.Commit != test.commit {
				t.Errorf("got commit %s, want %s", got.Commit, test.commit)
			}
		})
	}
}
