package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Stores are two replicas with one database, which has some orgs.
type stores struct {
	t    *testing.T
	url  string
	list [2]*store.Store
	n    atomic.Uint64
}

func newStores(t *testing.T, orgs ...string) *stores {
	t.Helper()
	r := &stores{t: t, url: pgtest.Start(t, pgtest.Fast()...).NewDatabase(t)}
	for i := range r.list {
		r.list[i] = database(r.url).Open(t, store.Options{})
		t.Cleanup(func() { must.OK(t, r.list[i].Close()) })
	}
	for _, org := range orgs {
		_, err := r.list[0].CreateOrg(t.Context(), org)
		must.OK(t, err)
	}
	return r
}

// write writes an event of an org on a replica.
func (r *stores) write(ctx context.Context, replica int, org string) error {
	var hash [32]byte
	binary.BigEndian.PutUint64(hash[:], r.n.Add(1))
	_, err := r.list[replica].CreateToken(ctx, org, ledger.NewToken{Name: "ci", Scope: ledger.Read}, hash)
	return err
}

// signIn begins and ends a session with a token of an org.
func (r *stores) signIn(ctx context.Context, replica int, org string) error {
	s := r.list[replica]
	tokens, err := s.Tokens(ctx, org, store.Query{Limit: 1})
	if err != nil {
		return err
	}
	hash := [32]byte{1}
	expires := ledger.TimeOf(s.Now().Std().Add(time.Hour))
	return errors.Join(s.CreateSession(ctx, tokens.Data[0].ID, hash, expires), s.DeleteSession(ctx, hash))
}

