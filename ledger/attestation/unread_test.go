package attestation

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// Provenance whose version is not read is recorded if a subject names the commit. Otherwise the error says why there
// is no commit.
func TestProvenanceOfAnUnreadVersion(t *testing.T) {
	key := ledgertest.NewP256()
	keys := ledgertest.Keyring(ledgertest.KeyIdentity(key.Public()))
	verify := func(subject, predicateType string) (*Attestation, error) {
		payload := []byte(statementOf(subject, predicateType, `{"materials":[{"digest":{"sha1":"`+ledgertest.Commit+`"}}]}`))
		body := ledgertest.DSSE(payload, ledgertest.Must(identity.Sign(key, PAE(StatementType, payload))))
		return Verify(body, keys, ledgertest.Now)
	}

	const artifact = `[{"name":"app","digest":{"sha256":"00"}}]`
	for predicateType, isUnread := range map[string]bool{
		"https://slsa.dev/provenance/v0.1":    true,
		"https://in-toto.io/Provenance/v0.1":  true,
		"https://example.com/provenance/v0.1": false,
	} {
		_, err := verify(artifact, predicateType)
		ledgertest.WantCode(t, err, ledger.CodeNoCommitSubject)
		if err != nil && strings.Contains(err.Error(), "provenance v0.1 is not read") != isUnread {
			t.Errorf("%s: %v", predicateType, err)
		}
		if got, err := verify(aboutCommit, predicateType); err != nil || got.Predicate != predicateType {
			t.Errorf("%s about a commit: %+v, %v", predicateType, got, err)
		}
		if (UnreadVersion(predicateType) != "") != isUnread {
			t.Errorf("%s: %q", predicateType, UnreadVersion(predicateType))
		}
	}
}
