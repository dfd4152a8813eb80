package check_test

import (
	"crypto/ed25519"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/transparency"
)

// A database is a closed database file of a ledger that is used by the org acme, and the keys
// of its logs.
type database struct {
	path, keys string
	// size is the number of events in the checkpoint; a few more are in the database.
	size int64
}

// A writer writes to the store of a database.
type writer struct {
	*store.Store
	t       testing.TB
	keys    map[string]ed25519.PrivateKey // by DN
	keyring *identity.Keyring
	version int64
}

// newDatabase returns a database with the given number of commits, which have three
// attestations each.
func newDatabase(t testing.TB, commits int) database {
	t.Helper()
	d := database{path: storetest.NewFile(t)}
	d.keys = d.path + "-keys"
	s := must.Get(store.Open(t.Context(), d.path, store.Options{}))(t)
	w := &writer{Store: s, t: t, keys: make(map[string]ed25519.PrivateKey)}
	w.setUp()
	w.attest(commits)
	w.register()
	d.sign(t, s)
	l, err := s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	d.size = l.Size
	w.attestOne(3, "test:late", ledger.Pass) // in no checkpoint
	must.OK(t, s.Settle(t.Context()))
	must.OK(t, s.Close())
	return d
}

// sign signs the logs of a database as the server does.
func (d database) sign(t testing.TB, s *store.Store) {
	t.Helper()
	keys := must.Get(transparency.OpenKeys(d.keys, d.keys))(t)
	signer := transparency.NewSigner(transparency.Config{
		Store: s, Keys: keys, BaseURL: &url.URL{Scheme: "https", Host: "ledger.example.com"},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	must.OK(t, signer.SignAll(t.Context(), true))
	if problems := signer.Problems(); len(problems) > 0 {
		t.Fatalf("the logs are not signed: %v", problems)
	}
}

// register registers a commit.
func (w *writer) register() {
	w.t.Helper()
	_, _, err := w.Register(w.t.Context(), "acme", "api", sha(1), ledger.Registration{
		Branch: "fix", Target: "main", Author: ledger.Author{Name: "Ann", Email: "ann@acme.example"},
		Committer: ledger.Author{Name: "Bob"}, SigningKey: strings.Repeat("ab", 32),
		Changes: []radar.Change{{Path: "a.go", Status: "M"}},
	})
	must.OK(w.t, err)
}

const (
	buildDN  = "cn=build,ou=ci,o=acme"
	reviewDN = "cn=rita,ou=review,o=acme"
)

// setUp creates the org acme with its repos, signers, policies and a webhook.
func (w *writer) setUp() {
	w.t.Helper()
	ctx := w.t.Context()
	must.OK(w.t, w.Settle(ctx)) // as a server does at its start
	_, err := w.CreateOrg(ctx, "acme")
	must.OK(w.t, err)
	for _, repo := range []string{"api", "web"} {
		_, err = w.CreateRepo(ctx, "acme", ledger.NewRepo{Name: repo}, "host")
		must.OK(w.t, err)
	}
	contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:go"},
		{"state":"PROMOTABLE","predicate":"review:code"},{"state":"DEPLOYED","predicate":"deploy:prod"}]}`))
	must.OK(w.t, err)
	_, err = w.SetPolicy(ctx, "acme", "api", contract, 1, "host")
	must.OK(w.t, err)

	hook := outbound.NewWebhook{URL: "https://hooks.example.com/ledger", Events: ledger.DefaultEventTypes()}
	created, err := w.CreateWebhook(ctx, "acme", "api", hook, "whsec_secret")
	must.OK(w.t, err)
	_, err = w.PingWebhook(ctx, "acme", "api", created.ID)
	must.OK(w.t, err)
	for _, dn := range []string{buildDN, reviewDN} {
		w.addSigner(dn)
	}
	changed := w.addSigner("cn=lint,ou=ci,o=acme")
	may := identity.Predicates{"test:*", "lint:*"}
	_, err = w.ChangeIdentity(ctx, "acme", changed, identity.Change{May: &may})
	must.OK(w.t, err)
	must.OK(w.t, w.DistrustIdentity(ctx, "acme", w.addSigner("cn=eve,ou=ci,o=acme"), 5))
	w.keyring, w.version, err = w.Keyring(ctx, "acme")
	must.OK(w.t, err)
}

// addSigner adds a signer with a new key, and returns the ID of its identity.
func (w *writer) addSigner(dn string) string {
	w.t.Helper()
	var id identity.Identity
	w.keys[dn], id = storetest.AddSigner(w.t, w.Store, dn)
	return id.ID
}

// attest records three attestations for each of n commits, many at a time.
func (w *writer) attest(n int) {
	w.t.Helper()
	numbers := make(chan int)
	var running sync.WaitGroup
	for range 64 {
		running.Go(func() {
			for i := range numbers {
				w.attestOne(i, "test:go", []ledger.Status{ledger.Pass, ledger.Fail}[i%7/6])
				w.attestOne(i, "review:code", ledger.Pass)
				w.attestOne(i, "deploy:prod", ledger.Pass)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	running.Wait()
}

// attestOne records an attestation of a commit.
func (w *writer) attestOne(commit int, predicate string, status ledger.Status) {
	dn := buildDN
	if strings.HasPrefix(predicate, "review:") {
		dn = reviewDN
	}
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", sha(commit),
		attestation.ResultPredicate{Predicate: predicate, Result: ledger.Result{Status: status, DurationMS: 1200}})
	if err == nil {
		var envelope []byte
		if envelope, err = attestation.SignDSSE(w.keys[dn], payload); err == nil {
			var a *attestation.Attestation
			if a, err = attestation.Verify(envelope, w.keyring, w.Now()); err == nil {
				_, _, err = w.Record(w.t.Context(), "acme", []string{"api", "web"}[commit%2], a, w.version)
			}
		}
	}
	if err != nil {
		w.t.Errorf("attest %s of commit %d: %v", predicate, commit, err)
	}
}

// sha returns the ID of the n-th commit.
func sha(n int) string { return fmt.Sprintf("%040x", n+1) }

// copy copies the file and changes the copy.
func (d database) copy(t testing.TB, change func(t testing.TB, db *sql.DB)) database {
	t.Helper()
	c := database{path: filepath.Join(t.TempDir(), "copy.db"), keys: d.keys, size: d.size}
	from := must.Get(os.Open(d.path))(t)
	defer from.Close()
	to, err := os.Create(c.path)
	must.OK(t, err)
	_, err = io.Copy(to, from)
	must.OK(t, err)
	must.OK(t, to.Close())

	db := must.Get(sql.Open("sqlite", c.path))(t)
	change(t, db)
	must.OK(t, db.Close())
	return c
}

// run returns a change that runs SQL.
func run(statements string) func(testing.TB, *sql.DB) {
	return func(t testing.TB, db *sql.DB) {
		t.Helper()
		_, err := db.Exec("PRAGMA foreign_keys = OFF; " + statements)
		must.OK(t, err)
	}
}

// problems checks a database, and returns the problems as lines.
func (d database) problems(t testing.TB) []string {
	t.Helper()
	report, err := check.Run(t.Context(), d.path, check.Options{})
	must.OK(t, err)
	lines := make([]string, len(report.Problems))
	for i, p := range report.Problems {
		lines[i] = p.String()
	}
	if (report.Found == 0) != (len(lines) == 0) {
		t.Errorf("%d problems are counted, and %d listed", report.Found, len(lines))
	}
	return lines
}
