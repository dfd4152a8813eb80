package store

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/txn"
)

// rare is a script that makes a few rows of a filled store match filters, far apart.
const rare = `
UPDATE commits SET state = 2, branch = 'rare' WHERE id % 997 = 0;
UPDATE commits SET author_name = 'Eve' WHERE id % 2 = 1;
UPDATE commits SET author_email = 'Eve' WHERE id % 3 = 0;
UPDATE commits SET attestations = 50000, newest = 1 WHERE id = 2;
UPDATE tips SET opened_at = 9000000000000 WHERE commit_id % 997 = 0;
UPDATE overlaps SET level = 3 WHERE later % 1009 = 0;
UPDATE tips SET level = 3 WHERE commit_id % 1009 = 0;
UPDATE tips SET opened_at = 9000000000000 WHERE commit_id % 1009 IN (0, 1008);
UPDATE attestations SET predicate_id = 99991 WHERE id % 4 = 0;
UPDATE attestations SET predicate_id = 99992 WHERE id % 4 = 1;
UPDATE attestations SET signer_id = 77777, commit_id = 2 WHERE id % 1019 = 0;
UPDATE events SET type = 'state' WHERE id % 1021 = 0;
UPDATE events SET type = 'policy', repo_id = 2 WHERE id % 2039 = 0;
UPDATE violations SET closed_at = CASE id % 1013 WHEN 0 THEN 0 ELSE 1 END;
UPDATE violations SET predicate_id = 99991 WHERE id % 1019 = 0;
UPDATE outbox SET status = 'pending' WHERE webhook_id = 1 AND event % 1031 = 0;`

// wantAllRows checks that following the cursors of a list whose pages are short, or empty,
// returns each row that matches exactly once and in order.
func wantAllRows(t *testing.T, s *Store) {
	must.OK(t, s.db.Change(t.Context(), "", func(t *txn.Tx) error { return t.Run(rare) }))

	// want compares what a list returns with the result of a query.
	want := func(name, query string, list func(txn.Query) (ids []string, next string, err error)) {
		t.Helper()
		ids, err := txn.Read(t.Context(), s.db, txn.ByOrg(""), func(rd txn.Reader) ([]string, error) {
			return txn.All(rd, txn.ScanText, query)
		})
		must.OK(t, err)
		if len(ids) < 10 {
			t.Fatalf("%s: only %d rows match", name, len(ids))
		}

		for _, limit := range []int{7, 500} {
			var got []string
			pages, short := 0, 0
			for q := (txn.Query{Limit: limit}); pages == 0 || q.Cursor != ""; pages++ {
				var page []string
				page, q.Cursor, err = list(q)
				must.OK(t, err)
				if len(page) > limit {
					t.Errorf("%s: a page has %d rows, want at most %d", name, len(page), limit)
				}
				if len(page) < limit && q.Cursor != "" {
					short++
				}
				got = append(got, page...)
			}
			if !slices.Equal(got, ids) {
				t.Errorf("%s, limit %d: %d rows on %d pages, want %d: got %.300v, want %.300v",
					name, limit, len(got), pages, len(ids), got, ids)
			}
			if limit == 500 && short == 0 {
				t.Errorf("%s: no page is short", name)
			}
		}
	}
	wantCommits(s, t, want)
	wantAttestations(s, t, want)

	for _, f := range []events.EventFilter{{}, {Repo: "web"}} {
		where := map[string]string{"": "", "web": " AND repo_id = 2"}[f.Repo]
		for order, descending := range map[string]bool{"": false, " DESC": true} {
			f.Descending, f.Types = descending, []ledger.EventType{ledger.EventState, ledger.EventPolicy}
			if f.Repo != "" {
				f.Types = append(f.Types, ledger.EventRadar)
			}
			want(fmt.Sprintf("events %+v", f),
				"SELECT seq FROM events WHERE type IN ('state', 'policy')"+where+" ORDER BY seq"+order,
				func(q txn.Query) (ids []string, next string, err error) {
					f.Query = q
					_, next, err = pageOfEvents(t, s, f, &ids)
					return ids, next, err
				})
		}
	}

	want("pending deliveries",
		"SELECT delivery_id FROM outbox WHERE webhook_id = 1 AND status = 'pending' ORDER BY delivery_id DESC",
		func(q txn.Query) (ids []string, next string, err error) {
			p, err := s.Deliveries(t.Context(), "acme", "api", webhook, DeliveryFilter{
				Query: q, Status: outbound.DeliveryPending,
			})
			for _, d := range p.Data {
				ids = append(ids, d.ID)
			}
			return ids, p.NextCursor, err
		})
	wantPairs(s, t, want)
	wantViolations(s, t, want)
}

type wantFunc = func(name, query string, list func(txn.Query) (ids []string, next string, err error))

