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
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
)

// A Clock is the ledger's clock. Only tests advance it.
type Clock struct{ ms atomic.Int64 }

func newClock() *Clock {
	c := new(Clock)
	c.ms.Store(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

// Now returns the time of the clock.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.ms.Load()) }

// Advance advances the clock, by whole milliseconds.
func (c *Clock) Advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// Tick advances the clock by a millisecond, and returns its time in them. It is different each time.
func (c *Clock) Tick() int64 { return c.ms.Add(1) }

// A Fixture is a store on a new database, with the org acme and its repo api.
type Fixture struct {
	*store.Store
	Other    *store.Store // the other replica, or nil
	T        testing.TB
	Clock    *Clock
	Database Database
	reviewer *Signer // signs for review
}

// NewFixture creates a database with what all tests need.
func (s Suite) NewFixture(t testing.TB) *Fixture {
	t.Helper()
	fx := &Fixture{T: t, Clock: newClock(), Database: s.NewDatabase(t)}
	fx.Open(store.Options{})
	if s.Replicas {
		fx.Other = fx.Store
		fx.Open(store.Options{})
	}
	CreateAcme(t, fx.Store)
	return fx
}

// EventsOf returns the events of acme that have the type of E, oldest first.
func EventsOf[E ledger.Event](fx *Fixture) (list []E) {
	fx.T.Helper()
	var e E
	page, err := fx.Events(fx.T.Context(), "acme",
		store.EventFilter{Query: store.Query{Limit: 500}, Types: []ledger.EventType{e.EventType()}})
	must.OK(fx.T, err)
	for _, body := range page.Data {
		var e E
		must.OK(fx.T, ledger.DecodeStrict(body, &e))
		list = append(list, e)
	}
	return list
}

// Turn lets the other replica do what comes next.
func (fx *Fixture) Turn() {
	if fx.Other != nil {
		fx.Store, fx.Other = fx.Other, fx.Store
	}
}

// CloseAll closes all replicas before the test ends.
func (fx *Fixture) CloseAll() {
	fx.Close()
	if fx.Other != nil {
		fx.Other.Close()
	}
}

// Open opens the database with the fixture's clock. By default, all orgs may use the provider.
func (fx *Fixture) Open(o store.Options) {
	fx.T.Helper()
	o.Now = fx.Clock.Now
	if o.Providers == nil {
		o.Providers = Providers()
	}
	s := fx.Database.Open(fx.T, o)
	fx.T.Cleanup(func() { s.Close() })
	fx.Store = s
}

// A Signer is a key that the org acme trusts.
type Signer struct {
	fx  *Fixture
	Key ed25519.PrivateKey
	DN  string
}

// NewSigner makes acme trust a new key.
func (fx *Fixture) NewSigner(dn string) *Signer {
	fx.T.Helper()
	key, _ := AddSigner(fx.T, fx.Store, dn)
	return fx.SignerOf(key, dn)
}

// SignerOf returns the signer with a key that acme trusts already.
func (fx *Fixture) SignerOf(key ed25519.PrivateKey, dn string) *Signer { return &Signer{fx, key, dn} }

// Sign signs a statement, and returns it verified with the keyring's version. The
// note makes the statement unique.
func (s *Signer) Sign(sha, predicate string, status ledger.Status, note string) (*attestation.Attestation, int64) {
	s.fx.T.Helper()
	s.fx.Turn()
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", sha, attestation.ResultPredicate{
		Predicate: predicate, Result: ledger.Result{Status: status, DurationMS: 1200},
		Annotations: map[string]string{"note": note},
	})
	must.OK(s.fx.T, err)
	return s.Verify(payload)
}

// Attest signs and records a statement.
func (s *Signer) Attest(sha, predicate string, status ledger.Status) ledger.AttestationRecord {
	s.fx.T.Helper()
	a, version := s.Sign(sha, predicate, status, fmt.Sprint(s.fx.Clock.Tick()))
	rec, created, err := s.fx.Record(s.fx.T.Context(), "acme", "api", a, version)
	must.OK(s.fx.T, err)
	if !created {
		s.fx.T.Fatalf("%s by %s is a duplicate", predicate, s.DN)
	}
	return rec
}

// Verify signs a statement, and returns it verified with the keyring's version.
func (s *Signer) Verify(payload []byte) (*attestation.Attestation, int64) {
	s.fx.T.Helper()
	envelope, err := attestation.SignDSSE(s.Key, payload)
	must.OK(s.fx.T, err)
	keyring, version, err := s.fx.Keyring(s.fx.T.Context(), "acme")
	must.OK(s.fx.T, err)
	a, err := attestation.Verify(envelope, keyring, s.fx.Now())
	must.OK(s.fx.T, err)
	return a, version
}

// Send signs and records a statement.
func (s *Signer) Send(payload []byte) (ledger.AttestationRecord, bool, error) {
	s.fx.T.Helper()
	return s.SendTo("api", payload)
}

// SendTo is like Send, in another repo of acme.
func (s *Signer) SendTo(repo string, payload []byte) (ledger.AttestationRecord, bool, error) {
	s.fx.T.Helper()
	s.fx.Turn()
	a, version := s.Verify(payload)
	return s.fx.Record(s.fx.T.Context(), "acme", repo, a, version)
}

