package storetest

import (
	"crypto/ed25519"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store"
)

// A clock is the ledger's clock. Only tests advance it.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.ms.Store(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// A fixture is a store on a new database, with the org acme and its repo api.
type fixture struct {
	*store.Store
	other    *store.Store // the other replica, or nil
	t        testing.TB
	clock    *clock
	database Database
	reviewer *signer // signs for review
}

func (s suite) newFixture(t testing.TB) *fixture {
	t.Helper()
	fx := &fixture{t: t, clock: newClock(), database: s.newDatabase(t)}
	fx.open(store.Options{})
	if s.replicas {
		fx.other = fx.Store
		fx.open(store.Options{})
	}
	CreateAcme(t, fx.Store)
	return fx
}

// eventsOf returns the events of acme that have the type of E, oldest first.
func eventsOf[E ledger.Event](fx *fixture) (list []E) {
	fx.t.Helper()
	var e E
	page, err := fx.Events(fx.t.Context(), "acme",
		store.EventFilter{Query: store.Query{Limit: 500}, Types: []ledger.EventType{e.EventType()}})
	must.OK(fx.t, err)
	for _, body := range page.Data {
		var e E
		must.OK(fx.t, ledger.DecodeStrict(body, &e))
		list = append(list, e)
	}
	return list
}

// turn lets the other replica do what comes next.
func (fx *fixture) turn() {
	if fx.other != nil {
		fx.Store, fx.other = fx.other, fx.Store
	}
}

// closeAll closes all replicas before the test ends.
func (fx *fixture) closeAll() {
	fx.Close()
	if fx.other != nil {
		fx.other.Close()
	}
}

// open opens the database with the fixture's clock. By default, all orgs may use the provider.
func (fx *fixture) open(o store.Options) {
	fx.t.Helper()
	o.Now = fx.clock.now
	if o.Providers == nil {
		o.Providers = Providers()
	}
	s := fx.database.Open(fx.t, o)
	fx.t.Cleanup(func() { s.Close() })
	fx.Store = s
}

// A signer is a key that the org acme trusts.
type signer struct {
	fx  *fixture
	key ed25519.PrivateKey
	dn  string
}

func (fx *fixture) signer(dn string) *signer {
	fx.t.Helper()
	key, _ := AddSigner(fx.t, fx.Store, dn)
	return &signer{fx, key, dn}
}

// sign signs a statement, and returns it verified with the keyring's version. The
// note makes the statement unique.
func (s *signer) sign(sha, predicate string, status ledger.Status, note string) (*attestation.Attestation, int64) {
	s.fx.t.Helper()
	s.fx.turn()
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", sha, attestation.ResultPredicate{
		Predicate: predicate, Result: ledger.Result{Status: status, DurationMS: 1200},
		Annotations: map[string]string{"note": note},
	})
	must.OK(s.fx.t, err)
	return s.verify(payload)
}

// attest signs and records a statement.
func (s *signer) attest(sha, predicate string, status ledger.Status) ledger.AttestationRecord {
	s.fx.t.Helper()
	a, version := s.sign(sha, predicate, status, fmt.Sprint(s.fx.clock.ms.Add(1)))
	rec, created, err := s.fx.Record(s.fx.t.Context(), "acme", "api", a, version)
	must.OK(s.fx.t, err)
	if !created {
		s.fx.t.Fatalf("%s by %s is a duplicate", predicate, s.dn)
	}
	return rec
}

// verify signs a statement, and returns it verified with the keyring's version.
func (s *signer) verify(payload []byte) (*attestation.Attestation, int64) {
	s.fx.t.Helper()
	envelope, err := attestation.SignDSSE(s.key, payload)
	must.OK(s.fx.t, err)
	keyring, version, err := s.fx.Keyring(s.fx.t.Context(), "acme")
	must.OK(s.fx.t, err)
	a, err := attestation.Verify(envelope, keyring, s.fx.Now())
	must.OK(s.fx.t, err)
	return a, version
}

// send signs and records a statement.
func (s *signer) send(payload []byte) (ledger.AttestationRecord, bool, error) {
	s.fx.t.Helper()
	s.fx.turn()
	a, version := s.verify(payload)
	return s.fx.Record(s.fx.t.Context(), "acme", "api", a, version)
}

// review records a review that counts under the default contract: of a commit with a known
// author, by a reviewer who signs nothing else.
func (fx *fixture) review(sha string) {
	fx.t.Helper()
	fx.registerAuthor(sha)
	if fx.reviewer == nil {
		fx.reviewer = fx.signer("cn=rita,ou=review,o=acme")
	}
	fx.reviewer.attest(sha, "review:code", ledger.Pass)
}

// registerAuthor registers a commit with the author that all commits of the tests have.
func (fx *fixture) registerAuthor(sha string) {
	fx.t.Helper()
	fx.turn()
	_, _, err := fx.Register(fx.t.Context(), "acme", "api", sha, ledger.Registration{Author: ledger.Author{Name: "Dora"}})
	must.OK(fx.t, err)
}

// makePromotable records the evidence that commits need for PROMOTABLE: a test by s, and a
// review. The radar may still block them.
func (s *signer) makePromotable(commits ...string) {
	s.fx.t.Helper()
	for _, commit := range commits {
		s.attest(commit, "test:go", ledger.Pass)
		s.fx.review(commit)
	}
}

// deploy takes a commit to DEPLOYED: s signs that it was tested and deployed.
func (s *signer) deploy(sha string) {
	s.fx.t.Helper()
	s.makePromotable(sha)
	s.attest(sha, "deploy:prod", ledger.Pass)
	s.fx.wantState(sha, ledger.Deployed)
}

func (fx *fixture) commit(sha string) ledger.Commit {
	fx.t.Helper()
	fx.turn()
	c, err := fx.Commit(fx.t.Context(), "acme", "api", sha)
	must.OK(fx.t, err)
	return c
}

func (fx *fixture) wantState(sha string, want ledger.State) {
	fx.t.Helper()
	if c := fx.commit(sha); c.State != want {
		fx.t.Fatalf("commit %s is %s, want %s; requirements: %+v", sha[:7], c.State, want, c.Requirements)
	}
}

// path formats the transitions of a commit.
func path(c ledger.Commit) string {
	var steps []string
	for _, t := range c.Transitions {
		steps = append(steps, fmt.Sprintf("%s>%s", t.From, t.To))
	}
	return strings.Join(steps, " ")
}

// sha returns the sha of the n-th example commit.
func sha(n int) string { return fmt.Sprintf("%040x", n+1) }

func wantCode(t testing.TB, err error, want ledger.Code) {
	t.Helper()
	e, ok := err.(*ledger.Error)
	if !ok || e.Code != want {
		t.Fatalf("got error %v, want code %s", err, want)
	}
}

// wantField checks that an error is about an invalid field.
func wantField(t testing.TB, err error, field string) {
	t.Helper()
	wantCode(t, err, ledger.CodeInvalidField)
	if e := err.(*ledger.Error); len(e.Fields) != 1 || e.Fields[0].Field != field {
		t.Fatalf("got error %v, want one about %s", err, field)
	}
}

func publicPEM(t testing.TB, key ed25519.PublicKey) string {
	return must.PublicPEM(t, key)
}
