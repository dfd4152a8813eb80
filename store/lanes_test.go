package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/search"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// While lists keep all connections of callers busy, tokens and sessions are looked up, and
// commits and attestations are recorded.
func TestFaultBusyListsDelayNothingElse(t *testing.T) {
	s := openWithRepo(t)
	token, err := s.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "ci", Scope: ledger.Write}, [32]byte{1})
	must.OK(t, err)
	must.OK(t, s.CreateSession(t.Context(), token.ID, [32]byte{2}, s.Now().Add(time.Hour)))

	release := occupyLists(t, s)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = s.TokenByHash(ctx, [32]byte{1})
	must.OK(t, err)
	_, _, err = s.SessionToken(ctx, [32]byte{2})
	must.OK(t, err)
	_, version, err := s.Keyring(ctx, "acme")
	must.OK(t, err)
	_, _, err = s.Register(ctx, "acme", "api", fmt.Sprintf("%040x", 1), ledger.Registration{Branch: "main"})
	must.OK(t, err)
	_, _, err = s.Record(ctx, "acme", "api", &attestation.Attestation{
		Outcome: attestation.Outcome{Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass}},
		Commit:  fmt.Sprintf("%040x", 1), PredicateType: attestation.ResultPredicateType,
		Signer:  identity.Signer{DN: identity.DN{CN: "ci"}, Identity: "idn_x"},
		Payload: []byte("{}"), PayloadDigest: sha256.Sum256([]byte("{}")), Envelope: []byte(`{"payload":"e30="}`),
	}, version)
	must.OK(t, err)

	// A list waits, until its client goes.
	gone, leave := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, leave)
	_, err = s.Repos(gone, "acme", txn.Query{Limit: 1})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a list returns %v, want it to wait for a connection", err)
	}
}

// While long reads are busy, lists that examine few rows are read, and others wait.
func TestFaultLongListsDelayNoShortOnes(t *testing.T) {
	s := openWithRepo(t)
	state := ledger.Promotable
	list := func(ctx context.Context) error {
		_, err := s.Commits(ctx, "acme", "api", lists.CommitFilter{Branch: "main", State: &state,
			Query: txn.Query{Limit: 10}})
		return err
	}
	register := func(from, to int) {
		for i := from; i < to; i++ {
			_, _, err := s.Register(t.Context(), "acme", "api", fmt.Sprintf("%040x", i), ledger.Registration{Branch: "main"})
			must.OK(t, err)
		}
	}

	register(0, txn.WindowRows/2)
	release := occupy(t, s, sqldb.Reader{Lane: sqldb.Long, Org: "acme"})
	defer release()
	must.OK(t, list(t.Context()))
	register(txn.WindowRows/2, 2*txn.WindowRows)
	gone, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	if err := list(gone); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a list that examines many rows returns %v, want it to wait", err)
	}
}

// While long reads are busy, a search and a report in an org with few repos are answered. Those
// in an org with many wait, because they look something up in each repo.
func TestFaultLongSearchesDelayNoShortOnes(t *testing.T) {
	s := openWithRepo(t)
	q, err := search.Parse("word")
	must.OK(t, err)
	reads := map[string]func(context.Context) error{
		"a search": func(ctx context.Context) error {
			_, err := s.Search(ctx, "acme", SearchQuery{Query: q, Limit: 10})
			return err
		},
		"a report": func(ctx context.Context) error {
			_, err := s.Insights(ctx, "acme", "", 90)
			return err
		},
	}

	release := occupy(t, s, sqldb.Reader{Lane: sqldb.Long, Org: "acme"})
	defer release()
	for _, read := range reads {
		must.OK(t, read(t.Context()))
	}
	insertRepos(t, s, txn.WindowRows)
	for name, read := range reads {
		gone, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := read(gone); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s in many repos returns %v, want it to wait", name, err)
		}
		leave()
	}
}

// While other reads examine rows, a list with a filter that no index covers waits, and
// other lists and the recording do not.
func TestFaultSearchesDelayNothingElse(t *testing.T) {
	s := openWithRepo(t)
	_, _, err := s.Register(t.Context(), "acme", "api", fmt.Sprintf("%040x", 1), ledger.Registration{Branch: "main"})
	must.OK(t, err)
	release := make(chan struct{})
	defer close(release)
	for range 8 { // as many as may ever run at the same time
		go func() {
			_ = s.db.ReadLoose(context.Background(), sqldb.Reader{Lane: sqldb.Long}, func(c *sqldb.Conn) error {
				return c.InTurn(func() error { <-release; return nil })
			})
		}()
	}

	list := func(f lists.CommitFilter) error {
		f.Limit = 10
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := s.Commits(ctx, "acme", "api", f)
		return err
	}
	state := ledger.Promotable
	rare := lists.CommitFilter{Branch: "main", State: &state}
	for deadline := time.Now().Add(10 * time.Second); !errors.Is(list(rare), context.DeadlineExceeded); {
		if time.Now().After(deadline) {
			t.Fatal("a list that examines rows does not wait")
		}
	}
	_, err = s.Commits(t.Context(), "acme", "api", lists.CommitFilter{Query: txn.Query{Limit: 10}})
	must.OK(t, err)
	_, _, err = s.Register(t.Context(), "acme", "api", fmt.Sprintf("%040x", 2), ledger.Registration{Branch: "main"})
	must.OK(t, err)
}

// occupyLists takes all connections for callers' requests until release is called.
func occupyLists(t *testing.T, s *Store) (release func()) {
	t.Helper()
	return occupy(t, s, txn.ByOrg("acme"))
}

// occupy takes all connections of a lane until release is called.
func occupy(t *testing.T, s *Store, by sqldb.Reader) (release func()) {
	t.Helper()
	released := make(chan struct{})
	for taken := true; taken; {
		ready := make(chan bool)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			err := s.db.ReadLoose(ctx, by, func(*sqldb.Conn) error {
				ready <- true
				<-released
				return nil
			})
			if err != nil {
				ready <- false
			}
		}()
		taken = <-ready
	}
	return func() { close(released) }
}
