package postgres_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
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
		t.Cleanup(func() { check(t, r.list[i].Close()) })
	}
	for _, org := range orgs {
		_, err := r.list[0].CreateOrg(t.Context(), org)
		check(t, err)
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

// Replicas that write to the same orgs take turns: numbers are dense, and ids are in their order.
func TestReplicasNumberEventsInOrder(t *testing.T) {
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
		check(t, err)
		events, err := tail.Read(t.Context(), 0, 10*writers*each)
		check(t, err)
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
	r := newStores(t, "acme", "globex")
	c, err := pgx.Connect(t.Context(), r.url)
	check(t, err)
	defer c.Close(context.Background())
	tx, err := c.Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), "SELECT id FROM orgs WHERE name = 'acme' FOR UPDATE")
	check(t, err)

	for range 3 {
		check(t, r.write(t.Context(), 0, "globex"))
	}
	_, err = r.list[1].Org(t.Context(), "acme")
	check(t, err)

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
	check(t, r.write(t.Context(), 1, "globex"))

	check(t, tx.Rollback(t.Context()))
	for _, write := range waits {
		check(t, write(t.Context()))
	}
}

// What one replica writes wakes those who wait on the other one.
func TestReplicasWakeEachOther(t *testing.T) {
	r := newStores(t, "acme")
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { r.list[1].Watch(ctx) })
	defer func() { stop(); watching.Wait() }()
	tail, err := r.list[1].Tail(t.Context(), "acme")
	check(t, err)

	for range 20 {
		next, err := tail.Next(t.Context())
		check(t, err)
		check(t, r.write(t.Context(), 0, "acme"))
		for deadline := time.Now().Add(10 * time.Second); ; {
			changed := tail.Changed()
			events, err := tail.Read(t.Context(), next, 10)
			check(t, err)
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
