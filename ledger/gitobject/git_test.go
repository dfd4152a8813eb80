package gitobject_test

import (
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
)

// A repository is one that git made, with either hash function.
type repository struct {
	t   *testing.T
	dir string
}

// eachFormat runs a test with a repository of each object format.
func eachFormat(t *testing.T, test func(t *testing.T, r repository)) {
	gitrepotest.IgnoreConfig(t)
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			r := repository{t, t.TempDir()}
			r.git("init", "-q", "--initial-branch=main", "--object-format="+format)
			test(t, r)
		})
	}
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	return gitrepotest.Git(r.t, r.dir, "", args...)
}

// object returns a commit as git has it.
func (r repository) object(rev string) (id string, object []byte) {
	r.t.Helper()
	id = r.git("rev-parse", rev)
	out, err := exec.Command("git", "-C", r.dir, "cat-file", "commit", id).Output()
	must.OK(r.t, err)
	return id, out
}

func (r repository) parse(rev string) *gitobject.Commit {
	r.t.Helper()
	id, object := r.object(rev)
	c, err := gitobject.Parse(id, object)
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", rev, err, object)
	}
	return c
}

// What the parser says of commits is what git log shows.
func TestParseAgreesWithGit(t *testing.T) {
	eachFormat(t, func(t *testing.T, r repository) {
		r.git("commit", "-q", "--allow-empty", "-m", "root")
		for _, branch := range []string{"a", "b", "c", "d"} {
			r.git("checkout", "-q", "-b", branch, "main")
			must.OK(t, os.WriteFile(filepath.Join(r.dir, branch), []byte(branch), 0o600))
			r.git("add", branch)
			r.git("commit", "-q", "--author", "José É <jose@x>", "-m", "Add "+branch, "-m", "Co-authored-by: Cy <cy@x>")
		}
		r.git("tag", "-a", "-m", "v1", "v1", "d")
		r.git("checkout", "-q", "main")
		r.git("merge", "-q", "--no-ff", "-m", "one", "a")
		r.git("merge", "-q", "-m", "octopus", "b", "c")
		r.git("merge", "-q", "--no-ff", "-m", "tag", "v1") // with a mergetag
		r.git("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-q", "--allow-empty", "--author", "Jos\xe9 <jose@x>",
			"-m", "\xfcber")
		r.git("-c", "i18n.commitEncoding=Shift_JIS", "commit", "-q", "--allow-empty", "-m", "\x83A\x83_")
		r.git("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
		r.git("commit", "-q", "--allow-empty", "--author", "Jos\xe9 <jose@x>", "-m", "no encoding")

		commits := strings.Fields(r.git("rev-list", "--all"))
		if len(commits) != 12 {
			t.Errorf("%d commits", len(commits))
		}
		for _, id := range commits {
			c := r.parse(id)
			const format = "--format=%T|%P|%an|%ae|%cn|%ce|%ct|%B"
			want := r.git("log", "-1", "--encoding=UTF-8", format, id)
			got := strings.Join([]string{c.Tree, strings.Join(c.Parents, " "), c.Author.Name, c.Author.Email, c.Committer.Name,
				c.Committer.Email, strings.TrimSuffix(r.git("log", "-1", "--format=%ct", id), "\n"), c.Message}, "|")
			if got != want {
				t.Errorf("%s: %s\nwant %s", id, got, want)
			}
			if c.Committer.At != ledger.TimeOf(c.Committer.At.Std()) || c.Committer.At == 0 {
				t.Errorf("%s: committed at %v", id, c.Committer.At)
			}
		}
	})
}

// newKey makes an SSH key, and returns its file and the hex of its SubjectPublicKeyInfo.
func newKey(t *testing.T, args ...string) (file, spki string) {
	t.Helper()
	testenv.Need(t, "ssh-keygen")
	file = filepath.Join(t.TempDir(), "key")
	args = append([]string{"-q", "-N", "", "-f", file}, args...)
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	text := must.Read(t, file+".pub")
	key, _, _, _, err := ssh.ParseAuthorizedKey(text)
	must.OK(t, err)
	return file, spkiOf(t, key.(ssh.CryptoPublicKey).CryptoPublicKey())
}

func spkiOf(t *testing.T, key any) string {
	t.Helper()
	der := must.Get(x509.MarshalPKIXPublicKey(key))(t)
	return hex.EncodeToString(der)
}

// Commits signed by the real programs.
func TestVerifySSH(t *testing.T) {
	eachFormat(t, func(t *testing.T, r repository) {
		for _, kind := range [][]string{{"-t", "ed25519"}, {"-t", "ecdsa", "-b", "384"}, {"-t", "rsa", "-b", "2048"}} {
			file, spki := newKey(t, kind...)
			r.git("-c", "gpg.format=ssh", "-c", "user.signingkey="+file, "-c", "i18n.commitEncoding=ISO-8859-1",
				"commit", "-q", "-S", "--allow-empty", "-m", "One\n\ntwo")
			c := r.parse("HEAD")
			key, err := c.VerifySSH()
			if err != nil || spkiOf(t, key.PublicKey) != spki || key.Certified {
				t.Errorf("%s: %+v, %v", kind, key, err)
			}
		}

		r.git("commit", "-q", "--allow-empty", "-m", "not signed")
		if c := r.parse("HEAD"); c.HasSSHSignature() {
			t.Errorf("%s has a signature", c.Object)
		} else if _, err := c.VerifySSH(); err != gitobject.ErrNoSSHSignature { //nolint:errorlint // it is not wrapped
			t.Errorf("not signed: %v", err)
		}
	})
}

// A signature counts only for the object that it is in, and only if it was made for git.
func TestVerifySSHRefuses(t *testing.T) {
	eachFormat(t, func(t *testing.T, r repository) {
		file, _ := newKey(t, "-t", "ed25519")
		r.git("-c", "gpg.format=ssh", "-c", "user.signingkey="+file, "commit", "-q", "-S", "--allow-empty", "-m", "One")
		id, object := r.object("HEAD")
		text := string(object)
		header := "gpgsig"
		if len(id) == 64 {
			header = "gpgsig-sha256"
		}
		other := map[string]string{"gpgsig": "gpgsig-sha256", "gpgsig-sha256": "gpgsig"}[header]

		for name, test := range map[string]struct{ object, why string }{
			"another message":   {strings.Replace(text, "One", "Two", 1), "does not match"},
			"another author":    {strings.Replace(text, "author Ada", "author Eve", 1), "does not match"},
			"another header":    {strings.Replace(text, "\n\nOne", "\nx y\n\nOne", 1), "does not match"},
			"truncated":         {cutSignature(text), "malformed"},
			"the other form":    {strings.Replace(text, header+" ", other+" ", 1), "no SSH signature"},
			"another namespace": {resigned(t, file, text, header, "file"), "another namespace"},
		} {
			id := gitrepotest.Git(t, r.dir, test.object, "hash-object", "-t", "commit", "--literally", "--stdin")
			c, err := gitobject.Parse(id, []byte(test.object))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if _, err := c.VerifySSH(); err == nil || !strings.Contains(err.Error(), test.why) {
				t.Errorf("%s: %v, want %q", name, err, test.why)
			}
		}

		same := resigned(t, file, text, header, "git")
		id = gitrepotest.Git(t, r.dir, same, "hash-object", "-t", "commit", "--literally", "--stdin")
		if c, err := gitobject.Parse(id, []byte(same)); err != nil {
			t.Error(err)
		} else if _, err := c.VerifySSH(); err != nil {
			t.Errorf("signed by ssh-keygen for git: %v", err)
		}
	})
}

// cutSignature removes the second line of a signature.
func cutSignature(object string) string {
	begin := strings.Index(object, "SIGNATURE-----\n") + len("SIGNATURE-----\n")
	end := begin + strings.Index(object[begin:], "\n") + 1
	return object[:begin] + object[end:]
}

// resigned replaces the signature of a commit object by one for the namespace.
func resigned(t *testing.T, key, object, header, namespace string) string {
	t.Helper()
	begin := strings.Index(object, header+" ")
	end := begin + strings.Index(object[begin:], "-----END SSH SIGNATURE-----\n") + len("-----END SSH SIGNATURE-----\n")
	rest := object[:begin] + object[end:]
	command := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", namespace)
	command.Stdin = strings.NewReader(rest)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("ssh-keygen: %v", err)
	}
	if block, _ := pem.Decode(out); block == nil {
		t.Fatalf("ssh-keygen printed %q", out)
	}
	signature := strings.ReplaceAll(strings.TrimSuffix(string(out), "\n"), "\n", "\n ")
	return object[:begin] + header + " " + signature + "\n" + object[end:]
}

// A certificate in a signature names the key that made it.
func TestVerifySSHWithCertificate(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	r := repository{t, t.TempDir()}
	r.git("init", "-q", "--initial-branch=main")
	authority, _ := newKey(t, "-t", "ed25519")
	file, spki := newKey(t, "-t", "ed25519")
	out, err := exec.Command("ssh-keygen", "-q", "-s", authority, "-I", "ada", "-n", "ada", file+".pub").CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}

	r.git("-c", "gpg.format=ssh", "-c", "user.signingkey="+file+"-cert.pub", "commit", "-q", "-S", "--allow-empty",
		"-m", "One")
	key, err := r.parse("HEAD").VerifySSH()
	if err != nil || !key.Certified || spkiOf(t, key.PublicKey) != spki {
		t.Errorf("%+v, %v", key, err)
	}
}
