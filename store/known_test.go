package store

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/txn"
)

// knownEvents returns the events of what is known of acme's commits.
func knownEvents(t *testing.T, s *Store) (list []ledger.CommitEvent) {
	t.Helper()
	page, err := s.Events(t.Context(), "acme",
		events.EventFilter{Query: txn.Query{Limit: 1000}, Types: []ledger.EventType{ledger.EventCommit}})
	must.OK(t, err)
	for _, body := range page.Data {
		var e ledger.CommitEvent
		must.OK(t, ledger.DecodeStrict(body, &e))
		list = append(list, e)
	}
	return list
}

// Each change of what states are derived from is in the log, so that the record of a commit
// can be compared with it. What changes nothing is not.
func TestFactsOfCommitsAreLogged(t *testing.T) {
	ctx := t.Context()
	s, path := newLogStore(t)
	object := "tree " + strings.Repeat("ab", 20) + "\nauthor Ann <ann@acme.example> 1700000000 +0000\n" +
		"committer Bob <bob@acme.example> 1700000000 +0000\n\nFix the login.\n"
	sum := sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(object), object))
	sha := hex.EncodeToString(sum[:])
	targets, none := []string{"main"}, []radar.Change(nil)
	both := []radar.Change{{Path: "a.go", Status: "M"}, {Path: "b.go", Status: "M"}}

	events := 0
	for _, step := range []struct {
		name      string
		register  ledger.Registration
		correct   *ledger.CommitCorrection
		isLogged  bool
		corrected []string
	}{
		{name: "nothing"},
		{name: "a base, which no state depends on", register: ledger.Registration{Base: strings.Repeat("0", 40)}},
		{name: "a branch", register: ledger.Registration{Branch: "fix"}, isLogged: true},
		{name: "the same again", register: ledger.Registration{Branch: "fix"}},
		{name: "a target", register: ledger.Registration{Target: "release"}, isLogged: true},
		{name: "an author", register: ledger.Registration{Author: ledger.Author{Name: "Eve"}}, isLogged: true},
		{
			name:     "changes",
			register: ledger.Registration{Changes: []radar.Change{{Path: "a.go", Status: "M"}}}, isLogged: true,
		},
		{name: "other hunks of the same path", register: ledger.Registration{Changes: []radar.Change{
			{Path: "a.go", Status: "A"},
		}}},
		{
			name:     "other changes",
			register: ledger.Registration{Changes: []radar.Change{{Path: "b.go", Status: "M"}}}, isLogged: true,
		},
		{
			name: "a correction that leaves all paths", correct: &ledger.CommitCorrection{Changes: &both},
			isLogged: true, corrected: []string{"changes"},
		},
		{
			name:     "its object",
			register: ledger.Registration{Object: []byte(object)}, isLogged: true, corrected: []string{"author"},
		},
		{
			name: "corrected targets", correct: &ledger.CommitCorrection{Targets: &targets},
			isLogged: true, corrected: []string{"targets"},
		},
		{
			name: "corrected changes", correct: &ledger.CommitCorrection{Changes: &none},
			isLogged: true, corrected: []string{"changes"},
		},
		{name: "a correction that changes nothing", correct: &ledger.CommitCorrection{Targets: &targets}},
	} {
		var err error
		if step.correct != nil {
			_, _, err = s.Correct(ctx, "acme", "api", sha, *step.correct, "admin")
		} else {
			_, _, err = s.Register(ctx, "acme", "api", sha, step.register)
		}
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}

		list := knownEvents(t, s)
		if step.isLogged {
			events++
		}
		if len(list) != events {
			t.Fatalf("%s: %d events, want %d", step.name, len(list), events)
		}
		if events == 0 {
			continue
		}
		record, err := s.Commit(ctx, "acme", "api", sha)
		must.OK(t, err)
		known, last := facts.Of(&record), list[events-1]
		if last.Facts != known.Digest() || last.Commit != sha || last.Tree != record.Tree {
			t.Errorf("%s: the event is %+v, and the record has %+v", step.name, last, known)
		}
		var corrected []string
		for _, c := range last.Corrected {
			corrected = append(corrected, c.Field)
		}
		if step.isLogged && !slices.Equal(corrected, step.corrected) {
			t.Errorf("%s: the event has %q as corrected, want %q", step.name, corrected, step.corrected)
		}
	}
	wantLog(t, s, path)
}

