package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/forge"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

func TestOrgsAndTokens(t *testing.T) {
	b := newBackend(t)
	ctx := t.Context()

	orgs := must.Get(client.Collect(b.host.Orgs(ctx), 0))(t)
	if len(orgs) != 1 || orgs[0].Name != "acme" {
		t.Errorf("orgs %v, want only acme", orgs)
	}
	if org := must.Get(b.admin.Org(ctx, "acme"))(t); !reflect.DeepEqual(org, orgs[0]) {
		t.Errorf("org %v, listed as %v", org, orgs[0])
	}
	if org := must.Get(b.admin.ChangeOrg(ctx, "acme", ledger.OrgChange{LogPublic: new(true)}))(t); !org.LogPublic {
		t.Errorf("the changed org %+v", org)
	}
	repo := must.Get(b.admin.Repo(ctx, "acme", "api"))(t)
	if repo.DefaultBranch != "main" || repo.PolicyVersion != 1 || len(repo.Commits) != len(ledger.States()) {
		t.Errorf("repo %+v", repo)
	}
	if repos := must.Get(client.Collect(b.admin.Repos(ctx, "acme"), 0))(t); len(repos) != 1 || repos[0].Name != "api" {
		t.Errorf("repos %v", repos)
	}
	linked := must.Get(b.admin.ChangeRepo(ctx, "acme", "api",
		ledger.RepoChange{WebURL: new("https://codeberg.org/acme/api")}))(t)
	if linked.WebURL != "https://codeberg.org/acme/api" || linked.Forge != forge.Forgejo {
		t.Errorf("the changed repo %+v", linked)
	}
	own := must.Get(b.admin.OwnToken(ctx))(t)
	if own.Name != "admin" || own.Scope != ledger.Admin || own.Org != "acme" || own.Secret != "" {
		t.Errorf("own token %+v", own)
	}
	created := must.Get(b.admin.CreateToken(ctx, "acme",
		ledger.NewToken{Name: "ci", Scope: ledger.Write, ExpiresAt: ledger.TimeOf(time.Now().Add(time.Hour))}))(t)
	if created.Secret == "" || created.ExpiresAt == 0 {
		t.Errorf("created token %+v", created)
	}
	if err := b.admin.RevokeToken(ctx, "acme", created.ID); err != nil {
		t.Error(err)
	}
	_, err := newClient(t, b.url, created.Secret).OwnToken(ctx)
	if client.CodeOf(err) != ledger.CodeUnauthenticated {
		t.Errorf("revoked token: %v", err)
	}
	if tokens := must.Get(client.Collect(b.admin.Tokens(ctx, "acme"), 0))(t); len(tokens) != 2 {
		t.Errorf("tokens %v, want two", tokens)
	}
}

func TestAttest(t *testing.T) {
	b := newBackend(t)
	ctx := t.Context()
	key, identity := b.addKey(t, "cn=ci,ou=build,o=acme")

	commit, created, err := b.admin.Register(ctx, "acme", "api", sha, ledger.Registration{
		Branch: "topic", Author: ledger.Author{Name: "Ada", Email: "ada@example.org"}, Changes: []radar.Change{},
	})
	if err != nil || !created || commit.State != ledger.Draft {
		t.Fatalf("registered %+v, created %t: %v", commit, created, err)
	}
	if _, created, err = b.admin.Register(ctx, "acme", "api", sha, ledger.Registration{Message: "m"}); err != nil ||
		created {
		t.Errorf("registered again: created %t: %v", created, err)
	}

	signed := envelope(t, key, sha, "test:go", ledger.Pass)
	record, created, err := b.admin.Record(ctx, "acme", "api", signed)
	if err != nil || !created {
		t.Fatalf("recorded %+v, created %t: %v", record, created, err)
	}
	again, created, err := b.admin.Record(ctx, "acme", "api", signed)
	if err != nil || created || again != record {
		t.Errorf("recorded again as %+v, created %t: %v", again, created, err)
	}
	got := must.Get(b.admin.Attestation(ctx, "acme", "api", record.ID))(t)
	if want := (ledger.Verification{Key: identity.Fingerprint, IdentityID: identity.ID}); got.Verification == nil ||
		*got.Verification != want {
		t.Errorf("verification %+v, want %+v", got.Verification, want)
	}
	if got.Verification = nil; got != record {
		t.Errorf("attestation %+v, recorded as %+v", got, record)
	}
	if got := must.Get(b.admin.Envelope(ctx, "acme", "api", record.ID))(t); string(got) != string(signed) {
		t.Errorf("envelope %s, posted as %s", got, signed)
	}
	commit = must.Get(b.admin.Commit(ctx, "acme", "api", sha[:8]))(t)
	if commit.State != ledger.Attested || len(commit.Attestations) != 1 || len(commit.Transitions) != 2 ||
		commit.Message != "m" {
		t.Errorf("commit %+v", commit)
	}
	predicates := must.Get(client.Collect(b.admin.Predicates(ctx, "acme"), 0))(t)
	if len(predicates) != 1 || predicates[0].Predicate != "test:go" {
		t.Errorf("predicates %v", predicates)
	}

	must.OK(t, b.admin.RevokeIdentity(ctx, "acme", identity.ID))
	if got := must.Get(b.admin.Identity(ctx, "acme", identity.ID))(t); got.RevokedAt == 0 {
		t.Errorf("revoked identity %+v", got)
	}
	if got := must.Get(client.Collect(b.admin.Identities(ctx, "acme"), 0))(t); len(got) != 1 {
		t.Errorf("identities %v", got)
	}
	_, _, err = b.admin.Record(ctx, "acme", "api", envelope(t, key, sha, "test:go", ledger.Fail))
	if client.CodeOf(err) != ledger.CodeRevokedIdentity {
		t.Errorf("signed by a revoked identity: %v", err)
	}
}

