package cmd

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
)

// A person runs ledgerd on a terminal.
type person struct {
	t *testing.T
	// master is the side of the terminal that the person sees and types on.
	master, slave *os.File
}

// atTerminal returns a person at a terminal with 80 columns, and a ledger that has a repo with
// an identity and a webhook.
func atTerminal(t *testing.T) *person {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminals:", err)
	}
	t.Cleanup(func() { master.Close(); slave.Close() })
	must.OK(t, pty.Setsize(slave, &pty.Winsize{Rows: 24, Cols: 80}))
	for _, name := range []string{"COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "LEDGERD_URL"} {
		t.Setenv(name, "")
	}
	t.Setenv("TERM", "xterm")
	database, err := pgtest.NewLocation(t.Cleanup, t.TempDir(), "ledger.db")
	must.OK(t, err)
	t.Setenv("LEDGERD_DATABASE", database)
	t.Chdir(t.TempDir())

	p := &person{t, master, slave}
	for _, line := range []string{
		"org create acme", "repo create acme/api", "keygen --dn cn=ci,ou=build,o=acme --out ci",
		"identity add --org acme --cert ci.crt", "webhook add acme/api --url https://ci.example.com/ledger",
	} {
		p.script(0, strings.Fields(line)...)
	}
	return p
}

// script runs a command as a script does, and returns what it prints.
func (p *person) script(status int, args ...string) string {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	if got := Main(context.Background(), args, strings.NewReader(""), &stdout, &stderr); got != status {
		p.t.Fatalf("%q: exit status %d, want %d: %s", args, got, status, &stderr)
	}
	return stdout.String()
}

// id returns the first ID with a prefix that a command lists.
func (p *person) id(prefix string, args ...string) string {
	p.t.Helper()
	id := regexp.MustCompile(prefix + `_\w+`).FindString(p.script(0, args...))
	if id == "" {
		p.t.Fatalf("%q lists no %s", args, prefix)
	}
	return id
}

// types runs a command on the terminal, with what the person types, and returns what the
// terminal shows.
func (p *person) types(input string, status int, args ...string) string {
	p.t.Helper()
	shown := make(chan string)
	go func() {
		var b bytes.Buffer
		buffer := make([]byte, 4096)
		for !bytes.Contains(b.Bytes(), []byte("\x04")) {
			n, err := p.master.Read(buffer)
			b.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		shown <- strings.ReplaceAll(b.String(), "\r\n", "\n")
	}()

	if _, err := io.WriteString(p.master, input); err != nil {
		p.t.Fatal(err)
	}
	got := Main(context.Background(), args, p.slave, p.slave, p.slave)
	if _, err := p.slave.Write([]byte("\x04")); err != nil { // the end, for the reader
		p.t.Fatal(err)
	}
	text := strings.TrimSuffix(<-shown, "\x04")
	if got != status {
		p.t.Errorf("%q: exit status %d, want %d:\n%s", args, got, status, text)
	}
	return text
}

func (p *person) contains(text string, parts ...string) {
	p.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			p.t.Errorf("it lacks %q:\n%s", part, text)
		}
	}
}

// On a terminal, tables have colours and times for people, and fit it. Scripts get what they
// always got.
func TestTerminalOutput(t *testing.T) {
	p := atTerminal(t)
	list := []string{"identity", "list", "--org", "acme"}
	shown := p.types("", 0, list...)
	p.contains(shown, "\x1b[1mDN\x1b[0m", "Not shown: FINGERPRINT")
	for line := range strings.Lines(regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(shown, "")) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 {
			t.Errorf("a line is wider than the terminal: %s", line)
		}
	}
	p.contains(p.types("", 0, append(list, "--wide")...), "FINGERPRINT", "REVOKED", "just now")
	p.contains(p.types("", 0, "repo", "show", "acme/api"), "created          just now (20")

	t.Setenv("NO_COLOR", "1")
	if text := p.types("", 0, list...); strings.Contains(text, "\x1b[") {
		t.Errorf("colours despite NO_COLOR:\n%q", text)
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if text := p.types("", 0, list...); strings.Contains(text, "\x1b[") {
		t.Errorf("colours on a dumb terminal:\n%q", text)
	}

	t.Setenv("COLUMNS", "20")
	text := p.script(0, list...)
	if strings.ContainsAny(text, "\x1b…") || !regexp.MustCompile(` 20\S+Z  -\n`).MatchString(text) {
		t.Errorf("in a pipe:\n%q", text)
	}
	t.Setenv("CLICOLOR_FORCE", "1")
	p.contains(p.script(0, list...), "\x1b[1mDN\x1b[0m")
}

