package gitobject

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/ledgerd/ledgerd/ledger/internal/publickey"
)

// ErrNoSSHSignature means that a commit object has no SSH signature. It may have one of
// another kind.
var ErrNoSSHSignature = errors.New("the commit object has no SSH signature")

// namespace is what SSH signatures of git are for.
const namespace = "git"

// HasSSHSignature reports whether the object has an SSH signature, valid or not.
func (c *Commit) HasSSHSignature() bool {
	return strings.HasPrefix(c.signature(), "-----BEGIN "+sshsig.PEMType+"-----")
}

// signature returns the signature over the object in the form that is hashed for its id,
// or "".
func (c *Commit) signature() string { return c.signatures[c.form()] }

// form is 0 for an object with a SHA-1 id, and 1 for one with a SHA-256 id.
func (c *Commit) form() int {
	if len(c.ID) == 2*crypto.SHA256.Size() {
		return 1
	}
	return 0
}

// An SSHKey is the key that made an SSH signature.
type SSHKey struct {
	crypto.PublicKey
	// Certified reports whether the signature has an SSH certificate for the key. It was not
	// verified.
	Certified bool
}

// VerifySSH verifies the SSH signature of the object (PROTOCOL.sshsig of OpenSSH), for the
// namespace git, and returns the key that made it. The key need not be trusted. The error
// is ErrNoSSHSignature, or says why the signature is not valid.
func (c *Commit) VerifySSH() (key SSHKey, err error) {
	if !c.HasSSHSignature() {
		return key, ErrNoSSHSignature
	}
	sig, err := sshsig.Unarmor([]byte(c.signature()))
	if err != nil {
		return key, errors.New("the SSH signature is malformed")
	}
	if key, err = keyOf(sig.PublicKey); err != nil {
		return key, err
	}

	err = sshsig.Verify(bytes.NewReader(c.signed()), sig, sig.PublicKey, sig.HashAlgorithm, namespace)
	switch {
	case errors.Is(err, sshsig.ErrNamespaceMismatch):
		return key, errors.New("the SSH signature is for another namespace than git")
	case err != nil:
		return key, errors.New("the SSH signature does not match the commit object")
	}
	return key, nil
}

// keyOf returns an SSH key in the form that identities have.
func keyOf(public ssh.PublicKey) (key SSHKey, err error) {
	if certificate, ok := public.(*ssh.Certificate); ok {
		public, key.Certified = certificate.Key, true
	}
	if holder, ok := public.(ssh.CryptoPublicKey); ok {
		key.PublicKey = holder.CryptoPublicKey()
	}
	if err := publickey.Check(key.PublicKey); err != nil {
		return key, fmt.Errorf("SSH keys of type %s: %w", public.Type(), err)
	}
	return key, nil
}

// signed returns what a signature in the object covers: all but the signatures.
func (c *Commit) signed() []byte {
	rest := c.Object
	signed := make([]byte, 0, len(rest))
	isSignature := false

	for len(rest) > 0 && rest[0] != '\n' {
		end := bytes.IndexByte(rest, '\n') + 1
		if end == 0 {
			end = len(rest)
		}

		line := rest[:end]
		if line[0] != ' ' {
			isSignature = false
			for _, name := range signatureHeaders {
				isSignature = isSignature || bytes.HasPrefix(line, []byte(name+" "))
			}
		}
		if !isSignature {
			signed = append(signed, line...)
		}
		rest = rest[end:]
	}
	return append(signed, rest...)
}