// Replicas that write to the same orgs take turns: numbers are dense, and ids are in their order.
func TestReplicasNumberEventsInOrder(t *testing.T) {
	t.Parallel()
	orgs := []string{"acme", "globex", "initech"}
	r := newStores(t, orgs...)
	const writers, each = 4, 20
	var wg sync.WaitGroup
	for replica := range r.list {
		for range writers {
			wg.Go(func() {
				for i := range each {
					if err := r.write(t.Context(), replica, orgs[i%len(orgs)]); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()

	total := 0
	for _, org := range orgs {
		tail, err := r.list[1].Tail(t.Context(), org)
		must.OK(t, err)
		events, err := tail.Read(t.Context(), 0, 10*writers*each)
		must.OK(t, err)
		total += len(events)
		for i, e := range events {
			if e.Seq != int64(i) || i > 0 && e.ID <= events[i-1].ID {
				t.Errorf("event %d of %s has the number %d and the id %s", i, org, e.Seq, e.ID)
			}
		}
	}
	if want := len(orgs) + len(r.list)*writers*each; total < want {
		t.Errorf("%d events, want at least %d", total, want)
	}
}

// An org that is locked delays neither others nor those who read. A write about all orgs waits for
// it, as does a new org.
func TestLocksAreOfOneOrg(t *testing.T) {
	t.Parallel()
	r := newStores(t, "acme", "globex")
	c, err := pgx.Connect(t.Context(), r.url)
	must.OK(t, err)
	defer c.Close(context.Background())
	tx, err := c.Begin(t.Context())
	must.OK(t, err)
	_, err = tx.Exec(t.Context(), "SELECT id FROM orgs WHERE name = 'acme' FOR UPDATE")
	must.OK(t, err)

	for range 3 {
		must.OK(t, r.write(t.Context(), 0, "globex"))
	}
	must.OK(t, r.signIn(t.Context(), 0, "globex"))
	log, err := r.list[0].Log(t.Context(), "globex", 0)
	must.OK(t, err)
	must.OK(t, r.list[0].BeginOrigin(t.Context(), log, "ledger.example/globex", "a key"))
	must.OK(t, r.list[0].SaveCheckpoint(t.Context(), log, 1, []byte("a checkpoint")))
	_, err = r.list[1].Org(t.Context(), "acme")
	must.OK(t, err)

	// Nor does one that waits in the same queue.
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if err := r.write(t.Context(), 0, "acme"); err != nil {
			t.Errorf("the write that waits: %v", err)
		}
	})
	for i := range 20 {
		if err := r.write(t.Context(), 0, "globex"); err != nil {
			t.Fatalf("write %d of another org: %v", i, err)
		}
	}

	waits := map[string]func(context.Context) error{
		"a write to it": func(ctx context.Context) error { return r.write(ctx, 0, "acme") },
		"a new org": func(ctx context.Context) error {
			_, err := r.list[0].CreateOrg(ctx, fmt.Sprint("new-", r.n.Add(1)))
			return err
		},
	}
	for what, write := range waits {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := write(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s returns %v while the org is locked", what, err)
		}
		cancel()
	}
	must.OK(t, r.write(t.Context(), 1, "globex"))

	must.OK(t, tx.Rollback(t.Context()))
	waiting.Wait()
	for _, write := range waits {
		must.OK(t, write(t.Context()))
	}
}

// Background work about an org does not wait for another one that is locked: evidence expires,
// violations are closed, and states are derived from inherited evidence.
func TestBackgroundWorkLocksItsOrg(t *testing.T) { // alone, since its evidence expires soon
	r := newStores(t, "acme", "globex")
	s := r.list[0]
	_, err := s.CreateRepo(t.Context(), "globex", ledger.NewRepo{Name: "api"}, "host")
	must.OK(t, err)
	contract, err := policy.Parse([]byte(
		`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"100ms"}]}`))
	must.OK(t, err)
	_, err = s.SetPolicy(t.Context(), "globex", "api", contract, 0, "host")
	must.OK(t, err)
	must.OK(t, s.Settle(t.Context())) // what is due once
	commit := fmt.Sprintf("%040x", 1)
	_, _, err = s.Register(t.Context(), "globex", "api", commit, ledger.Registration{})
	must.OK(t, err)
	_, version, err := s.Keyring(t.Context(), "globex")
	must.OK(t, err)
	_, _, err = s.Record(t.Context(), "globex", "api", &attestation.Attestation{
		Outcome: attestation.Outcome{Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass}},
		Commit:  commit, PredicateType: attestation.ResultPredicateType,
		Signer:  identity.Signer{DN: identity.DN{CN: "ci"}, Identity: "idn_x"},
		Payload: []byte("{}"), PayloadDigest: sha256.Sum256([]byte("{}")), Envelope: []byte(`{"payload":"e30="}`),
	}, version)
	must.OK(t, err)

	wantState := func(want ledger.State) {
		t.Helper()
		record, err := s.Commit(t.Context(), "globex", "api", commit)
		must.OK(t, err)
		if record.State != want {
			t.Errorf("the state is %v, want %v", record.State, want)
		}
	}

	c, err := pgx.Connect(t.Context(), r.url)
	must.OK(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), `
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT c.repo_id, 'merges', c.id, r.org_id, 'policy', '', 0, 0, 0 FROM commits c JOIN repos r ON r.id = c.repo_id`)
	must.OK(t, err)
	tx, err := c.Begin(t.Context())
	must.OK(t, err)
	_, err = tx.Exec(t.Context(), "SELECT id FROM orgs WHERE name = 'acme' FOR UPDATE")
	must.OK(t, err)

	time.Sleep(150 * time.Millisecond)
	must.OK(t, s.Settle(t.Context()))
	wantState(ledger.Validating)
	var expired, left int
	must.OK(t, tx.QueryRow(t.Context(), "SELECT count(*) FROM transitions WHERE from_state = $1 AND to_state = $2",
		int64(ledger.Promotable), int64(ledger.Validating)).Scan(&expired))
	if expired != 1 {
		t.Errorf("the evidence has expired %d times, want once", expired)
	}
	must.OK(t, tx.QueryRow(t.Context(), "SELECT count(*) FROM backlog").Scan(&left))
	if left > 0 {
		t.Errorf("%d jobs are left", left)
	}
	must.OK(t, tx.Rollback(t.Context()))
}

// Expired tokens and sessions are deleted while an org is locked, since no other write depends on them.
func TestExpiredRowsArePrunedWithoutLocks(t *testing.T) {
	t.Parallel()
	r := newStores(t, "acme")
	must.OK(t, r.write(t.Context(), 0, "acme"))
	c, err := pgx.Connect(t.Context(), r.url)
	must.OK(t, err)
	defer c.Close(context.Background())
	for _, insert := range []string{`
INSERT INTO tokens (token_id, org_id, name, permission, hash, created_at, expires_at, rule_id)
SELECT 'tok_x', org_id, name, permission, '\x01', created_at, 1, 1 FROM tokens`,
		"INSERT INTO used_tokens (org_id, digest, until) SELECT id, '\x01', 1 FROM orgs",
		"INSERT INTO sessions (hash, token_id, created_at, expires_at) SELECT hash, id, 1, 1 FROM tokens WHERE rule_id = 0", `
INSERT INTO tokens (token_id, org_id, name, permission, hash, created_at, expires_at, member_id, is_sign_in)
SELECT 'tok_y', org_id, name, permission, '\x02', created_at, 1, 1, 1 FROM tokens WHERE rule_id = 0`,
		"INSERT INTO review_drafts (digest, token_id, repo_id, until) SELECT t.hash, t.id, r.id, 1 FROM tokens t, repos r " +
			"WHERE t.is_sign_in = 1",
	} {
		_, err = c.Exec(t.Context(), insert)
		must.OK(t, err)
	}
	tx, err := c.Begin(t.Context())
	must.OK(t, err)
	_, err = tx.Exec(t.Context(), "SELECT id FROM orgs FOR UPDATE")
	must.OK(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	must.OK(t, r.list[0].Prune(ctx))
	var left int
	must.OK(t, tx.QueryRow(t.Context(), `
SELECT (SELECT count(*) FROM tokens WHERE rule_id > 0 OR is_sign_in = 1) + (SELECT count(*) FROM used_tokens) +
  (SELECT count(*) FROM sessions) + (SELECT count(*) FROM review_drafts)`).Scan(&left))
	if left > 0 {
		t.Errorf("%d expired rows are left", left)
	}
	must.OK(t, tx.Rollback(t.Context()))
}

// A write that is independent of all orgs does not wait for one that another process has locked.
func TestIndependentWritesDoNotWait(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Fast()...).NewDatabase(t)
	db := openEngine(t, url)
	must.OK(t, insert(t.Context(), db, "acme"))
	c, err := pgx.Connect(t.Context(), url)
	must.OK(t, err)
	defer c.Close(context.Background())
	tx, err := c.Begin(t.Context())
	must.OK(t, err)
	_, err = tx.Exec(t.Context(), "SELECT id FROM orgs FOR UPDATE")
	must.OK(t, err)

	nothing := func(*sqldb.Conn) error { return nil }
	waiting := make(chan error, 1)
	go func() { waiting <- db.Write(t.Context(), sqldb.Write{Org: "acme", Do: nothing}) }()
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		must.OK(t, db.Write(ctx, sqldb.Write{Independent: true, Do: nothing}))
		cancel()
	}
	select {
	case err := <-waiting:
		t.Errorf("the write about the locked org has returned: %v", err)
	default:
	}
	must.OK(t, tx.Rollback(t.Context()))
	must.OK(t, <-waiting)
}

