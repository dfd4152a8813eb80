package transparency

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
)

const pemPrivateKey = "PRIVATE KEY"

// receiptKind returns the end of the name of the file with a key of receipts.
func receiptKind(key string) string { return "receipt-" + key[:min(16, len(key))] + ".key" }

// CreateReceiptKey makes a key of receipts, which the log must announce.
func (k *Keys) CreateReceiptKey(l LogName, notBefore, notAfter ledger.Time) (key store.ReceiptKey, err error) {
	fail := func(err error) (store.ReceiptKey, error) { return key, fmt.Errorf("make a key of receipts: %w", err) }
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fail(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return fail(err)
	}
	id, err := identity.Fingerprint(&private.PublicKey)
	if err != nil {
		return fail(err)
	}

	text := pem.EncodeToMemory(&pem.Block{Type: pemPrivateKey, Bytes: secret})
	if err := write(k.stateFile(l, receiptKind(id)), text); err != nil {
		return fail(err)
	}
	return store.ReceiptKey{Key: id, PublicKey: public, NotBefore: notBefore, NotAfter: notAfter}, nil
}

// LoadReceiptKey reads the private half of a key of receipts. Without a file, the error
// is fs.ErrNotExist.
func (k *Keys) LoadReceiptKey(l LogName, key store.ReceiptKey) (*ecdsa.PrivateKey, error) {
	file := k.stateFile(l, receiptKind(key.Key))
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read a key of receipts: %w", err)
	}
	private, err := parseP256Key(text)
	if err != nil {
		return nil, fmt.Errorf("read the key of receipts %s: %w", file, err)
	}
	if id, err := identity.Fingerprint(&private.PublicKey); err != nil || id != key.Key {
		return nil, fmt.Errorf("read the key of receipts %s: it is %s, and the log announces %s", file, id, key.Key)
	}
	return private, nil
}

func parseP256Key(text []byte) (*ecdsa.PrivateKey, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != pemPrivateKey || len(rest) > 0 {
		return nil, errors.New("it is not one private key in PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse private key: %w", err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, errors.New("it is not an ECDSA key on P-256")
	}
	return private, nil
}