func TestFilters(t *testing.T) {
	b := newBackend(t)
	ctx := t.Context()
	key, _ := b.addKey(t, "cn=ci,ou=build,o=acme")
	other := strings.Repeat("b2", 20)
	for _, e := range [][]byte{
		envelope(t, key, sha, "test:go", ledger.Pass),
		envelope(t, key, sha, "lint:vet", ledger.Fail),
		envelope(t, key, other, "lint:vet", ledger.Pass),
	} {
		if _, _, err := b.admin.Record(ctx, "acme", "api", e); err != nil {
			t.Fatal(err)
		}
	}
	attested := ledger.Attested

	for name, test := range map[string]struct {
		filter client.AttestationFilter
		want   string
	}{
		"all, newest first": {client.AttestationFilter{}, "lint:vet pass, lint:vet fail, test:go pass"},
		"oldest first":      {client.AttestationFilter{OldestFirst: true}, "test:go pass, lint:vet fail, lint:vet pass"},
		"a predicate":       {client.AttestationFilter{Predicate: "test:*"}, "test:go pass"},
		"a type": {client.AttestationFilter{Predicate: "lint:*", PredicateType: "https://github.com/*"},
			"lint:vet pass, lint:vet fail"},
		"another type": {client.AttestationFilter{PredicateType: "https://slsa.dev/*"}, ""},
		"recorded":     {client.AttestationFilter{Status: ledger.Recorded}, ""},
		"a plain name": {client.AttestationFilter{Identity: "nobody"}, ""},
		"a DN": {client.AttestationFilter{Identity: "cn=ci,ou=build,o=acme", Status: ledger.Fail},
			"lint:vet fail"},
		"a commit":   {client.AttestationFilter{Commit: other[:10]}, "lint:vet pass"},
		"the future": {client.AttestationFilter{Since: ledger.TimeOf(time.Now().Add(time.Hour))}, ""},
	} {
		var got []string
		for a, err := range b.admin.Attestations(ctx, "acme", "api", test.filter) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got = append(got, fmt.Sprintf("%s %s", a.Predicate, a.Result.Status))
		}
		if s := strings.Join(got, ", "); s != test.want {
			t.Errorf("%s: %q, want %q", name, s, test.want)
		}
	}

	commits := must.Get(client.Collect(b.admin.Commits(ctx, "acme", "api", client.CommitFilter{State: &attested}), 0))(t)
	if len(commits) != 1 || commits[0].SHA != sha {
		t.Errorf("ATTESTED commits: %v, want only %s", commits, sha)
	}
	commits = must.Get(client.Collect(
		b.admin.Commits(ctx, "acme", "api", client.CommitFilter{Branch: "none", Author: "nobody"}), 0))(t)
	if len(commits) != 0 {
		t.Errorf("commits of an unknown author: %v", commits)
	}
}

