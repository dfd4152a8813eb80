package facts_test

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/facts"
)

// Evidence is confirmed if the attestation has the document of a passkey.
func TestEvidenceOfPasskey(t *testing.T) {
	for name, test := range map[string]struct {
		assertion []byte
		want      bool
	}{
		"a document":        {[]byte("{}"), true},
		"none":              {nil, false},
		"an empty document": {[]byte{}, false},
	} {
		a := &attestation.Attestation{Assertion: test.assertion}
		if got := facts.Evidence(a).Passkey; got != test.want {
			t.Errorf("%s: confirmed: %t, want %t", name, got, test.want)
		}
	}
}
