package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A watchedEngine runs one write at a time. Before each, all that is cached of commits is
// forgotten; afterwards, it counts what the write found out.
type watchedEngine struct {
	sqldb.Engine
	caches  *caches
	before  func() // runs before each write; may be nil
	tries   int
	learned int           // scopes that writes found out
	longest time.Duration // that a write held the writer
	held    time.Duration // by all writes
}

// watch watches the writes of a store, until the returned function is called.
func watch(s *Store, before func()) (w *watchedEngine, end func()) {
	engine := s.db
	w = &watchedEngine{Engine: engine, caches: s.caches, before: before}
	s.db = w
	return w, func() { s.db = engine }
}

func (w *watchedEngine) Write(ctx context.Context, write sqldb.Write) error {
	do, set, item := write.Do, write.Set, write.Item
	if do == nil {
		do = func(c *sqldb.Conn) error { return set.WriteAll(c, []any{item}) }
	}
	write.Set, write.Item = nil, nil
	write.Do = func(c *sqldb.Conn) error {
		w.caches.scopes.clear()
		w.caches.matches.clear()
		began := time.Now()
		defer func() {
			w.longest, w.held = max(w.longest, time.Since(began)), w.held+time.Since(began)
			w.learned += len(w.caches.scopes.new) + len(w.caches.scopes.old)
		}()
		return do(c)
	}

	w.tries++
	if before := w.before; before != nil {
		w.before = nil // the hook writes, too
		before()
		w.before = before
	}
	return w.Engine.Write(ctx, write)
}

// A costlyLedger has commits with long change records, under contracts with costly globs.
type costlyLedger struct {
	*Store
	t   testing.TB
	now time.Time
	n   int // of contracts
}

func newCostlyLedger(t testing.TB, repos ...string) *costlyLedger {
	t.Helper()
	l := &costlyLedger{t: t, now: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}
	start := l.now
	s, err := Open(t.Context(), NewFile(t), Options{
		Now: func() time.Time { return l.now }, Monotonic: func() time.Duration { return l.now.Sub(start) },
	})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	l.Store = s

	_, err = s.CreateOrg(t.Context(), "acme")
	check(t, err)
	for _, repo := range repos {
		_, err = s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: repo}, "host")
		check(t, err)
		l.setContract(repo)
	}
	check(t, s.Settle(t.Context()))
	return l
}

// setContract sets a contract that the ledger has never had. Its first requirement applies
// to commits that change a file x*/y*/*.go.
func (l *costlyLedger) setContract(repo string) {
	l.t.Helper()
	l.n++
	contract, err := policy.Parse(fmt.Appendf(nil, `{"requirements":[
		{"state":"ATTESTED","predicate":"review:*","paths":["**/x*/**/y*/**/*.go","%d"]},
		{"state":"ATTESTED","predicate":"test:*","max_age":"1h"}]}`, l.n))
	check(l.t, err)
	before, err := l.Policy(l.t.Context(), "acme", repo, 0)
	check(l.t, err)
	_, err = l.SetPolicy(l.t.Context(), "acme", repo, contract, before.Version, "host")
	check(l.t, err)
}

// register registers a commit with a long change record, in which one path is given.
func (l *costlyLedger) register(repo string, commit int, path string) error {
	_, _, err := l.Register(l.t.Context(), "acme", repo, numbered(commit), longRegistration(path))
	return err
}

func longRegistration(path string) ledger.Registration {
	n := ledger.Registration{Branch: "long", Changes: []radar.Change{{Path: path, Status: "M"}}}
	for i := range 1500 {
		c := radar.Change{Path: fmt.Sprintf("services/web/x%04d/internal/y/%s", i, strings.Repeat("h", 100)), Status: "M"}
		for h := range 3 {
			c.Hunks = append(c.Hunks, radar.Hunk{Start: 10*h + 1, Lines: 1, Added: 1, Text: "0123456789abcdef",
				Near: []string{"0123456789abcdef"}, Far: []string{"0123456789abcdef"}})
		}
		n.Changes = append(n.Changes, c)
	}
	return n
}

func (l *costlyLedger) record(repo string, commit int, predicate string) error {
	d := stated("ci", commit, predicate, ledger.Pass)
	_, _, err := l.Record(l.t.Context(), "acme", repo, d.attestation, 0)
	return err
}

func (l *costlyLedger) wantState(repo string, commit int, want ledger.State) {
	l.t.Helper()
	c, err := l.Commit(l.t.Context(), "acme", repo, numbered(commit))
	if err != nil || c.State != want {
		l.t.Errorf("commit %d of %s: %s, %v; want %s", commit, repo, c.State, err, want)
	}
}