// pageOfEvents stores the sequence numbers of a page of events in ids. A test cannot see
// them in their bodies.
func pageOfEvents(t *testing.T, s *Store, f events.EventFilter, ids *[]string) (txn.Section[[]byte], string, error) {
	t.Helper()
	first := int64(-1)
	if f.Descending {
		first = 1 << 62
	}
	l := listingOf(s, "events", 1)
	position, err := l.After(f.Query, first)
	must.OK(t, err)

	repo := map[string]int64{"api": 1, "web": 2}[f.Repo]
	p, err := txn.Read(t.Context(), s.db, txn.ByOrg(""), func(rd txn.Reader) (p txn.Section[[]byte], err error) {
		events, err := txn.RunAll(rd.Conn, f.Walks(1, repo, -1), []any{position}, f.Limit)
		*ids = nil // a long read begins again in another lane
		for _, e := range events.Rows {
			*ids = append(*ids, fmt.Sprint(e.ID))
		}
		return txn.Section[[]byte]{End: events.End}, err
	})
	if err != nil || p.End == nil {
		return p, "", err
	}
	return p, l.CursorOf(p.End), nil
}

// listingOf returns the list of a kind that a row owns.
func listingOf(s *Store, kind string, owner int64) txn.Listing {
	return s.db.NewReader(nil).Listing(kind, owner)
}

func wantCommits(s *Store, t *testing.T, want wantFunc) {
	const attestedOnes = "SELECT sha FROM commits WHERE repo_id = 1 AND state = 2 AND "
	attested := new(ledger.Attested)
	for _, test := range []struct {
		filter lists.CommitFilter
		where  string
	}{
		{lists.CommitFilter{State: attested, Author: "Ann"}, "author_name = 'Ann'"},
		{lists.CommitFilter{State: attested, Author: "Eve"}, "(author_name = 'Eve' OR author_email = 'Eve')"},
		{lists.CommitFilter{InFlight: true, State: attested}, "1 = 1"},
		{lists.CommitFilter{InFlight: true, Author: "Eve", State: attested}, "(author_name = 'Eve' OR author_email = 'Eve')"},
	} {
		want(fmt.Sprintf("commits %+v", test.filter), attestedOnes+test.where+" ORDER BY id DESC",
			func(q txn.Query) (ids []string, next string, err error) {
				test.filter.Query = q
				p, err := s.Commits(t.Context(), "acme", "api", test.filter)
				for _, c := range p.Data {
					ids = append(ids, c.SHA)
				}
				return ids, p.NextCursor, err
			})
	}
}

func wantViolations(s *Store, t *testing.T, want wantFunc) {
	for _, test := range []struct {
		filter lists.ViolationFilter
		where  string
	}{
		{lists.ViolationFilter{Predicate: "test:99991"}, "predicate_id = 99991"},
		{lists.ViolationFilter{Predicate: "test:99991", Status: ledger.ViolationClosed},
			"predicate_id = 99991 AND closed_at > 0"},
		{lists.ViolationFilter{Repo: "api", Commit: fmt.Sprintf("%040x", 2), Status: ledger.ViolationOpen},
			"commit_id = 2 AND closed_at = 0"},
	} {
		want(fmt.Sprintf("violations %+v", test.filter), "SELECT CAST(opened_at AS TEXT) FROM violations WHERE "+
			test.where+" ORDER BY id DESC", func(q txn.Query) (ids []string, next string, err error) {
			test.filter.Query = q
			p, err := s.Violations(t.Context(), "acme", test.filter)
			for _, v := range p.Data {
				ids = append(ids, fmt.Sprint(int64(v.OpenedAt)))
			}
			return ids, p.NextCursor, err
		})
	}
}

func wantAttestations(s *Store, t *testing.T, want wantFunc) {
	for _, test := range []struct {
		filter lists.AttestationFilter
		where  string
	}{
		{lists.AttestationFilter{Commit: fmt.Sprintf("%040x", 2), Since: 1}, "commit_id = 2"},
		{lists.AttestationFilter{Predicate: "test:9999*", Commit: fmt.Sprintf("%040x", 2), Since: 30_000},
			"predicate_id IN (99991, 99992) AND commit_id = 2 AND recorded_at >= 30000"},
		{lists.AttestationFilter{Identity: "cn=x,ou=77777", Status: ledger.Errored},
			"signer_id = 77777 AND status = 'error'"},
	} {
		for order, ascending := range map[string]bool{" DESC": false, "": true} {
			test.filter.Ascending = ascending
			want(fmt.Sprintf("attestations %+v", test.filter),
				"SELECT attestation_id FROM attestations WHERE "+test.where+" ORDER BY recorded_at"+order,
				func(q txn.Query) (ids []string, next string, err error) {
					test.filter.Query = q
					p, err := s.Attestations(t.Context(), "acme", "api", test.filter)
					for _, a := range p.Data {
						ids = append(ids, a.ID)
					}
					return ids, p.NextCursor, err
				})
		}
	}
}

