package identity_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/pem"
	"io"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// sshLine returns a public key as ssh-keygen writes it, without a comment.
func sshLine(pub crypto.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(ledgertest.Must(ssh.NewPublicKey(pub)))))
}

// sshLineOf returns the line of a key of another type, whose content is not read.
func sshLineOf(keyType string) string {
	blob := ssh.Marshal(struct {
		Type    string
		Content []byte
	}{keyType, []byte("anything")})
	return keyType + " " + base64.StdEncoding.EncodeToString(blob) + " eve@laptop"
}

func TestSSHPublicKeysAreIdentities(t *testing.T) {
	ed, _, _ := ed25519.GenerateKey(rand.Reader)
	another, _, _ := ed25519.GenerateKey(rand.Reader)
	ec := func(curve elliptic.Curve) crypto.PublicKey {
		return ledgertest.Must(ecdsa.GenerateKey(curve, rand.Reader)).Public()
	}
	p256, p384, p521 := ec(elliptic.P256()), ec(elliptic.P384()), ec(elliptic.P521())
	rsaKey := ledgertest.Must(rsa.GenerateKey(rand.Reader, 2048)).Public()

	for name, test := range map[string]struct {
		text string
		want crypto.PublicKey
	}{
		"Ed25519":                           {sshLine(ed) + " eve@laptop\n", ed},
		"P-256":                             {sshLine(p256), p256},
		"P-384":                             {sshLine(p384) + " eve@laptop", p384},
		"P-521":                             {sshLine(p521), p521},
		"RSA":                               {sshLine(rsaKey), rsaKey},
		"with a comment of several words":   {sshLine(ed) + " the key of eve", ed},
		"from Windows":                      {"\ufeff" + sshLine(ed) + " eve\r\n\r\n", ed},
		"after a comment line":              {"# eve\n\n" + sshLine(ed) + "\n", ed},
		"with options of authorized_keys":   {`no-pty,command="echo a b" ` + sshLine(ed), ed},
		"with a key in an option":           {`command="log ` + sshLine(another) + ` x" ` + sshLine(ed), ed},
		"with quotes in an option":          {`command="log \" ` + sshLine(another) + ` \"" ` + sshLine(ed), ed},
		"with options in an option":         {`command="a,cert-authority,valid-before=1,b" ` + sshLine(ed), ed},
		"with a quote in the comment":       {sshLine(ed) + ` eve"s`, ed},
		"of allowed_signers":                {"eve@acme.example,eve@home.example " + sshLine(ed), ed},
		"of known_hosts":                    {"git.acme.example " + sshLine(ed), ed},
		"PEM is stored as it was given":     {ledgertest.PublicPEM(ed), ed},
		"PEM after other text is unchanged": {"a key:\n" + ledgertest.PublicPEM(p256), p256},
	} {
		id, err := identity.NewIdentity{
			Kind: identity.KeyIdentity, PEM: test.text, DN: "cn=eve,ou=dev,o=acme",
		}.Identity()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := ledgertest.Must(identity.Fingerprint(test.want)); id.Fingerprint != want {
			t.Errorf("%s: got fingerprint %s, want %s", name, id.Fingerprint, want)
		}
		want := ledgertest.PublicPEM(test.want)
		if strings.Contains(test.text, "BEGIN") {
			want = test.text
		}
		if id.PEM != want {
			t.Errorf("%s: got %q, want %q", name, id.PEM, want)
		}
	}
}