// A rule is removed while pruning has locked its expired tokens.
func TestRulesAreRemovedDuringPruning(t *testing.T) {
	t.Parallel()
	r := newStores(t, "acme")
	s := r.list[0]
	_, err := s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	must.OK(t, err)
	_, err = s.AddIssuer(t.Context(), "acme", exchange.NewIssuer{URL: "https://issuer.example"})
	must.OK(t, err)
	n, err := exchange.NewRule{Name: "ci", Issuer: "https://issuer.example", RepositoryID: "1", Scope: ledger.Read,
		Repos: []string{"api"}}.Completed()
	must.OK(t, err)
	rule, err := s.CreateRule(t.Context(), "acme", n)
	must.OK(t, err)

	c, err := pgx.Connect(t.Context(), r.url)
	must.OK(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), `
INSERT INTO tokens (token_id, org_id, name, permission, hash, created_at, expires_at, rule_id)
SELECT 'tok_x', org_id, 'ci', 1, '\x01', 1, 1, id FROM exchange_rules`)
	must.OK(t, err)
	tx, err := c.Begin(t.Context())
	must.OK(t, err)
	_, err = tx.Exec(t.Context(), "DELETE FROM tokens WHERE rule_id > 0")
	must.OK(t, err)

	must.OK(t, s.RemoveRule(t.Context(), "acme", rule.ID))
	must.OK(t, tx.Rollback(t.Context()))
}

