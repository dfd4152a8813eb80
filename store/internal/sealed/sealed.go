package sealed

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// prefix begins every encrypted secret. It is followed by the id of the key, a colon and the
// nonce and the ciphertext of AES-256-GCM in base64.
const prefix = "enc1:"

// ErrNoKey is in the error of Open if the secret was encrypted with a key that is missing.
var ErrNoKey = errors.New("the key is missing")

// Seal encrypts a secret with the first key. Only the same owner can open it.
func (k Keys) Seal(secret, owner string) string {
	if secret == "" || !k.Any() {
		return secret
	}
	first := k.list[0]
	box := first.aead.Seal(nil, nil, []byte(secret), []byte(owner))
	return prefix + first.id + ":" + base64.StdEncoding.EncodeToString(box)
}

// Open decrypts a secret of an owner. One that is not encrypted is returned as it is. The
// errors do not contain the text.
func (k Keys) Open(stored, owner string) (string, error) {
	if !strings.HasPrefix(stored, prefix) {
		return stored, nil
	}
	id, box, err := parse(stored)
	if err != nil {
		return "", err
	}
	with := k.find(id)
	if with == nil {
		return "", fmt.Errorf("it is encrypted with the key %s: %w", id, ErrNoKey)
	}
	secret, err := with.aead.Open(nil, nil, box, []byte(owner))
	if err != nil {
		return "", fmt.Errorf("it was changed, or is not of %s", owner)
	}
	return string(secret), nil
}

// parse splits an encrypted secret into the id of its key, and nonce and ciphertext.
func parse(stored string) (id string, box []byte, err error) {
	id, text, ok := strings.Cut(strings.TrimPrefix(stored, prefix), ":")
	if !ok || len(id) != 2*idSize || strings.Trim(id, "0123456789abcdef") != "" {
		return "", nil, errors.New("it is damaged: it names no key")
	}
	if box, err = base64.StdEncoding.Strict().DecodeString(text); err != nil {
		return "", nil, errors.New("it is damaged: it is not in base64")
	}
	return id, box, nil
}

// IsSealed reports whether a stored secret is as Seal would store it: encrypted with the first
// key, or, without keys, in any form.
func (k Keys) IsSealed(stored string) bool {
	return stored == "" || !k.Any() || strings.HasPrefix(stored, prefix+k.list[0].id+":")
}