// SendNoticed records a statement, and checks the beginning of the notice in the answer.
func (s *Signer) SendNoticed(payload []byte, notice string) ledger.AttestationRecord {
	s.fx.T.Helper()
	rec, created, err := s.Send(payload)
	must.OK(s.fx.T, err)
	if !created || !strings.HasPrefix(rec.Notice, notice) || (notice == "") != (rec.Notice == "") {
		s.fx.T.Errorf("created %t, with the notice %q, want one that begins with %q", created, rec.Notice, notice)
	}
	return rec
}

// Except records an exception for an hour.
func (s *Signer) Except(sha, requirement string) {
	s.fx.T.Helper()
	now := s.fx.Now()
	payload, err := attestation.NewExceptionStatement(sha, attestation.Exception{Repo: "acme/api",
		Requirement: requirement, Reason: "urgent", IssuedOn: now, Until: now.Add(time.Hour)})
	must.OK(s.fx.T, err)
	_, _, err = s.Send(payload)
	must.OK(s.fx.T, err)
}

// Review records a review that counts under the default contract: of a commit with a known
// author, by a reviewer who signs nothing else.
func (fx *Fixture) Review(sha string) {
	fx.T.Helper()
	fx.RegisterAuthor(sha)
	if fx.reviewer == nil {
		fx.reviewer = fx.NewSigner("cn=rita,ou=review,o=acme")
	}
	fx.reviewer.Attest(sha, "review:code", ledger.Pass)
}

// RegisterAuthor registers a commit with the author that all commits of the tests have.
func (fx *Fixture) RegisterAuthor(sha string) {
	fx.T.Helper()
	fx.Turn()
	_, _, err := fx.Register(fx.T.Context(), "acme", "api", sha, ledger.Registration{Author: ledger.Author{Name: "Dora"}})
	must.OK(fx.T, err)
}

// Complete completes the registration of a commit, without its branch.
func (fx *Fixture) Complete(sha string, n ledger.Registration) {
	fx.T.Helper()
	_, _, err := fx.Register(fx.T.Context(), "acme", "api", sha, n)
	must.OK(fx.T, err)
}

// SetContract makes a document the contract of acme/api, and derives the states of its commits again.
func (fx *Fixture) SetContract(document string) {
	fx.T.Helper()
	contract, err := policy.Parse([]byte(document))
	must.OK(fx.T, err)
	_, err = fx.SetPolicy(fx.T.Context(), "acme", "api", contract, 0, "host")
	must.OK(fx.T, err)
	must.OK(fx.T, fx.Settle(fx.T.Context()))
}

// MakePromotable records the evidence that commits need for PROMOTABLE: a test by s, and a
// review. The radar may still block them.
func (s *Signer) MakePromotable(commits ...string) {
	s.fx.T.Helper()
	for _, commit := range commits {
		s.Attest(commit, "test:go", ledger.Pass)
		s.fx.Review(commit)
	}
}

// Deploy takes a commit to DEPLOYED: s signs that it was tested and deployed.
func (s *Signer) Deploy(sha string) {
	s.fx.T.Helper()
	s.MakePromotable(sha)
	s.Attest(sha, "deploy:prod", ledger.Pass)
	s.fx.WantState(sha, ledger.Deployed)
}

// ReadCommit returns a commit as the other replica reads it.
func (fx *Fixture) ReadCommit(sha string) ledger.Commit {
	fx.T.Helper()
	fx.Turn()
	c, err := fx.Commit(fx.T.Context(), "acme", "api", sha)
	must.OK(fx.T, err)
	return c
}

// WantState checks the state of a commit.
func (fx *Fixture) WantState(sha string, want ledger.State) {
	fx.T.Helper()
	if c := fx.ReadCommit(sha); c.State != want {
		fx.T.Fatalf("commit %s is %s, want %s; requirements: %+v", sha[:7], c.State, want, c.Requirements)
	}
}

// Path formats the transitions of a commit.
func Path(c ledger.Commit) string {
	var steps []string
	for _, t := range c.Transitions {
		steps = append(steps, fmt.Sprintf("%s>%s", t.From, t.To))
	}
	return strings.Join(steps, " ")
}

// SHA returns the SHA of the n-th example commit.
func SHA(n int) string { return fmt.Sprintf("%040x", n+1) }

// WantCode checks the code of an error.
func WantCode(t testing.TB, err error, want ledger.Code) {
	t.Helper()
	e, ok := err.(*ledger.Error)
	if !ok || e.Code != want {
		t.Fatalf("got error %v, want code %s", err, want)
	}
}

// IdentityOf returns the newest identity of a signer.
func (fx *Fixture) IdentityOf(dn string) (last identity.Identity) {
	fx.T.Helper()
	list, err := fx.Identities(fx.T.Context(), "acme", store.Query{Limit: 100})
	must.OK(fx.T, err)
	for _, i := range list.Data {
		if i.DN == dn {
			last = i
		}
	}
	return last
}