func TestPolicy(t *testing.T) {
	b := newBackend(t)
	ctx := t.Context()
	first, etag, err := b.admin.Policy(ctx, "acme", "api")
	if err != nil || first.Version != 1 || etag == "" {
		t.Fatalf("policy %+v, ETag %s: %v", first, etag, err)
	}

	contract := []byte(`{"requirements":[{"state":"ATTESTED","predicate":"lint:*"}]}`)
	if s := must.Get(b.admin.Simulate(ctx, "acme", "api", contract))(t); s.Evaluated != 0 || len(s.Moves) != 0 {
		t.Errorf("simulated %+v", s)
	}
	second := must.Get(b.admin.SetPolicy(ctx, "acme", "api", contract, etag))(t)
	if second.Version != 2 || len(second.Requirements) != 1 {
		t.Errorf("replaced by %+v", second)
	}

	// A response that is large enough to be compressed has a different ETag.
	large := []byte(`{"requirements":[` + strings.Repeat(`{"state":"ATTESTED","predicate":"lint:*"},`, 20) +
		`{"state":"ATTESTED","predicate":"test:*"}]}`)
	for range 2 {
		if _, etag, err = b.admin.Policy(ctx, "acme", "api"); err != nil {
			t.Fatal(err)
		}
		if _, err = b.admin.SetPolicy(ctx, "acme", "api", large, etag); err != nil {
			t.Fatalf("with ETag %s: %v", etag, err)
		}
	}
	_, err = b.admin.SetPolicy(ctx, "acme", "api", contract, etag)
	if client.CodeOf(err) != ledger.CodePreconditionFailed {
		t.Errorf("stale ETag: %v", err)
	}
	_, err = b.admin.SetPolicy(ctx, "acme", "api", contract, "")
	if client.CodeOf(err) != ledger.CodePreconditionRequired {
		t.Errorf("no ETag: %v", err)
	}
	if old := must.Get(b.admin.PolicyVersion(ctx, "acme", "api", 1))(t); old.Digest != first.Digest {
		t.Errorf("version 1 is %+v, want %+v", old, first)
	}
	versions := must.Get(client.Collect(b.admin.PolicyVersions(ctx, "acme", "api"), 0))(t)
	if len(versions) != 4 || versions[0].Version != 4 {
		t.Errorf("versions %v, want 4, 3, 2 and 1", versions)
	}
}

func TestPages(t *testing.T) {
	b := newBackend(t)
	const repos = 120 // more than two pages of 50
	for i := range repos {
		if _, err := b.admin.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: fmt.Sprintf("r%03d", i)}); err != nil {
			t.Fatal(err)
		}
	}

	seen := make(map[string]bool)
	for repo, err := range b.admin.Repos(t.Context(), "acme") {
		must.OK(t, err)
		seen[repo.Name] = true
	}
	if len(seen) != repos+1 {
		t.Errorf("listed %d repos, want %d", len(seen), repos+1)
	}
	if some := must.Get(client.Collect(b.admin.Repos(t.Context(), "acme"), 70))(t); len(some) != 70 {
		t.Errorf("collected %d repos, want 70", len(some))
	}
	none := must.Get(client.Collect(b.admin.Identities(t.Context(), "acme"), 0))(t)
	if none == nil {
		t.Error("an empty list is nil, which is null in JSON")
	}
}

func TestEvents(t *testing.T) {
	b := newBackend(t)
	key, _ := b.addKey(t, "cn=ci,ou=build,o=acme")
	if _, _, err := b.admin.Record(t.Context(), "acme", "api", envelope(t, key, sha, "test:go", ledger.Pass)); err != nil {
		t.Fatal(err)
	}

	type event struct {
		ID   string           `json:"id"`
		Type ledger.EventType `json:"type"`
	}
	walk := func(f client.EventFilter) (events []event) {
		for body, err := range b.admin.Events(t.Context(), "acme", f) {
			must.OK(t, err)
			var e event
			if err := ledger.DecodeOpen(body, &e); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			events = append(events, e)
		}
		return events
	}

	all := walk(client.EventFilter{})
	if len(all) != 3 || all[0].Type != ledger.EventAttestation {
		t.Fatalf("events %v, want an attestation and two transitions", all)
	}
	after := walk(client.EventFilter{After: all[0].ID, Types: []ledger.EventType{ledger.EventState, ledger.EventPolicy},
		Repo: "api"})
	if len(after) != 2 || after[0] != all[1] {
		t.Errorf("events after the first: %v", after)
	}
}

func TestPublicEndpoints(t *testing.T) {
	b := newBackend(t)
	c := newClient(t, b.url+"/", "") // a trailing slash is allowed
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if text := must.Get(c.Description(t.Context()))(t); !strings.HasPrefix(string(text), "openapi:") &&
		!strings.Contains(string(text), "\nopenapi:") {
		t.Errorf("the description starts with %.40q", text)
	}
}

