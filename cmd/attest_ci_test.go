package cmd_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

const (
	requestSecret = "secret-of-the-request"
	jobCommit     = "1111111111111111111111111111111111111111"
	jobSigner     = "cn=api,ou=ci-build,o=acme"
)

// A forge is a server of acme with a CA, and a CI system whose jobs may sign. It gives tokens as
// GitHub does.
type forge struct {
	*victim
	provider *oidctest.Provider
	url      string // for requests of tokens
	requests atomic.Int64
	// early is a file without which a request for a token is too early.
	early string
}

func newForge(t *testing.T) *forge {
	t.Helper()
	f := &forge{victim: newVictim(t), provider: oidctest.New(t)}
	f.ledgerd("identity", "ci-ca", "create", "--org", "acme", "--may", "test:*")
	admin := f.ledgerd("token", "create", "--org", "acme", "--name", "admin", "--scope", "admin")
	address, err := testenv.FreeAddress()
	must.OK(t, err)
	f.env = append(f.env, "LEDGERD_BASE_URL=http://"+address)
	f.victim.url = "http://" + f.listen(address)

	f.post(admin, "issuers", map[string]any{"url": f.provider.URL, "jwks": f.provider.JWKS()})
	for _, id := range []string{"repository_id", "project_id"} {
		f.post(admin, "exchange-rules", map[string]any{"name": "main", "issuer": f.provider.URL, id: "1234", "scope": "write",
			"repos": []string{"api"}, "dn": jobSigner, "refs": []string{"main"}})
	}
	server := httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// post creates a resource of acme.
func (f *forge) post(token, path string, body any) {
	f.t.Helper()
	text := must.Get(json.Marshal(body))(f.t)
	r, err := http.NewRequestWithContext(f.t.Context(), "POST", f.victim.url+"/v1/orgs/acme/"+path, bytes.NewReader(text))
	must.OK(f.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	must.OK(f.t, err)
	must.OK(f.t, resp.Body.Close())
	if resp.StatusCode != http.StatusCreated {
		f.t.Fatalf("POST %s: %s", path, resp.Status)
	}
}

// serve gives the token of a job.
func (f *forge) serve(w http.ResponseWriter, r *http.Request) {
	f.requests.Add(1)
	if r.Header.Get("Authorization") != "Bearer "+requestSecret {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if _, err := os.Stat(f.early); err != nil && f.early != "" {
		f.t.Errorf("a token was requested before the command ended")
	}
	token := f.provider.Token(f.provider.GitHub(r.URL.Query().Get("audience"), time.Now()))
	fmt.Fprintf(w, `{"value":%q}`, token)
}

// variables returns the environment of a job of the forge, without any secret for the ledger.
func (f *forge) variables(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "LEDGERD_") || strings.HasPrefix(variable, "GITHUB_")
	})
	env = append(env, "LEDGERD_URL="+f.victim.url, "HOME="+f.t.TempDir())
	if len(more) == 0 {
		more = []string{"GITHUB_ACTIONS=true", "ACTIONS_ID_TOKEN_REQUEST_URL=" + f.url + "?x=1",
			"ACTIONS_ID_TOKEN_REQUEST_TOKEN=" + requestSecret}
	}
	return append(env, more...)
}

// attest runs attest --ci in a job, and returns its output and exit status.
func (f *forge) attest(env []string, args ...string) (stdout, stderr string, status int) {
	f.t.Helper()
	args = append([]string{"attest", "acme/api", "--ci", "--commit", jobCommit}, args...)
	return run(f.t, env, append([]string{"ledgerd"}, args...)...)
}

// run runs a command outside any git work tree.
func run(t *testing.T, env []string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	command := exec.Command(args[0], args[1:]...)
	var out, errs strings.Builder
	command.Env, command.Dir, command.Stdout, command.Stderr = env, t.TempDir(), &out, &errs
	if err := command.Run(); command.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
}

func TestJobAttestsWithoutASecret(t *testing.T) {
	f := newForge(t)
	f.early = filepath.Join(t.TempDir(), "ended")
	_, stderr, status := f.attest(f.variables(), "--predicate", "test:go", "--", "touch", f.early)
	if status != 0 || !strings.Contains(stderr, "Signing as "+jobSigner+", with a certificate until 20") {
		t.Fatalf("status %d: %s", status, stderr)
	}
	list := f.ledgerd("attestation", "list", "acme/api", "-o", "json")
	if !strings.Contains(list, `"predicate": "test:go"`) || !strings.Contains(list, `"identity": "`+jobSigner+`"`) {
		t.Errorf("recorded %s", list)
	}
	if f.requests.Load() != 1 {
		t.Errorf("requested %d tokens, want one", f.requests.Load())
	}

	// A command that fails is recorded, too.
	if _, stderr, status := f.attest(f.variables(), "--predicate", "test:unit", "--", "sh", "-c", "exit 3"); status != 3 {
		t.Errorf("status %d: %s", status, stderr)
	}
	// A statement of another tool is recorded, too.
	_, stderr, status = f.attest(f.variables(), "--predicate", "test:other", "--status", "pass")
	if status != 0 {
		t.Errorf("status %d: %s", status, stderr)
	}
	_, stderr, status = f.attest(f.variables(), "--predicate", "review:code", "--status", "pass")
	if status != 1 || !strings.Contains(stderr, jobSigner+" may not attest review:code") {
		t.Errorf("status %d: %s", status, stderr)
	}
	audit := f.ledgerd("audit", "list", "--org", "acme", "--action", "certificate")
	if n := strings.Count(audit, "certificate.issued"); n != 4 {
		t.Errorf("logged %d certificates, want 4: %s", n, audit)
	}

	// Recorded attestations stay valid after the CA has ended, and can be verified without the ledger.
	f.ledgerd("identity", "ci-ca", "retire", "--org", "acme")
	_, stderr, status = f.attest(f.variables(), "--predicate", "test:late", "--status", "pass")
	if status != 1 || !strings.Contains(stderr, "org acme has no CA for CI jobs") {
		t.Errorf("status %d: %s", status, stderr)
	}
	f.ledgerd("check")
	f.wantEvidence()
}

