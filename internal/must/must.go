// Package must ends a test if something that the test relies on fails.
package must

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"os"
	"time"
)

// A TB is a test, of the package testing or of rapid.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// OK ends the test if there is an error.
func OK(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a function that returns v, or ends the test if there is an error: must.Get(f())(t).
func Get[T any](v T, err error) func(TB) T {
	return func(t TB) T {
		t.Helper()
		OK(t, err)
		return v
	}
}

// Read returns the content of a file.
func Read(t TB, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	OK(t, err)
	return content
}

// PublicPEM returns a public key as PEM.
func PublicPEM(t TB, key crypto.PublicKey) string {
	t.Helper()
	der := Get(x509.MarshalPKIXPublicKey(key))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// PrivatePEM returns a private key as PEM.
func PrivatePEM(t TB, key crypto.PrivateKey) string {
	t.Helper()
	der := Get(x509.MarshalPKCS8PrivateKey(key))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// Wait polls done until it returns true, and ends the test after a minute. what says for what it waits.
func Wait(t TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout after a minute: %s", what)
		}
	}
}