// Whatever the caches forget, the writer finds out nothing that takes long: what is prepared
// for a write is there when the write is tried again.
func TestTheWriterDerivesOnlyPreparedStates(t *testing.T) {
	l := newCostlyLedger(t, "api")
	w, _ := watch(l.Store, nil)
	minute := func() { l.now = l.now.Add(time.Minute) }
	all := []string{"services/x/y/main.go"}
	for _, step := range []struct {
		name string
		do   func() error
		want ledger.State
	}{
		{"record, new", func() error { return l.record("api", 0, "test:go") }, ledger.Validating},
		{"register", func() error { return l.register("api", 0, "README") }, ledger.Promotable},
		{"register again", func() error { return l.register("api", 0, all[0]) }, ledger.Validating},
		{"record", func() error { return l.record("api", 0, "review:go") }, ledger.Promotable},
		{"set a contract", func() error { l.setContract("api"); return l.Settle(t.Context()) }, ledger.Promotable},
		{"forget the review", func() error { return l.Run(t.Context(), "DELETE FROM latest WHERE predicate_id = 2") },
			ledger.Promotable},
		{"derive again", func() error {
			if err := l.Store.write(t.Context(), "acme", func(t *tx) error {
				return t.rederiveOrg(1, ledger.Cause{Type: ledger.CauseExpiry})
			}); err != nil {
				return err
			}
			return l.Settle(t.Context())
		}, ledger.Validating},
		{"correct", func() error {
			n := longRegistration("README")
			_, _, err := l.Correct(t.Context(), "acme", "api", numbered(0), ledger.CommitCorrection{Changes: &n.Changes}, "ops")
			return err
		}, ledger.Promotable},
		{"a key of the release before", func() error {
			return l.Run(t.Context(), "UPDATE commit_details SET paths_key = ''")
		}, ledger.Promotable},
		{"record again", func() error { return l.record("api", 0, "test:web") }, ledger.Promotable},
		{"expire", func() error { l.now = l.now.Add(2 * time.Hour); return l.Settle(t.Context()) }, ledger.Validating},
	} {
		minute()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		l.wantState("api", 0, step.want)
		if w.learned > 0 {
			t.Errorf("%s: the writer matched the paths of commits %d times", step.name, w.learned)
			w.learned = 0
		}
	}
}

// A write whose contract changes before each try ends with an error, and records nothing.
func TestPreparingEnds(t *testing.T) {
	l := newCostlyLedger(t, "api")
	check(t, l.record("api", 0, "test:go"))
	check(t, l.register("api", 0, "README"))
	before := l.events()

	w, end := watch(l.Store, func() { l.setContract("api") })
	for name, do := range map[string]func() error{
		"record":   func() error { return l.record("api", 0, "review:go") },
		"register": func() error { return l.register("api", 0, "x/y/main.go") },
		"correct": func() error {
			_, _, err := l.Correct(t.Context(), "acme", "api", numbered(0),
				ledger.CommitCorrection{Targets: &[]string{"release"}}, "ops")
			return err
		},
	} {
		w.tries = 0
		err := do()
		if e, ok := errors.AsType[*ledger.Error](err); !ok || e.Code != ledger.CodeStorageUnavailable ||
			!strings.Contains(err.Error(), "nothing was recorded (send it again)") {
			t.Errorf("%s: %v", name, err)
		}
		if w.tries/2 != maxPrepared+1 { // each with a write of the policy
			t.Errorf("%s: %d tries, want %d", name, w.tries/2, maxPrepared+1)
		}
	}
	if w.learned > 0 {
		t.Errorf("the writer matched the paths of commits %d times", w.learned)
	}
	end()

	if got := l.events(); got != before {
		t.Errorf("%d events other than of policies, want %d", got, before)
	}
	check(t, l.record("api", 0, "review:go"))
	check(t, l.Settle(t.Context()))
	l.wantState("api", 0, ledger.Promotable)
}

// events counts the events other than those of policies.
func (l *costlyLedger) events() int {
	l.t.Helper()
	types := []ledger.EventType{ledger.EventAttestation, ledger.EventState}
	events, err := l.Events(l.t.Context(), "acme", EventFilter{Query: Query{Limit: 500}, Types: types})
	check(l.t, err)
	return len(events.Data)
}

// A repo whose contract changes all the time does not keep the commits of others from
// expiring, and its own are derived as soon as it rests.
func TestExpiringDoesNotWaitForARestlessRepo(t *testing.T) {
	l := newCostlyLedger(t, "restless", "quiet")
	for _, repo := range []string{"restless", "quiet"} {
		check(t, l.record(repo, 0, "test:go"))
		check(t, l.register(repo, 0, "README"))
		l.wantState(repo, 0, ledger.Promotable)
	}
	l.now = l.now.Add(2 * time.Hour)

	w, end := watch(l.Store, func() { l.setContract("restless") })
	check(t, l.Settle(t.Context()))
	l.wantState("quiet", 0, ledger.Validating)
	l.wantState("restless", 0, ledger.Promotable)
	if err := l.Settle(t.Context()); err == nil {
		t.Error("no error says that the restless repo was not reached")
	}
	if w.learned > 0 {
		t.Errorf("the writer matched the paths of commits %d times", w.learned)
	}
	end()

	check(t, l.Settle(t.Context()))
	l.wantState("restless", 0, ledger.Validating)
}

// The writer decodes no long change record, once it is known what it means.
func TestTheWriterDecodesNoLongChanges(t *testing.T) {
	l := newCostlyLedger(t, "api")
	check(t, l.record("api", 0, "test:go"))
	check(t, l.register("api", 0, "README"))
	check(t, l.Run(t.Context(), "UPDATE commit_details SET changes = zeroblob(length(changes))"))
	check(t, l.record("api", 0, "test:web"))
	check(t, l.record("api", 0, "test:cli"))

	l.caches.scopes.clear()
	err := twin{l.Store}.try(t, &stated("ci", 0, "test:all", ledger.Pass).recording)
	if u, ok := errors.AsType[*unprepared](err); !ok || !u.list[0].facts.ChangesUnread {
		t.Errorf("the writer did not refuse to decode the change record: %v", err)
	}
	if err := l.record("api", 0, "test:all"); err == nil {
		t.Error("the change record was not decoded before the write")
	}
}