// wantEvidence exports the evidence of the commit, and verifies it without the server.
func (f *forge) wantEvidence() {
	f.t.Helper()
	folder := f.t.TempDir()
	file, policy := filepath.Join(folder, "evidence.tar"), filepath.Join(folder, "policy")
	reader := f.ledgerd("token", "create", "--org", "acme", "--name", "reader", "--scope", "read")
	env := append(f.variables("LEDGERD_TOKEN="+reader), "XDG_STATE_HOME="+folder)
	if _, stderr, status := run(f.t, env, "ledgerd", "evidence", "export", "acme/api", "--commit", jobCommit, "--out",
		file); status != 0 {
		f.t.Fatalf("status %d: %s", status, stderr)
	}

	key := fileIn(f.t, file, "log/vkey")
	must.OK(f.t, os.WriteFile(policy, fmt.Appendf(nil, "log %s\nquorum none\n", bytes.TrimSpace(key)), 0o600))
	offline := append(env, "LEDGERD_URL=")
	stdout, stderr, status := run(f.t, offline, "ledgerd", "verify", "evidence", file, "--policy", policy)
	if status != 0 || !strings.Contains(stdout, "signature    ok: 3 attestations") {
		f.t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}

// fileIn returns a file in an archive.
func fileIn(t *testing.T, archive, name string) []byte {
	t.Helper()
	file := must.Get(os.Open(archive))(t)
	defer file.Close()
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		must.OK(t, err)
		if header.Name == name {
			return must.Get(io.ReadAll(r))(t)
		}
	}
}

// On GitLab, the token is in the environment. It counts once.
func TestJobOnGitLabAttestsOnce(t *testing.T) {
	f := newForge(t)
	token := f.provider.Token(f.provider.GitLab(f.victim.url+"/v1/orgs/acme", time.Now()))
	env := f.variables("GITLAB_CI=true", "LEDGERD_ID_TOKEN="+token)
	if _, stderr, status := f.attest(env, "--predicate", "test:go", "--", "true"); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	_, stderr, status := f.attest(env, "--predicate", "test:more", "--", "true")
	if status != 1 || !strings.Contains(stderr, "the command passed, but the result was not recorded: get a certificate: "+
		"the token was used before") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// Errors that can be predicted are reported before the command runs.
func TestJobIsRefusedBeforeItsCommand(t *testing.T) {
	f := newForge(t)
	for name, tc := range map[string]struct {
		env    []string
		args   []string
		status int
		want   string
	}{
		"no permission": {f.variables("GITHUB_ACTIONS=true"), nil, 1, "add 'id-token: write' to the permissions of the job"},
		"no id_tokens": {f.variables("GITLAB_CI=true"), nil, 1,
			"id_tokens: {LEDGERD_ID_TOKEN: {aud: " + f.victim.url + "/v1/orgs/acme}}"},
		"a key":       {f.variables(), []string{"--key", "x"}, 2, "--ci and --key or --cert are mutually exclusive"},
		"an envelope": {f.variables(), []string{"--envelope", "x"}, 2, "--ci cannot be used with --envelope"},
		"a file":      {f.variables(), []string{"--out", "x"}, 2, "--ci cannot be used with --out"},
		"a state": {f.variables(), []string{"--require-state", "PROMOTABLE"}, 2,
			"--require-state and deploy with --ci need an API token"},
		"no server": {f.variables("GITHUB_ACTIONS=true", "LEDGERD_URL="), nil, 2, "--ci needs a server"},
		"a wrong token": {f.variables("GITHUB_ACTIONS=true", "ACTIONS_ID_TOKEN_REQUEST_URL="+f.url,
			"ACTIONS_ID_TOKEN_REQUEST_TOKEN="+requestSecret, "LEDGERD_TOKEN=ldg_x"), nil, 1, "API token"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--predicate", "test:go"}, tc.args...)
			stdout, stderr, status := f.attest(tc.env, append(args, "--", "echo", "ran")...)
			if status != tc.status || !strings.Contains(stderr, tc.want) || strings.Contains(stdout, "ran") {
				t.Errorf("status %d: %s%s, want %d: %s", status, stdout, stderr, tc.status, tc.want)
			}
		})
	}
	if f.requests.Load() != 0 {
		t.Errorf("%d tokens were requested", f.requests.Load())
	}
}

// With an API token of its own, a job gets no other, and the state can be required.
func TestJobWithAnAPITokenSignsWithoutAKey(t *testing.T) {
	f := newForge(t)
	writer := f.ledgerd("token", "create", "--org", "acme", "--name", "ci", "--scope", "write")
	env := append(f.variables(), "LEDGERD_TOKEN="+writer)
	if _, stderr, status := f.attest(env, "--predicate", "test:go", "--", "true"); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if audit := f.ledgerd("audit", "list", "--org", "acme", "--action", "token"); strings.Contains(audit, "exchanged") {
		t.Errorf("an API token was exchanged: %s", audit)
	}
	stdout, stderr, status := f.attest(env, "--predicate", "test:go", "--require-state", "DEPLOYED", "--", "echo", "ran")
	if status != 4 || strings.Contains(stdout, "ran") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}
