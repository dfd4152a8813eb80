package store

import (
	"cmp"
	"crypto/ed25519"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/states"
)

// A theft is an upgrade on which an identity is distrusted.
type theft struct {
	*upgrade
	thief string // the identity
	since ledger.Time
}

// newTheft returns a database in which, on n commits, a failure by one key of ci is hidden
// by a thief with another.
func newTheft(t *testing.T, n int) *theft {
	t.Helper()
	u := newUpgrade(t, 0)
	p := u.open(t)
	must.OK(t, p.Settle(t.Context()))
	_, stolen, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	id := p.trust("cn=ci,ou=build,o=acme", stolen).ID
	for i := range n {
		p.attest(i+1, "unit", "FAILED")
	}
	since := u.at + 1
	for i := range n {
		p.attestBy(stolen, i+1, "unit", "PASSED")
	}
	for i := range n {
		p.wantState(i+1, ledger.Promotable)
	}
	must.OK(t, p.DistrustIdentity(t.Context(), "acme", id, since))
	must.OK(t, p.Close())
	return &theft{u, id, since}
}

// distrusting returns the job that replaces distrusted evidence, and its next window; nil if none is left.
func (p *process) distrusting() (*backlog.Job, states.DistrustedWindow) {
	p.t.Helper()
	j, err := p.jobs.Next(p.t.Context(), 1, backlog.Distrust)
	must.OK(p.t, err)
	if j == nil {
		return nil, states.DistrustedWindow{}
	}
	w := states.DistrustedWindow{Position: j.Position}
	must.OK(p.t, p.NextDistrusted(p.t.Context(), j, &w))
	return j, w
}

// repairOne does the next write of the background, and reports whether there may be more.
func (p *process) repairOne() (more bool) {
	p.t.Helper()
	j, w := p.distrusting()
	if j == nil {
		return false
	}
	for _, commit := range w.Commits {
		list, err := p.FindRepairs(p.t.Context(), commit)
		must.OK(p.t, err)
		if len(list) > 0 {
			part := states.DistrustedWindow{Distrusts: w.Distrusts, Position: j.Position}
			must.OK(p.t, p.ApplyRepairs(p.t.Context(), j, j.Position, part, list))
			return true
		}
	}
	must.OK(p.t, p.ApplyRepairs(p.t.Context(), j, j.Position, w, nil))
	return true
}

// wantLatest checks that the table latest holds no distrusted evidence.
func (u *upgrade) wantLatest(t *testing.T) {
	t.Helper()
	db := readRaw(t, u.path)
	defer db.Close()
	for _, c := range []struct{ query, want string }{
		{"SELECT count(*) FROM latest l JOIN attestations a ON a.id = l.attestation_id WHERE NOT (" + facts.IsTrusted + ")",
			"0"},
		{"SELECT max(distrusting) FROM orgs", "0"},
		{"SELECT count(*) FROM backlog", "0"},
	} {
		if got := texts(t, db, c.query); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: got %s, want %s", c.query, got, c.want)
		}
	}
}

// A crash after any step of the background work changes nothing about its result.
func TestFaultDistrustIsInterrupted(t *testing.T) {
	const n = 12
	u := newTheft(t, n)
	steps := 0
	for more := true; more; steps++ {
		p := u.open(t)
		more = p.repairOne()
		for i := range n { // reads are right at any time
			if r := p.commit(i + 1).Requirements[0]; r.Met || len(r.FailedBy) != 1 {
				t.Errorf("step %d, commit %d: %+v", steps, i+1, r)
			}
		}
		must.OK(t, p.Close())
	}
	if steps < n {
		t.Errorf("%d steps, want one for each commit", steps)
	}

	p := u.open(t)
	must.OK(t, p.Settle(t.Context()))
	for i := range n {
		p.wantState(i+1, ledger.Validating)
	}
	must.OK(t, p.Close())
	u.wantLatest(t)
}