func TestSSHPublicKeysThatCannotSignAreRefused(t *testing.T) {
	ed, _, _ := ed25519.GenerateKey(rand.Reader)
	line := sshLine(ed)
	for name, test := range map[string]struct{ text, reason string }{
		"two keys":      {line + " a\n" + line + " b\n", "has 2 SSH keys: register one at a time"},
		"a broken line": {line + " a\nssh-ed25519 AAAA\n", "line 2 has no SSH key"},
		"a truncated key": {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA ci",
			"cannot parse the SSH key"},
		"another type before it":  {"ssh-rsa " + strings.Fields(line)[1], "no SSH key"},
		"a type alone":            {"ssh-ed25519", "no SSH key"},
		"a certificate":           {sshLineOf("ssh-ed25519-cert-v01@openssh.com"), "use the public key that it certifies"},
		"a certificate of RSA":    {sshLineOf("ssh-rsa-cert-v01@openssh.com"), "use the public key that it certifies"},
		"on a security key":       {sshLineOf("sk-ssh-ed25519@openssh.com"), "what the device adds"},
		"ECDSA on a security key": {sshLineOf("sk-ecdsa-sha2-nistp256@openssh.com"), "what the device adds"},
		"DSA":                     {sshLineOf("ssh-dss"), "DSA keys are insecure"},
		"a CA of allowed_signers": {"*@acme.example cert-authority " + line, "is a certificate authority"},
		"a CA of known_hosts":     {"@cert-authority *.acme.example " + line, "is a certificate authority"},
		"a CA with other options": {`*@acme.example namespaces="git",cert-authority ` + line, "is a certificate authority"},
		"a CA after a limit":      {`* valid-after="20260101",cert-authority ` + line, "is a certificate authority"},
		"revoked in known_hosts":  {"@revoked *.acme.example " + line, "the SSH key is revoked"},
		"valid before a time":     {`* valid-before="20260101" ` + line, "limited by an option (valid-before)"},
		"valid after a time":      {`* no-touch-required,Valid-After="20260101" ` + line, "an option (valid-after)"},
		"for other signatures":    {`* namespaces="git,file" ` + line, "an option (namespaces)"},
		"that expires":            {`no-pty,expiry-time="20260101" ` + line, "an option (expiry-time)"},
		"an open quote":           {`command="log ` + line, "no SSH key"},
		"a small RSA key": {sshLine(ledgertest.Must(rsa.GenerateKey(rand.Reader, 1024)).Public()),
			"1024 bits"},
		"RFC 4716":        {"---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----\n", "ssh-keygen -i"},
		"a private key":   {"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n", "compromised"},
		"a key of PuTTY":  {"PuTTY-User-Key-File-3: ssh-ed25519\n", "compromised"},
		"an unknown type": {sshLineOf("ssh-new"), "cannot parse the SSH key"},
		"an unnamed type": {" " + base64.StdEncoding.EncodeToString(make([]byte, 8)), "no SSH key"},
	} {
		_, err := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: test.text, DN: "cn=eve,ou=dev,o=acme"}.Identity()
		ledgertest.WantCode(t, err, ledger.CodeInvalidField)
		ledgertest.WantField(t, err, "pem")
		if err == nil || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("%s: got %v, want %q in it", name, err, test.reason)
		}
	}
}

func TestSSHPrivateKeys(t *testing.T) {
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	ec := ledgertest.Must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	rsaKey := ledgertest.Must(rsa.GenerateKey(rand.Reader, 2048))
	plain := func(key crypto.PrivateKey) []byte {
		return pem.EncodeToMemory(ledgertest.Must(ssh.MarshalPrivateKey(key, "eve")))
	}
	encrypted := pem.EncodeToMemory(ledgertest.Must(ssh.MarshalPrivateKeyWithPassphrase(ed, "eve", []byte("secret"))))
	answer := func(secret string) func() ([]byte, error) {
		return func() ([]byte, error) { return []byte(secret), nil }
	}
	onDevice := append([]byte("openssh-key-v1\x00"), ssh.Marshal(struct {
		Cipher, KDF, Options string
		Keys                 uint32
		Public               []byte
	}{"none", "none", "", 1, ssh.Marshal(struct{ Type string }{"sk-ssh-ed25519@openssh.com"})})...)

	for name, test := range map[string]struct {
		text       []byte
		passphrase func() ([]byte, error)
		want       crypto.Signer
		err        string
	}{
		"Ed25519":              {plain(ed), nil, ed, ""},
		"ECDSA":                {plain(ec), nil, ec, ""},
		"RSA":                  {plain(rsaKey), nil, rsaKey, ""},
		"encrypted":            {encrypted, answer("secret"), ed, ""},
		"the wrong passphrase": {encrypted, answer("guess"), nil, "wrong passphrase"},
		"an empty passphrase":  {encrypted, answer(""), nil, "wrong passphrase"},
		"no answer":            {encrypted, func() ([]byte, error) { return nil, io.EOF }, nil, "EOF"},
		"nobody to ask":        {encrypted, nil, nil, "cannot parse private key"},
		"on a security key":    {[]byte(ledgertest.PEM("OPENSSH PRIVATE KEY", onDevice)), nil, nil, "what the device adds"},
		"broken":               {[]byte(ledgertest.PEM("OPENSSH PRIVATE KEY", []byte("x"))), nil, nil, "cannot parse"},
	} {
		got, err := identity.ParsePrivateKey(test.text, test.passphrase)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got %v, want %q in it", name, err, test.err)
			}
			if test.passphrase != nil && err != nil && err.Error() != test.err {
				t.Errorf("%s: got %v, want %q", name, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !got.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(test.want.Public()) {
			t.Errorf("%s: got another key", name)
		}
	}
}