// What cannot be undone is asked on a terminal, unless --yes answers. Scripts are not asked.
func TestTerminalQuestions(t *testing.T) {
	p := atTerminal(t)
	identity := p.id("idn", "identity", "list", "--org", "acme")
	webhook := p.id("whk", "webhook", "list", "acme/api")
	p.script(0, "token", "create", "--org", "acme", "--name", "ci", "--scope", "write")
	token := p.id("tok", "token", "list", "--org", "acme")
	p.script(0, "attest", "acme/api", "--commit", strings.Repeat("1", 40), "--predicate", "test:go", "--status", "pass",
		"--key", "ci.key")

	const refused = "nothing was changed"
	for _, test := range []struct {
		args     []string
		question string
	}{
		{[]string{"identity", "revoke", identity, "--org", "acme"}, "Revoke cn=ci,ou=build,o=acme of acme?"},
		{[]string{"identity", "revoke", identity, "--org", "acme", "--since", "1h"},
			"and distrust 1 attestation of 1 commit since 20"},
		{[]string{"token", "revoke", token, "--org", "acme"}, `Revoke the write token "ci" of acme? [y/N]`},
		{[]string{"webhook", "rotate", "acme/api", webhook},
			"of acme/api to https://ci.example.com/ledger, and stop signing with the old one in 24h? [y/N]"},
		{[]string{"webhook", "remove", "acme/api", webhook},
			"Delete the webhook of acme/api to https://ci.example.com/ledger, and cancel its pending deliveries? [y/N]"},
		{[]string{"commit", "withdraw", "acme/api", strings.Repeat("1", 40)},
			"Take acme/api@111111111111 out of flight? [y/N]"},
	} {
		p.contains(p.types("n\n", 1, test.args...), test.question, refused)
	}

	p.contains(p.types("\n", 1, "webhook", "remove", "acme/api", webhook), refused)
	p.contains(p.script(0, "webhook", "list", "acme/api"), webhook)
	p.contains(p.types("y\n", 0, "webhook", "remove", "acme/api", webhook), "[y/N]", "Deleted webhook "+webhook)
	if text := p.types("", 0, "token", "revoke", token, "--org", "acme", "--yes"); strings.Contains(text, "[y/N]") {
		t.Errorf("asked despite --yes:\n%s", text)
	}
	p.contains(p.script(0, "identity", "revoke", identity, "--org", "acme"), "Revoked "+identity)
}

// The passphrase of an encrypted key is asked for on a terminal.
func TestTerminalAsksForPassphrases(t *testing.T) {
	p := atTerminal(t)
	public, key, err := ed25519.GenerateKey(rand.Reader)
	must.OK(t, err)
	encrypted := must.Get(ssh.MarshalPrivateKeyWithPassphrase(key, "ann@laptop", []byte("open sesame")))(t)
	must.OK(t, os.WriteFile("ann", pem.EncodeToMemory(encrypted), 0o600))
	line := ssh.MarshalAuthorizedKey(must.Get(ssh.NewPublicKey(public))(t))
	must.OK(t, os.WriteFile("ann.pub", line, 0o600))
	p.script(0, "identity", "add", "--org", "acme", "--key", "ann.pub", "--dn", "cn=ann,ou=dev,o=acme")

	attest := []string{"attest", "acme/api", "--commit", strings.Repeat("1", 40), "--predicate", "test:go", "--status",
		"pass", "--key", "ann"}
	p.contains(p.types("open sesame\n", 0, attest...), "Passphrase of ann:", "Recorded test:go pass")
	p.contains(p.types("open\n", 1, attest...), "Passphrase of ann:", "wrong passphrase")
}
