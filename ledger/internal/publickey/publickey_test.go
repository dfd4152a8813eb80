package publickey_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"math/big"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
	"github.com/ledgerd/ledgerd/ledger/internal/publickey"
)

func TestEd25519KeysOfSmallOrderAreRefused(t *testing.T) {
	for _, key := range ledgertest.SmallOrderKeys() {
		if err := publickey.Check(key); err == nil {
			t.Errorf("%x is accepted", key)
		}
	}
}

func TestWeakKeysAreRefused(t *testing.T) {
	modulus := func(bits uint) *big.Int {
		n := new(big.Int).Lsh(big.NewInt(1), bits-1)
		return n.Add(n, big.NewInt(1))
	}
	p256 := ledgertest.NewP256().Public().(*ecdsa.PublicKey)
	//nolint:staticcheck // such a key can only be made by its coordinates
	offCurve := &ecdsa.PublicKey{Curve: elliptic.P256(), X: big.NewInt(1), Y: big.NewInt(1)}
	p224 := must.Get(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))(t)

	for name, test := range map[string]struct {
		key  crypto.PublicKey
		want string // empty: it is accepted
	}{
		"RSA of 2048 bits":      {&rsa.PublicKey{N: modulus(2048), E: 65537}, ""},
		"RSA with exponent 3":   {&rsa.PublicKey{N: modulus(2048), E: 3}, ""},
		"RSA of 2047 bits":      {&rsa.PublicKey{N: modulus(2047), E: 65537}, "2047 bits"},
		"RSA of 1024 bits":      {&rsa.PublicKey{N: modulus(1024), E: 65537}, "1024 bits"},
		"RSA of 8193 bits":      {&rsa.PublicKey{N: modulus(8193), E: 65537}, "8193 bits"},
		"RSA without a modulus": {&rsa.PublicKey{E: 65537}, "no modulus"},
		"RSA with exponent 1":   {&rsa.PublicKey{N: modulus(2048), E: 1}, "exponent"},
		"an even exponent":      {&rsa.PublicKey{N: modulus(2048), E: 65536}, "exponent"},
		"an even modulus": {
			&rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 2047), E: 65537}, "modulus",
		},
		"P-256":          {p256, ""},
		"off the curve":  {offCurve, "point of its curve"},
		"P-224":          {&p224.PublicKey, "unsupported ECDSA curve"},
		"short Ed25519":  {ed25519.PublicKey{1}, "has 32 bytes"},
		"no key":         {nil, "unsupported key type"},
		"another's type": {ed25519.PrivateKey{}, "unsupported key type"},
	} {
		err := publickey.Check(test.key)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
