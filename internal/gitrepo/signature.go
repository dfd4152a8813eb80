package gitrepo

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"
)

// signingKey returns the fingerprint of the SSH key that signed a commit object, as
// identities have it. It is empty if the object has no SSH signature, or one with a key of
// a type that identities cannot have. It does not verify the signature: that somebody
// claims to have signed a commit can only exclude their attestations.
func (g Repo) signingKey(ctx context.Context, sha string) (string, error) {
	object, err := g.Read(ctx, "cat-file", "commit", sha)
	if err != nil {
		return "", err
	}
	key, err := sshKey(signatureOf(object))
	if err != nil {
		return "", nil //nolint:nilerror // a signature of another kind, or an invalid one
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", nil //nolint:nilerror // of a type that identities cannot have
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}

// signatureOf returns the signature in the header of a commit object, or "".
func signatureOf(object string) string {
	header, _, _ := strings.Cut(object, "\n\n")
	var signature strings.Builder
	inSignature := false
	for line := range strings.SplitSeq(header, "\n") {
		name, value, _ := strings.Cut(line, " ")
		if name != "" { // a line that continues the one before starts with a space
			inSignature = name == "gpgsig" || name == "gpgsig-sha256"
		}
		if inSignature {
			signature.WriteString(value + "\n")
		}
	}
	return signature.String()
}

// sshKey returns the public key in an SSH signature for git (PROTOCOL.sshsig of OpenSSH).
func sshKey(signature string) (any, error) {
	block, _ := pem.Decode([]byte(signature))
	if block == nil || block.Type != "SSH SIGNATURE" {
		return nil, errors.New("not an SSH signature")
	}
	const magic = "SSHSIG"
	blob, isSSH := strings.CutPrefix(string(block.Bytes), magic)
	var content struct {
		Version   uint32
		PublicKey []byte
		Namespace string
		Rest      []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal([]byte(blob), &content); err != nil || !isSSH {
		return nil, errors.New("not an SSH signature")
	}
	if content.Version != 1 || content.Namespace != "git" {
		return nil, errors.New("not an SSH signature for git")
	}

	key, err := ssh.ParsePublicKey(content.PublicKey)
	if err != nil {
		return nil, err
	}
	if certificate, ok := key.(*ssh.Certificate); ok {
		key = certificate.Key
	}
	public, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return nil, errors.New("the key is of an unsupported type")
	}
	return public.CryptoPublicKey(), nil
}