// A member is removed while pruning has locked the sign-ins of the member that have expired.
func TestMembersAreRemovedDuringPruning(t *testing.T) {
	t.Parallel()
	r := newStores(t, "acme")
	s := r.list[0]
	m, err := s.AddMember(t.Context(), "acme", member.NewMember{Issuer: "https://idp.example", Subject: "1",
		DN: "cn=ann,ou=people-dev,o=acme", Role: member.Reader})
	must.OK(t, err)

	c, err := pgx.Connect(t.Context(), r.url)
	must.OK(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), `
INSERT INTO tokens (token_id, org_id, name, permission, hash, created_at, expires_at, member_id, is_sign_in)
SELECT 'tok_x', org_id, dn, 1, '\x01', 1, 1, id, 1 FROM members`)
	must.OK(t, err)
	tx, err := c.Begin(t.Context())
	must.OK(t, err)
	_, err = tx.Exec(t.Context(), "DELETE FROM tokens WHERE is_sign_in = 1")
	must.OK(t, err)

	removed := true
	_, err = s.ChangeMember(t.Context(), "acme", m.ID, member.Change{Removed: &removed})
	must.OK(t, err)
	must.OK(t, s.EndSignIn(t.Context(), "acme", "", "tok_x"))
	must.OK(t, tx.Rollback(t.Context()))
}

// What one replica writes wakes those who wait on the other one.
func TestReplicasWakeEachOther(t *testing.T) {
	t.Parallel()
	r := newStores(t, "acme")
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { r.list[1].Watch(ctx) })
	defer func() { stop(); watching.Wait() }()
	tail, err := r.list[1].Tail(t.Context(), "acme")
	must.OK(t, err)

	for range 20 {
		next, err := tail.Next(t.Context())
		must.OK(t, err)
		must.OK(t, r.write(t.Context(), 0, "acme"))
		for deadline := time.Now().Add(10 * time.Second); ; {
			changed := tail.Changed()
			events, err := tail.Read(t.Context(), next, 10)
			must.OK(t, err)
			if len(events) > 0 {
				break
			}
			select {
			case <-changed:
			case <-time.After(time.Until(deadline)):
				t.Fatal("the other replica was not woken")
			}
		}
	}
}

// While an org is locked, a write about all orgs does not run, and those of other orgs do.
func TestWritesAboutAllOrgsWait(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Fast()...).NewDatabase(t)
	db := openEngine(t, url)
	must.OK(t, insert(t.Context(), db, "acme"))
	must.OK(t, insert(t.Context(), db, "globex"))
	c, err := pgx.Connect(t.Context(), url)
	must.OK(t, err)
	defer c.Close(context.Background())
	tx, err := c.Begin(t.Context())
	must.OK(t, err)
	_, err = tx.Exec(t.Context(), "SELECT id FROM orgs WHERE name = 'acme' FOR UPDATE")
	must.OK(t, err)

	var ran atomic.Bool
	var waiting sync.WaitGroup
	waiting.Go(func() {
		err := db.Write(t.Context(), sqldb.Write{Do: func(*sqldb.Conn) error {
			ran.Store(true)
			return nil
		}})
		if err != nil {
			t.Errorf("the write about all orgs: %v", err)
		}
	})
	for i := range 20 {
		update := func(c *sqldb.Conn) error {
			_, err := c.Exec("UPDATE orgs SET created_at = created_at + 1 WHERE name = 'globex'")
			return err
		}
		if err := db.Write(t.Context(), sqldb.Write{Org: "globex", Do: update}); err != nil {
			t.Fatalf("write %d of another org: %v", i, err)
		}
	}
	if ran.Load() {
		t.Error("the write about all orgs ran while an org was locked")
	}

	must.OK(t, tx.Rollback(t.Context()))
	waiting.Wait()
}