// If evidence is distrusted again between the search and the write, what was found is
// not written.
func TestFaultDistrustMeanwhile(t *testing.T) {
	u := newTheft(t, 3)
	p := u.open(t)
	j, w := p.distrusting()
	list, err := p.FindRepairs(t.Context(), 2)
	must.OK(t, err)
	if len(list) != 1 || list[0].By == 0 {
		t.Fatalf("found %+v, want what the thief has replaced", list)
	}

	must.OK(t, p.DistrustIdentity(t.Context(), "acme", u.thief, u.since-1))
	must.OK(t, p.ApplyRepairs(t.Context(), j, j.Position, w, list))
	if again, err := p.FindRepairs(t.Context(), 2); len(again) != 1 || err != nil {
		t.Errorf("what was found before was written: %d rows are left, %v", len(again), err)
	}
	must.OK(t, p.Settle(t.Context()))
	must.OK(t, p.Close())
	u.wantLatest(t)
}

// The background reads and writes in bounded portions, however much an identity has
// recorded on one commit or on many.
func TestDistrustIsBounded(t *testing.T) {
	testenv.From(t, testenv.Push, "takes seconds")
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const many = 10_000
	for _, commits := range []int{1, many} {
		t.Run(fmt.Sprint(commits), func(t *testing.T) {
			u := newTheft(t, 1)
			u.copyThief(t, many, commits)
			p := u.open(t)

			if r := p.commit(1).Requirements[0]; r.Met || len(r.FailedBy) != 1 {
				t.Errorf("before the background work: %+v", r)
			}
			windows := 0
			for j, w := p.distrusting(); j != nil; j, w = p.distrusting() {
				windows++
				if len(w.Commits) > states.RepairWindow {
					t.Fatalf("a window has %d commits, want at most %d", len(w.Commits), states.RepairWindow)
				}
				must.OK(t, p.ReplaceDistrusted(t.Context(), j))
			}
			if least := many / states.RepairWindow; windows < least {
				t.Errorf("%d windows, want at least %d", windows, least)
			}
			must.OK(t, p.Settle(t.Context()))
			p.wantState(1, ledger.Validating)
			must.OK(t, p.Close())
			u.wantLatest(t)
		})
	}
}

// copyThief copies what the thief has recorded n times, to the same commit or to as many.
func (u *theft) copyThief(t *testing.T, n, commits int) {
	t.Helper()
	db := readRaw(t, u.path)
	defer db.Close()
	const stolen = " WHERE a.identity_id = ?1"
	u.copyRows(t, db, "attestations", n, stolen, map[string]string{
		"id": "a.id + n", "previous": "0", "payload_digest": "randomblob(32)",
		"attestation_id": "substr(a.attestation_id, 1, 20) || printf('%010d', n)",
		"recorded_at":    "a.recorded_at + n", "commit_id": fmt.Sprintf("a.commit_id + n * %d", min(commits-1, 1)),
	})
	if commits == 1 {
		return
	}

	one := " WHERE a.id = (SELECT commit_id FROM attestations a" + stolen + " LIMIT 1)"
	u.copyRows(t, db, "commits", n, one, map[string]string{"id": "a.id + n", "sha": "printf('%040x', 1000 + n)"})
	one = " WHERE a.attestation_id = (SELECT min(id) FROM attestations a" + stolen + ")"
	u.copyRows(t, db, "latest", n, one, map[string]string{
		"commit_id": "a.commit_id + n", "attestation_id": "a.attestation_id + n",
	})
	_, err := db.Exec("UPDATE repo_states SET commits = commits + ? WHERE state = ?", n, ledger.Promotable)
	must.OK(t, err)
}

// copyRows copies the rows of a table n times, with other values in some columns.
func (u *theft) copyRows(t *testing.T, db *sql.DB, table string, n int, where string, values map[string]string) {
	t.Helper()
	columns := texts(t, db, "SELECT name FROM pragma_table_info(?) ORDER BY cid", table)
	copied := make([]string, len(columns))
	for i, c := range columns {
		copied[i] = cmp.Or(values[c], "a."+c)
	}
	_, err := db.Exec(fmt.Sprintf(`
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
INSERT INTO %s (%s) SELECT %s FROM %s a, numbers %s`,
		table, strings.Join(columns, ", "), strings.Join(copied, ", "), table, where), u.thief, n)
	must.OK(t, err)
}