func TestProblems(t *testing.T) {
	b := newBackend(t)
	ctx := t.Context()

	_, err := b.admin.Repo(ctx, "acme", "nope")
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != 404 || e.Problem.Code != ledger.CodeNotFound ||
		e.Problem.RequestID == "" {
		t.Errorf("unknown repo: %#v", err)
	}
	_, err = b.admin.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "no/such"})
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != 422 || len(e.Problem.Errors) != 1 ||
		!strings.Contains(err.Error(), "name: ") {
		t.Errorf("invalid name: %v", err)
	}
	if _, err = newClient(t, b.url, "").OwnToken(ctx); client.CodeOf(err) != ledger.CodeUnauthenticated {
		t.Errorf("no token: %v", err)
	}
	if _, err = newClient(t, b.url, b.token(t, ledger.Read)).CreateRepo(
		ctx, "acme", ledger.NewRepo{Name: "x"}); client.CodeOf(err) != ledger.CodeForbidden {
		t.Errorf("insufficient scope: %v", err)
	}
	if _, err = b.admin.Commit(ctx, "acme", "a repo?y", "#"); client.CodeOf(err) != ledger.CodeNotFound {
		t.Errorf("names are not escaped: %v", err)
	}
	for _, err := range b.admin.Repos(ctx, "other") {
		if client.CodeOf(err) != ledger.CodeForbidden {
			t.Errorf("list of another org: %v", err)
		}
	}
}

func TestInvalidNames(t *testing.T) {
	b := newBackend(t)
	for _, name := range []string{"", ".", "..", "a/b", "/"} {
		_, err := b.admin.Repo(t.Context(), "acme", name)
		if err == nil || !strings.Contains(err.Error(), "invalid name") {
			t.Errorf("repo %q: %v", name, err)
		}
		if err := b.admin.RevokeToken(t.Context(), "acme", name); err == nil {
			t.Errorf("no error for the token %q", name)
		}
	}
}

func TestInvalidTokens(t *testing.T) {
	for _, token := range []string{"ldg_secret\n", "ldg_ secret", "ldg_secret\x00", "ldg_sécret"} {
		_, err := client.New("https://ledger.example", client.Options{Token: token})
		if err == nil || strings.Contains(err.Error(), "ldg_") {
			t.Errorf("%q: %v", token, err)
		}
	}
}

// A proxy or another server may respond instead of ledgerd.
func TestForeignResponses(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"error page of a proxy": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(http.StatusBadGateway)
				io.WriteString(w, "<html>bad gateway</html>")
			},
			"the server returned 502 Bad Gateway",
		},
		"plain text": {
			func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "try later\nor not", http.StatusServiceUnavailable)
			},
			"the server returned 503 Service Unavailable: try later",
		},
		"redirect": {
			func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://elsewhere.example/v1", http.StatusMovedPermanently)
			},
			"the server returned 301 Moved Permanently, see https://elsewhere.example/v1",
		},
		"empty problem": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusInternalServerError)
				io.WriteString(w, "{}")
			},
			"the server returned 500 Internal Server Error: {}",
		},
		"not JSON": {
			func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>welcome</html>") },
			"(check the server URL)",
		},
	} {
		s := httptest.NewServer(test.handler)
		_, err := newClient(t, s.URL, "ldg_secret").OwnToken(t.Context())
		s.Close()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "ldg_secret") {
			t.Errorf("%s: the error contains the token: %v", name, err)
		}
	}
}

// A newer server may send fields that this client does not know.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"id":"tok_1","name":"ci","scope":"read","colour":"blue"}`)
	}))
	defer s.Close()
	if token := must.Get(newClient(t, s.URL, "t").OwnToken(t.Context()))(t); token.Name != "ci" {
		t.Errorf("token %+v", token)
	}
}

func TestURLs(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://ledger.example":      true,
		"http://127.0.0.1:8080/":      true,
		"https://host.example/ledger": true,
		"":                            false,
		"ledger.example":              false,
		"localhost:8080":              false,
		"ftp://ledger.example":        false,
		"https://ledger.example?x=1":  false,
		"https://ledger.example/#x":   false,
		"https://user:pw@":            false,
		"https://user:pw@ho st":       false,
	} {
		_, err := client.New(url, client.Options{})
		if (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: the error contains the password: %v", url, err)
		}
	}
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := newClient(t, s.URL, "").OwnToken(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("server that does not respond: %v", err)
	}
}
