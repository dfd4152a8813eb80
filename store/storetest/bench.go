package storetest

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
)

// A clock is a time that tests move.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.ms.Store(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// A bench is a store in a new database with the org acme and its repo api.
type bench struct {
	*store.Store
	t        testing.TB
	clock    *clock
	database Database
}

func (s suite) newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, clock: newClock(), database: s.newDatabase(t)}
	b.open(store.Options{})
	_, err := b.CreateOrg(t.Context(), "acme")
	check(t, err)
	_, err = b.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	check(t, err)
	return b
}

// open opens the database with the bench's clock.
func (b *bench) open(o store.Options) {
	b.t.Helper()
	o.Now = b.clock.now
	s := b.database.Open(b.t, o)
	b.t.Cleanup(func() { s.Close() })
	b.Store = s
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A signer is a key that the org acme trusts.
type signer struct {
	b   *bench
	key ed25519.PrivateKey
	dn  string
}

func (b *bench) signer(dn string) *signer {
	b.t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	check(b.t, err)
	identity, err := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: publicPEM(b.t, public), DN: dn}.Identity()
	check(b.t, err)
	_, err = b.AddIdentity(b.t.Context(), "acme", identity)
	check(b.t, err)
	return &signer{b, key, dn}
}

// says signs a statement and has it verified; note makes it differ from others.
func (s *signer) says(sha, predicate string, status ledger.Status, note string) (*attestation.Attestation, int64) {
	s.b.t.Helper()
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", sha, attestation.ResultPredicate{
		Predicate: predicate, Result: ledger.Result{Status: status, DurationMS: 1200},
		Annotations: map[string]string{"note": note},
	})
	check(s.b.t, err)
	envelope, err := attestation.SignDSSE(s.key, payload)
	check(s.b.t, err)
	keyring, version, err := s.b.Keyring(s.b.t.Context(), "acme")
	check(s.b.t, err)
	attestation, err := attestation.Verify(envelope, keyring, s.b.Now())
	check(s.b.t, err)
	return attestation, version
}

// attests records what the signer says and fails the test if it is not new.
func (s *signer) attests(sha, predicate string, status ledger.Status) ledger.AttestationRecord {
	s.b.t.Helper()
	a, version := s.says(sha, predicate, status, fmt.Sprint(s.b.clock.ms.Add(1)))
	rec, created, err := s.b.Record(s.b.t.Context(), "acme", "api", a, version)
	check(s.b.t, err)
	if !created {
		s.b.t.Fatalf("%s by %s was known already", predicate, s.dn)
	}
	return rec
}

func (b *bench) commit(sha string) ledger.Commit {
	b.t.Helper()
	c, err := b.Commit(b.t.Context(), "acme", "api", sha)
	check(b.t, err)
	return c
}

func (b *bench) wantState(sha string, want ledger.State) {
	b.t.Helper()
	if c := b.commit(sha); c.State != want {
		b.t.Fatalf("commit %s is %s, want %s; requirements: %+v", sha[:7], c.State, want, c.Requirements)
	}
}

// path writes the states that a commit went through.
func path(c ledger.Commit) string {
	var steps []string
	for _, t := range c.Transitions {
		steps = append(steps, fmt.Sprintf("%s>%s", t.From, t.To))
	}
	return strings.Join(steps, " ")
}

// sha returns the n-th of the made-up commits.
func sha(n int) string { return fmt.Sprintf("%040x", n+1) }

func wantCode(t testing.TB, err error, want ledger.Code) {
	t.Helper()
	e, ok := err.(*ledger.Error)
	if !ok || e.Code != want {
		t.Fatalf("got error %v, want code %s", err, want)
	}
}

func publicPEM(t testing.TB, key ed25519.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	check(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}
