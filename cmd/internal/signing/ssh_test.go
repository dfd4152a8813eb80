package signing

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/identity/sshkey"
)

// newSSHKey returns the file of a new private key of ssh-keygen. Its public key is in file.pub.
func newSSHKey(t *testing.T, passphrase string, kind ...string) (file string) {
	t.Helper()
	testenv.Need(t, "ssh-keygen")
	file = filepath.Join(t.TempDir(), "id")
	run(t, "ssh-keygen", append([]string{"-q", "-N", passphrase, "-C", "eve@laptop", "-f", file}, kind...)...)
	return file
}

// startAgent starts a new ssh-agent for the test, and sets SSH_AUTH_SOCK.
func startAgent(t *testing.T) {
	t.Helper()
	testenv.Need(t, "ssh-agent", "ssh-add")
	folder := must.Get(os.MkdirTemp("", "agent"))(t) // the path of a socket is short
	t.Cleanup(func() { must.OK(t, os.RemoveAll(folder)) })
	socket := filepath.Join(folder, "socket")
	command := exec.Command("ssh-agent", "-D", "-a", socket)
	must.OK(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // killed
	})
	must.Wait(t, "ssh-agent", func() bool { _, err := os.Stat(socket); return err == nil })
	t.Setenv("SSH_AUTH_SOCK", socket)
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// signsAs checks that the ledger accepts what a signer signs as being by a key that is registered by
// its SSH public key.
func signsAs(t *testing.T, s *Signer, publicFile string) {
	t.Helper()
	id := must.Get(identity.NewIdentity{
		Kind: identity.KeyIdentity, DN: "cn=eve,ou=dev,o=acme", PEM: string(must.Read(t, publicFile)),
	}.Identity())(t)
	keys := must.Get(identity.NewKeyring([]identity.Identity{id}, nil))(t)
	statement := must.Get(attestation.NewStatement("", strings.Repeat("1", 40), attestation.ResultPredicate{
		Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass},
	}))(t)

	must.Get(CheckStatement(statement))(t)
	must.OK(t, s.CheckTrusted([]identity.Identity{id}, strings.Repeat("1", 40)))
	for range 5 { // the length of signatures differs
		envelope := must.Get(s.Sign(statement))(t)
		if _, err := attestation.Verify(envelope, keys, ledger.TimeOf(time.Now())); err != nil {
			t.Errorf("%s: %v", publicFile, err)
		}
	}
}

func TestKeysOfSSHSign(t *testing.T) {
	startAgent(t)
	for name, kind := range map[string][]string{
		"Ed25519": {"-t", "ed25519"},
		"P-256":   {"-t", "ecdsa", "-b", "256"},
		"P-384":   {"-t", "ecdsa", "-b", "384"},
		"P-521":   {"-t", "ecdsa", "-b", "521"},
		"RSA":     {"-t", "rsa", "-b", "2048"},
	} {
		t.Run(name, func(t *testing.T) {
			plain, encrypted := newSSHKey(t, "", kind...), newSSHKey(t, "secret", kind...)
			secret := func() ([]byte, error) { return []byte("secret"), nil }
			signsAs(t, must.Get(Load(plain, "", nil))(t), plain+".pub")
			signsAs(t, must.Get(Load(encrypted, "", secret))(t), encrypted+".pub")

			run(t, "ssh-add", "-q", plain)
			signsAs(t, must.Get(Load(plain+".pub", "", nil))(t), plain+".pub")
			public := must.Get(sshkey.ParsePublic(string(must.Read(t, plain+".pub"))))(t)[0]
			pemFile := filepath.Join(t.TempDir(), "id.pem")
			must.OK(t, os.WriteFile(pemFile, []byte(must.PublicPEM(t, public)), 0o600))
			signsAs(t, must.Get(Load(pemFile, "", nil))(t), plain+".pub")
		})
	}
}

// A certificate can be for a key in the agent.
func TestKeyInAgentHasCertificate(t *testing.T) {
	startAgent(t)
	pair := must.Get(NewKeyPair(identity.DN{CN: "eve", OU: "dev", O: "acme"}, "", time.Now(), 1))(t)
	file := filepath.Join(t.TempDir(), "eve")
	must.OK(t, pair.Write(file, false))
	public := filepath.Join(t.TempDir(), "eve.pub")
	must.OK(t, os.WriteFile(public, []byte(must.PublicPEM(t, pair.Cert.PublicKey)), 0o600))
	conn := must.Get(net.Dial("unix", os.Getenv("SSH_AUTH_SOCK")))(t)
	defer conn.Close()
	must.OK(t, agent.NewClient(conn).Add(agent.AddedKey{PrivateKey: pair.key}))

	s := must.Get(Load(public, file+".crt", nil))(t)
	bundle := must.Get(s.Sign([]byte(`{}`)))(t)
	if !bytes.Contains(bundle, []byte("verificationMaterial")) {
		t.Errorf("it is not a bundle: %s", bundle)
	}
}

