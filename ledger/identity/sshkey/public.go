// Package sshkey reads keys of OpenSSH.
package sshkey

import (
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"github.com/ledgerd/ledgerd/ledger/internal/publickey"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// ParsePublic returns the public keys in a text that has one on each line, such as the file
// id_ed25519.pub, authorized_keys or allowed_signers. It returns none if no line has one. Otherwise,
// it is an error if a line has none, or one that cannot sign statements.
func ParsePublic(lines string) (keys []crypto.PublicKey, err error) {
	wrong := 0 // number of the first line without a key
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(lines, "\ufeff")) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, err := keyIn(line)
		if err != nil {
			return nil, err
		}

		switch {
		case key != nil:
			keys = append(keys, key)
		case wrong == 0:
			wrong = n
		}
	}
	if len(keys) > 0 && wrong > 0 {
		return nil, fmt.Errorf("line %d has no SSH key", wrong)
	}
	return keys, nil
}

// keyIn returns the key in a line; nil if it has none. Before the key may be principals and options, and
// after it a comment.
func keyIn(line string) (crypto.PublicKey, error) {
	fields := split(line, unicode.IsSpace)
	for i, encoded := range fields {
		blob, err := base64.StdEncoding.DecodeString(encoded)
		if i == 0 || err != nil || !isKey(blob, fields[i-1]) {
			continue
		}
		if err := checkOptions(fields[:i-1]); err != nil {
			return nil, err
		}
		return parseKey(blob, fields[i-1])
	}
	return nil, nil
}

// split returns the parts of a text between separators, which count only outside of quotes. Parts are not
// empty.
func split(text string, isSeparator func(rune) bool) (parts []string) {
	isQuoted := false
	start := 0
	var previous rune
	for i, c := range text {
		switch {
		case c == '"' && previous != '\\':
			isQuoted = !isQuoted
		case !isQuoted && isSeparator(c):
			if start < i {
				parts = append(parts, text[start:i])
			}
			start = i + utf8.RuneLen(c)
		}
		previous = c
	}
	if start < len(text) {
		parts = append(parts, text[start:])
	}
	return parts
}

// checkOptions returns an error if an option in the fields before a key excludes or limits the key as a
// signer. Options about logins are not read.
func checkOptions(fields []string) error {
	limit := ""
	for _, field := range fields {
		for _, option := range split(field, func(c rune) bool { return c == ',' }) {
			name, _, hasValue := strings.Cut(strings.ToLower(option), "=")
			switch name {
			case "cert-authority", "@cert-authority":
				return errors.New("the SSH key is a certificate authority, and SSH certificates are not accepted (use the " +
					"keys of the signers)")
			case "@revoked":
				return errors.New("the SSH key is revoked")
			case "valid-after", "valid-before", "expiry-time", "namespaces":
				if hasValue {
					limit = name
				}
			}
		}
	}

	if limit != "" {
		return fmt.Errorf("the SSH key is limited by an option (%s), which is not read (use the key without it)", limit)
	}
	return nil
}

// isKey reports whether a blob begins like a public key of the type.
func isKey(blob []byte, keyType string) bool {
	var key struct {
		Type string
		Rest []byte `ssh:"rest"`
	}
	return ssh.Unmarshal(blob, &key) == nil && key.Type == keyType && keyType != ""
}

// parseKey parses the blob of a public key, which may be of any type.
func parseKey(blob []byte, keyType string) (crypto.PublicKey, error) {
	if err := checkType(keyType); err != nil {
		return nil, err
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the SSH key: %w", err)
	}
	holder, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return nil, fmt.Errorf("SSH keys of the type %s cannot sign statements", text.Clip(keyType))
	}
	public := holder.CryptoPublicKey()
	if err := publickey.Check(public); err != nil {
		return nil, fmt.Errorf("SSH key of the type %s: %w", text.Clip(keyType), err)
	}
	return public, nil
}

// checkType returns an error with advice for common types of keys that cannot sign statements.
func checkType(keyType string) error {
	switch {
	case strings.Contains(keyType, "-cert-v01"):
		return fmt.Errorf("SSH certificates (%s) are not accepted (use the public key that it certifies, such as "+
			"id_ed25519.pub)", text.Clip(keyType))
	case strings.HasPrefix(keyType, "sk-"), strings.HasPrefix(keyType, "webauthn-sk-"):
		return fmt.Errorf("SSH keys on a security key (%s) do not sign statements, but what the device adds to them (use a "+
			"key of the type ssh-ed25519)", text.Clip(keyType))
	case keyType == "ssh-dss":
		return errors.New("DSA keys are insecure, and OpenSSH has removed them (create a key of the type ssh-ed25519)")
	}
	return nil
}
