package gitrepo

import (
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/ledgerd/ledgerd/ledger"
)

// sshSignature returns an SSH signature without a valid signature value.
func sshSignature(t *testing.T, version uint32, key ssh.PublicKey, namespace string) string {
	t.Helper()
	blob := ssh.Marshal(struct {
		Version                              uint32
		PublicKey                            []byte
		Namespace, Reserved, Hash, Signature string
	}{version, key.Marshal(), namespace, "", "sha512", "none"})
	return string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: append([]byte("SSHSIG"), blob...)}))
}

func TestSSHKey(t *testing.T) {
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &ssh.Certificate{Key: key, SignatureKey: key, Signature: &ssh.Signature{Format: "x"}}

	for name, test := range map[string]struct {
		signature string
		isKey     bool
	}{
		"a key":             {sshSignature(t, 1, key, "git"), true},
		"a certificate":     {sshSignature(t, 1, certificate, "git"), true},
		"another namespace": {sshSignature(t, 1, key, "file"), false},
		"another version":   {sshSignature(t, 2, key, "git"), false},
		"cut":               {"-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n", false},
		"not SSH":           {"-----BEGIN PGP SIGNATURE-----\nU1NIU0lH\n-----END PGP SIGNATURE-----\n", false},
		"empty":             {"", false},
	} {
		got, err := sshKey(test.signature)
		if (err == nil) != test.isKey || test.isKey && !public.Equal(got.(ed25519.PublicKey)) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestSignatureOf(t *testing.T) {
	const object = "tree 1\nparent 2\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n"
	for name, test := range map[string]struct{ object, want string }{
		"none":             {object + "\nMessage\n", ""},
		"one":              {object + "gpgsig one\n two\n three\nencoding x\n\nMessage\n", "one\ntwo\nthree\n"},
		"SHA-256":          {object + "gpgsig-sha256 one\n two\n\nMessage\n", "one\ntwo\n"},
		"a merged tag":     {object + "mergetag one\n gpgsig two\n three\n\nMessage\n", ""},
		"in the message":   {object + "\ngpgsig one\n two\n", ""},
		"after a long one": {object + "mergetag one\n two\ngpgsig three\n\nMessage\n", "three\n"},
	} {
		if got := signatureOf(test.object); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A real commit, signed by the real programs.
func TestDescribeSignedCommit(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("the test needs ssh-keygen")
	}
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}

	g := Repo{Dir: dir, Isolated: true}
	for _, args := range [][]string{
		{"init", "-q"},
		{"-c", "gpg.format=ssh", "-c", "user.signingkey=" + key, "commit", "-q", "-S", "--allow-empty",
			"--author", "Eve <eve@x>", "-m", "One", "-m", "Co-authored-by: Bob <bob@x>"},
		{"commit", "-q", "--allow-empty", "-m", "Two"},
	} {
		if err := g.Write(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}

	c, err := g.Describe(t.Context(), "HEAD~1")
	if err != nil {
		t.Fatal(err)
	}
	if c.Author.Name != "Eve" || c.Committer.Name != "Ada Example" || len(c.SigningKey) != 64 || c.Check() != nil ||
		c.Branch != "" || c.Parents != nil || c.Changes != nil || len(ledger.CoAuthors(c.Message)) != 1 {
		t.Errorf("signed: %+v, %v", c, c.Check())
	}
	if c, err := g.Describe(t.Context(), "HEAD"); err != nil || c.SigningKey != "" || c.Parents != nil {
		t.Errorf("not signed: %+v, %v", c, err)
	}
	if c, err := g.Describe(t.Context(), strings.Repeat("ab", 20)); err != nil || c.SHA != "" {
		t.Errorf("missing: %+v, %v", c, err)
	}
}

// A long message is cut, but retains its co-authors.
func TestMessageText(t *testing.T) {
	const trailer = "Co-authored-by: Bob <bob@x>"
	cut := messageText(strings.Repeat("ü", maxMessage) + "\n\n" + trailer)
	if len(cut) > maxMessage || len(cut) < maxMessage-1 || len(ledger.CoAuthors(cut)) != 1 {
		t.Errorf("%d bytes, end with %q", len(cut), cut[len(cut)-40:])
	}
	if got := messageText(" One\n\n" + trailer + "\n"); got != "One\n\n"+trailer {
		t.Errorf("short: %q", got)
	}
	var many strings.Builder
	for i := range maxMessage / 20 {
		fmt.Fprintf(&many, "Co-authored-by: %d\n", i)
	}
	if got := messageText("One\n\n" + many.String()); len(got) > maxMessage {
		t.Errorf("%d bytes", len(got))
	}
}
