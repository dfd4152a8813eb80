package gitobject

import (
	"crypto/rsa"
	"math/big"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// A signature by a key for which anybody can sign shows nothing about an author.
func TestWeakSSHKeysAreRefused(t *testing.T) {
	keys := []any{&rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 1023, 1), E: 65537}}
	for _, key := range ledgertest.SmallOrderKeys() {
		keys = append(keys, key)
	}
	for _, key := range keys {
		public := must.Get(ssh.NewPublicKey(key))(t)
		if _, err := keyOf(public); err == nil {
			t.Errorf("%x is accepted", key)
		}
	}
}
