package sshkey

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// PrivateType is the PEM type of private keys.
const PrivateType = "OPENSSH PRIVATE KEY"

// ParsePrivate parses a private key in PEM, of any type. If it is encrypted, passphrase is called for its
// passphrase, unless it is nil; an error of passphrase is returned as it is.
func ParsePrivate(block *pem.Block, passphrase func() ([]byte, error)) (any, error) {
	if err := checkType(typeOf(block.Bytes)); err != nil {
		return nil, err
	}

	encoded := pem.EncodeToMemory(block)
	key, err := ssh.ParseRawPrivateKey(encoded)
	if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok && passphrase != nil {
		secret, askErr := passphrase()
		if askErr != nil {
			return nil, askErr
		}
		if key, err = ssh.ParseRawPrivateKeyWithPassphrase(encoded, secret); len(secret) == 0 {
			err = x509.IncorrectPasswordError
		}
	}
	switch {
	case errors.Is(err, x509.IncorrectPasswordError):
		return nil, errors.New("wrong passphrase")
	case err != nil:
		return nil, fmt.Errorf("cannot parse private key: %w", err)
	}
	if key, ok := key.(*ed25519.PrivateKey); ok {
		return *key, nil
	}
	return key, nil
}

// typeOf returns the type of a private key; "" if it is malformed. It is not encrypted.
func typeOf(file []byte) string {
	const magic = "openssh-key-v1\x00"
	var key struct {
		Cipher, KDF, Options string
		Keys                 uint32
		Public               []byte
		Rest                 []byte `ssh:"rest"`
	}
	var public struct {
		Type string
		Rest []byte `ssh:"rest"`
	}
	rest, ok := strings.CutPrefix(string(file), magic)
	if !ok || ssh.Unmarshal([]byte(rest), &key) != nil || ssh.Unmarshal(key.Public, &public) != nil {
		return ""
	}
	return public.Type
}