// An agent may ask its user to confirm each signature, so only what is recorded is signed.
func TestChecksNeedNoSignatureOfTheAgent(t *testing.T) {
	pair := must.Get(NewKeyPair(identity.DN{CN: "eve", OU: "dev", O: "acme"}, "", time.Now(), 1))(t)
	asked := &agentThatAsks{ExtendedAgent: agent.NewKeyring().(agent.ExtendedAgent)}
	must.OK(t, asked.Add(agent.AddedKey{PrivateKey: pair.key}))
	socket := listen(t, func(conn net.Conn) { _ = agent.ServeAgent(asked, conn) })
	key := must.Get(newAgentKey(pair.Cert.PublicKey, socket, agentTimeout))(t)
	ids := []identity.Identity{{
		Kind: identity.KeyIdentity, DN: "cn=eve,ou=dev,o=acme", PEM: must.PublicPEM(t, pair.Cert.PublicKey),
	}}
	commit := strings.Repeat("1", 40)

	for _, test := range []struct {
		name string
		s    Signer
		want string
	}{
		{"a key", Signer{key: key}, "eve"},
		{"a key with a certificate", Signer{key: key, chain: []*x509.Certificate{pair.Cert}}, ""},
	} {
		must.OK(t, test.s.CheckTrusted(ids, commit))
		name := must.Get(test.s.Name(ids, commit, "test:go"))(t)
		if name.CN != test.want || asked.times.Load() != 0 {
			t.Errorf("%s: %q, want %q; asked %d times", test.name, name.CN, test.want, asked.times.Load())
		}
	}
	if err := (&Signer{key: key}).CheckTrusted(nil, commit); err == nil {
		t.Error("an unknown key is trusted")
	}
	must.Get((&Signer{key: key}).Sign([]byte(`{}`)))(t)
	if asked.times.Load() != 1 {
		t.Errorf("asked %d times for a signature", asked.times.Load())
	}
}

// An agentThatAsks counts the signatures for which it asks its user.
type agentThatAsks struct {
	agent.ExtendedAgent
	times atomic.Int64
}

func (a *agentThatAsks) SignWithFlags(
	key ssh.PublicKey, data []byte, flags agent.SignatureFlags,
) (*ssh.Signature, error) {
	a.times.Add(1)
	return a.ExtendedAgent.SignWithFlags(key, data, flags)
}

// listen calls serve for each connection to a new unix socket, until the test ends.
func listen(t *testing.T, serve func(net.Conn)) (socket string) {
	t.Helper()
	folder := must.Get(os.MkdirTemp("", "agent"))(t) // the path of a socket is short
	t.Cleanup(func() { must.OK(t, os.RemoveAll(folder)) })
	socket = filepath.Join(folder, "socket")
	listener := must.Get(net.Listen("unix", socket))(t)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return socket
}

func TestAgentThatDoesNotAnswer(t *testing.T) {
	socket := listen(t, func(net.Conn) {})
	pair := must.Get(NewKeyPair(identity.DN{CN: "eve", OU: "dev", O: "acme"}, "", time.Now(), 1))(t)
	_, err := newAgentKey(pair.Cert.PublicKey, socket, 60*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "ssh-agent did not answer in 0.001 minutes") {
		t.Error(err)
	}
}

// A file may have the public key after the private one, as some tools write it.
func TestPublicKeyAfterPrivateKey(t *testing.T) {
	pair := must.Get(NewKeyPair(identity.DN{CN: "eve", OU: "dev", O: "acme"}, "", time.Now(), 1))(t)
	file := filepath.Join(t.TempDir(), "eve")
	must.OK(t, pair.Write(file, false))
	both := append(must.Read(t, file+".key"), must.PublicPEM(t, pair.Cert.PublicKey)...)
	must.OK(t, os.WriteFile(file+".key", both, 0o600))
	must.Get(Load(file+".key", file+".crt", nil))(t)
}

func TestKeysThatCannotSignAreRefused(t *testing.T) {
	startAgent(t)
	plain, other := newSSHKey(t, "", "-t", "ed25519"), newSSHKey(t, "", "-t", "ed25519")
	encrypted := newSSHKey(t, "secret", "-t", "ed25519")
	run(t, "ssh-add", "-q", other)
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	two := string(must.Read(t, plain+".pub")) + string(must.Read(t, other+".pub"))
	noTerminal := func() ([]byte, error) { return nil, errors.New("no terminal") }
	wrong := func() ([]byte, error) { return []byte("guess"), nil }
	socket := os.Getenv("SSH_AUTH_SOCK")

	for name, test := range map[string]struct {
		file, socket string
		passphrase   func() ([]byte, error)
		want         string
	}{
		"no agent":             {other + ".pub", "", nil, "SSH_AUTH_SOCK is not set"},
		"no agent there":       {other + ".pub", filepath.Join(folder, "none"), nil, "ssh-agent (SSH_AUTH_SOCK)"},
		"not in the agent":     {plain + ".pub", socket, nil, "not among the 1 keys in ssh-agent"},
		"two keys":             {write("two", two), socket, nil, "has 2 SSH keys"},
		"nobody to ask":        {encrypted, socket, noTerminal, "no terminal"},
		"the wrong passphrase": {encrypted, socket, wrong, "wrong passphrase"},
		"a key of PuTTY":       {write("ppk", "PuTTY-User-Key-File-3: ssh-ed25519\n"), socket, nil, "puttygen"},
		"no key":               {write("text", "eve"), socket, nil, "no private key found"},
		"a broken public key":  {write("broken", must.PublicPEM(t, publicOf(t, plain))[:60]), socket, nil, "no PEM block"},
	} {
		t.Setenv("SSH_AUTH_SOCK", test.socket)
		if _, err := Load(test.file, "", test.passphrase); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q in it", name, err, test.want)
		}
	}
}

func publicOf(t *testing.T, file string) crypto.PublicKey {
	t.Helper()
	return must.Get(identity.ParsePrivateKey(must.Read(t, file), nil))(t).Public()
}