// What an older release knew of commits is logged once, in several writes. Commits that were
// never registered are left out.
func TestKnownCommitsAreLogged(t *testing.T) {
	ctx := t.Context()
	s, path := newLogStore(t)
	const many = 403 // one write logs 200
	must.OK(t, registerMany(t, s, many))
	unregistered := fmt.Sprintf("%040x", many+1)
	if _, _, err := s.Register(ctx, "acme", "api", unregistered, ledger.Registration{}); err != nil {
		t.Fatal(err)
	}
	db := readRaw(t, path)
	_, err := db.Exec(`
UPDATE commits SET facts = x'';
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
VALUES (1, 'log', 0, 1, 'upgrade', '', 0, 0, 0)`)
	must.OK(t, err)
	must.OK(t, db.Close())
	_, _, err = s.Register(ctx, "acme", "api", fmt.Sprintf("%040x", 7), ledger.Registration{Target: "main"})
	must.OK(t, err)

	for range 2 {
		must.OK(t, s.Settle(ctx))
		list := knownEvents(t, s)[many:] // without those of the registrations
		if len(list) != many {
			t.Fatalf("logged %d commits, want %d", len(list), many)
		}
		for _, e := range list {
			record, err := s.Commit(ctx, "acme", "api", e.Commit)
			must.OK(t, err)
			if known := facts.Of(&record); e.Facts != known.Digest() || len(e.Corrected) > 0 {
				t.Fatalf("logged %+v, want %+v", e, known)
			}
		}
	}
}

// The keys of changed paths that an old release did not store are computed when they are
// logged.
func TestFactsOfPathsWithoutAKey(t *testing.T) {
	ctx := t.Context()
	s, path := newLogStore(t)
	sha := strings.Repeat("1", 40)
	changes := []radar.Change{{Path: "b.go", OldPath: "a.go", Status: "R"}}
	_, _, err := s.Register(ctx, "acme", "api", sha, ledger.Registration{Changes: changes})
	must.OK(t, err)
	db := readRaw(t, path)
	_, err = db.Exec("UPDATE commit_details SET paths_key = ''; UPDATE commits SET facts = x''")
	must.OK(t, err)
	must.OK(t, db.Close())

	_, _, err = s.Register(ctx, "acme", "api", sha, ledger.Registration{})
	must.OK(t, err)
	list := knownEvents(t, s)
	if len(list) != 2 || list[0].Facts != list[1].Facts {
		t.Errorf("logged %+v, want the same facts twice", list)
	}
}

// An earlier release has read fewer co-authors from the object of a commit. The same object, sent
// again, completes them.
func TestObjectsAreReadAgain(t *testing.T) {
	s, path := newLogStore(t)
	object := "tree " + strings.Repeat("ab", 20) + "\nauthor Ann <ann@acme.example> 1700000000 +0000\n" +
		"committer Ann <ann@acme.example> 1700000000 +0000\n\nFix the login.\n\nCo-authored-by: Bob B & Eve <eve@x>\n"
	sum := sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(object), object))
	sha := hex.EncodeToString(sum[:])
	register := func() string {
		t.Helper()
		c, _, err := s.Register(t.Context(), "acme", "api", sha, ledger.Registration{Object: []byte(object)})
		must.OK(t, err)
		return fmt.Sprint(c.Writers)
	}

	want, logged := register(), len(knownEvents(t, s))
	if register(); len(knownEvents(t, s)) != logged {
		t.Error("the same object is logged again")
	}
	must.OK(t, s.Close())
	db := readRaw(t, path)
	_, err := db.Exec(`UPDATE commits SET writers = '[{"name":"Bob B & Eve","email":"eve@x"}]'`)
	must.OK(t, err)
	must.OK(t, db.Close())
	s, err = Open(t.Context(), path, Options{})
	must.OK(t, err)
	defer s.Close()
	if got := register(); got != want || !strings.Contains(got, "{Bob B }") {
		t.Errorf("writers %s, want %s", got, want)
	}
}