func wantPairs(s *Store, t *testing.T, want wantFunc) {
	d, err := txn.Read(t.Context(), s.db, txn.ByOrg(""), func(rd txn.Reader) (*facts.Deriver, error) {
		return s.Facts.DeriverOf(rd, "acme", "api")
	})
	must.OK(t, err)

	want("overlaps", "SELECT later FROM overlaps WHERE level = 3 ORDER BY later DESC",
		func(q txn.Query) (ids []string, next string, err error) {
			cursors := listingOf(s, "overlaps", 1)
			position, err := cursors.Position(q, 3)
			must.OK(t, err)
			_, err = txn.Read(t.Context(), s.db, txn.ByOrg(""), func(rd txn.Reader) (struct{}, error) {
				l := overlaps.Lister(rd, d)
				pairs, end, err := l.Pairs(overlaps.RadarFilter{Query: q, Level: radar.High}, position)
				for _, p := range pairs {
					ids = append(ids, fmt.Sprint(p.Later))
				}
				if end != nil {
					next = cursors.Cursor(end...)
				}
				return struct{}{}, err
			})
			return ids, next, err
		})
}

// A page ends when its rows are too large, but has at least one.
func TestFaultLargeRowsEndAPage(t *testing.T) {
	s := openWithRepo(t)
	forgetEvents(t, s)

	const large, rows = 300 << 10, 20
	must.OK(t, s.db.Change(t.Context(), "", func(t *txn.Tx) error {
		for i := range rows {
			size := large
			if i == 10 {
				size = 3 * txn.MaxPageBytes
			}
			_, err := t.Exec(`
INSERT INTO events (org_id, seq, event_id, type, repo_id, at, body) VALUES (1, ?, ?, 'state', 1, 1, ?)`,
				i, fmt.Sprint("evt_", i), bytes.Repeat([]byte{' '}, size))
			if err != nil {
				return err
			}
		}
		return nil
	}))

	got, pages := 0, 0
	for f := (events.EventFilter{Query: txn.Query{Limit: 500}}); pages == 0 || f.Cursor != ""; pages++ {
		p, err := s.Events(t.Context(), "acme", f)
		must.OK(t, err)
		size := 0
		for _, body := range p.Data {
			size += len(body)
		}
		if len(p.Data) == 0 || size > txn.MaxPageBytes+large && len(p.Data) > 1 {
			t.Errorf("page %d has %d events of %d bytes", pages, len(p.Data), size)
		}
		got += len(p.Data)
		f.Cursor = p.NextCursor
	}
	if got != rows || pages < 7 {
		t.Errorf("%d events on %d pages, want %d on at least 7", got, pages, rows)
	}
}

// Lists have the subjects of messages, and count their bytes.
func TestListedCommitsHaveSubjects(t *testing.T) {
	s := openWithRepo(t)
	sha := fmt.Sprintf("%040x", 1)
	message := "fix: one\n\n" + strings.Repeat("x", 60_000)
	_, _, err := s.Register(t.Context(), "acme", "api", sha, ledger.Registration{Message: message})
	must.OK(t, err)

	list, err := s.Commits(t.Context(), "acme", "api", lists.CommitFilter{Query: txn.Query{Limit: 1}})
	must.OK(t, err)
	if len(list.Data) != 1 || list.Data[0].Message != "fix: one" {
		t.Errorf("the list has %.100v", list.Data)
	}
	c, err := s.Commit(t.Context(), "acme", "api", sha)
	must.OK(t, err)
	if c.Message != message {
		t.Errorf("the commit's message has %d bytes, want %d", len(c.Message), len(message))
	}
}

// The record of a commit has its newest transitions, oldest first.
func TestFaultCommitRecordIsBounded(t *testing.T) {
	s := openEmpty(t)
	createAcme(t, s)
	sha := fmt.Sprintf("%040x", 1)
	_, _, err := s.Register(t.Context(), "acme", "api", sha, ledger.Registration{Message: "one"})
	must.OK(t, err)
	must.OK(t, s.db.Change(t.Context(), "", func(t *txn.Tx) error {
		for i := range 150 {
			_, err := t.Exec(`
INSERT INTO events (org_id, seq, event_id, type, repo_id, at, body) VALUES (1, ?, ?, 'state', 1, ?, ?)`,
				1000+i, fmt.Sprint("evt_", i), i, []byte("{}"))
			if err != nil {
				return err
			}
			_, err = t.Exec(`
INSERT INTO transitions (commit_id, event, from_state, to_state, at, cause_type, cause_id)
VALUES (1, (SELECT max(id) FROM events), 0, 1, ?, 'policy', '')`, i)
			if err != nil {
				return err
			}
		}
		return nil
	}))

	c, err := s.Commit(t.Context(), "acme", "api", sha)
	must.OK(t, err)
	if n := len(c.Transitions); n != lists.MaxTransitions || c.Transitions[0].At != 50 || c.Transitions[n-1].At != 149 {
		t.Errorf("the record has %d transitions: %v", n, c.Transitions)
	}

	var times []ledger.Time
	for q := (txn.Query{Limit: 40}); ; {
		page, err := s.Transitions(t.Context(), "acme", "api", sha, q)
		must.OK(t, err)
		for _, step := range page.Data {
			times = append(times, step.At)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	slices.Reverse(times)
	if len(times) != 150 || times[0] != 0 || times[149] != 149 || !slices.IsSorted(times) {
		t.Errorf("the pages have %d transitions, with the times %v", len(times), times)
	}
}
