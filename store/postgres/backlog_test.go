package postgres_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
)

// addTested adds a repo to an org, with n commits whose tests pass, and then a policy that also asks for a review.
func (r *stores) addTested(org string, n int) {
	r.t.Helper()
	s, ctx := r.list[0], r.t.Context()
	_, err := s.CreateRepo(ctx, org, ledger.NewRepo{Name: "api"}, "host")
	must.OK(r.t, err)
	_, version, err := s.Keyring(ctx, org)
	must.OK(r.t, err)
	for i := range n {
		payload := fmt.Appendf(nil, "statement %d", i)
		_, _, err := s.Record(ctx, org, "api", &attestation.Attestation{
			Outcome: attestation.Outcome{Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass}},
			Commit:  fmt.Sprintf("%040x", i), PredicateType: attestation.ResultPredicateType,
			Signer:  identity.Signer{DN: identity.DN{CN: "ci"}, Identity: "idn_x"},
			Payload: payload, PayloadDigest: sha256.Sum256(payload), Envelope: []byte(`{"payload":"e30="}`),
		}, version)
		must.OK(r.t, err)
	}
	must.OK(r.t, s.Settle(ctx))

	contract := must.Get(policy.Parse([]byte(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:*"},{"state":"ATTESTED","predicate":"review:*"}]}`)))(r.t)
	_, err = s.SetPolicy(ctx, org, "api", contract, 0, "host")
	must.OK(r.t, err)
}

// work has replicas work off the backlog until no commit is to be settled.
func (r *stores) work(c *pgx.Conn, replicas ...*store.Store) {
	r.t.Helper()
	ctx, stop := context.WithCancel(r.t.Context())
	var working sync.WaitGroup
	for _, s := range replicas {
		working.Go(func() { s.Work(ctx) })
	}
	defer func() { stop(); working.Wait() }()

	for left, deadline := 1, time.Now().Add(time.Minute); left > 0; time.Sleep(10 * time.Millisecond) {
		must.OK(r.t, c.QueryRow(ctx, "SELECT count(*) FROM backlog WHERE kind = 'settle'").Scan(&left))
		if time.Now().After(deadline) {
			r.t.Fatalf("%d jobs are left after a minute", left)
		}
	}
}

// Servers share what is to be settled: each commit moves once.
func TestServersShareTheBacklog(t *testing.T) {
	t.Parallel()
	orgs := []string{"acme", "globex", "initech"}
	r := newStores(t, orgs...)
	n := testenv.Pick(50, 200, 2000)
	for _, org := range orgs {
		r.addTested(org, n)
	}
	c := must.Get(pgx.Connect(t.Context(), r.url))(t)
	defer c.Close(context.Background())
	r.work(c, r.list[:]...)

	var commits, moves int
	must.OK(t, c.QueryRow(t.Context(), `
SELECT count(DISTINCT commit_id), count(*) FROM transitions WHERE cause_type = 'policy'`).Scan(&commits, &moves))
	if want := n * len(orgs); commits != want || moves != want {
		t.Errorf("%d commits have %d transitions by the policy, want %d of each", commits, moves, want)
	}
}

// A job that a server has begun is left to it, until it has not gone on for some time.
func TestServersLeaveJobsToTheServerThatHasBegunThem(t *testing.T) {
	t.Parallel()
	r := newStores(t, "acme")
	r.addTested("acme", 1)
	c := must.Get(pgx.Connect(t.Context(), r.url))(t)
	defer c.Close(context.Background())
	until := r.list[0].Now().Add(2 * time.Second)
	must.Get(c.Exec(t.Context(), "UPDATE backlog SET holder = 'another', held_until = $1", int64(until)))(t)
	r.work(c, r.list[0])

	var at ledger.Time
	must.OK(t, c.QueryRow(t.Context(), "SELECT at FROM transitions WHERE cause_type = 'policy'").Scan((*int64)(&at)))
	if at < until {
		t.Errorf("the job was done %v before the server lost it", until.Sub(at))
	}
}
