package store

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// steps returns the number of steps of SQLite's virtual machine that the reads of callers'
// requests have run since the last call. It asks SQLite for the count of each prepared
// statement, which the driver does not do, so it needs the driver's handles.
func steps(t *testing.T, s *Store) (total int) {
	t.Helper()
	count := func(driverConn any) error {
		c := reflect.ValueOf(driverConn).Elem()
		db, tls := uintptr(c.FieldByName("db").Uint()), (*libc.TLS)(c.FieldByName("tls").UnsafePointer())
		for stmt := sqlite3.Xsqlite3_next_stmt(tls, db, 0); stmt != 0; stmt = sqlite3.Xsqlite3_next_stmt(tls, db, stmt) {
			total += int(sqlite3.Xsqlite3_stmt_status(tls, stmt, sqlite3.SQLITE_STMTSTATUS_VM_STEP, 1))
		}
		return nil
	}
	for range 8 { // all connections
		check(t, s.db.ReadLoose(t.Context(), byOrg(""), func(c *sqldb.Conn) error { return c.Raw(count) }))
	}
	return total
}

// manyRows is the number of rows of each list that do not match its filters.
const manyRows = 100_000

// digit is a pattern of the digit DIGIT(n) of an id, which encodes five bits of its time.
var digit = regexp.MustCompile(`DIGIT\((.*?)\)`)

// fill is a script that fills the lists of acme/api, which are empty, with manyRows rows
// each. Commits and tips have the ids from 1 to manyRows, and stay in flight until 2100. Each
// statement that begins with INSERT gets the numbers n from 1 to manyRows.
const fill = `
INSERT INTO tokens (token_id, org_id, name, permission, hash, created_at, expires_at)
  SELECT 'tok_' || n, 2, 'x', 1, CAST(n AS BLOB), 1, 0;
INSERT INTO identities (identity_id, org_id, kind, dn, email, pem, fingerprint, not_after, created_at)
  SELECT 'idn_' || n, 2, 'key', 'cn=x', '', '', n || '', 0, 1;
INSERT INTO repos (org_id, name, default_branch, created_at, policy_version, policy_digest)
  SELECT 2, 'r' || n, 'main', 1, 1, '';
INSERT INTO predicates (id, org_id, name) SELECT n, 1, 'test:' || n;
INSERT INTO signers (id, org_id, dn, cn) SELECT n, 1, 'cn=x,ou=' || n, 'x';
INSERT INTO predicate_types (org_id, uri) SELECT 1, 'https://many.example/' || n;
INSERT INTO policies (repo_id, version, digest, contract, created_at, created_by)
  SELECT 1, n + 1, '', CAST('{}' AS BLOB), 1, '';
INSERT INTO commits (id, repo_id, sha, state, state_since, registered_at, policy_version, branch, author_name,
    author_email)
  SELECT n, 1, printf('%040x', n), 0, 1, 1, 1, 'busy', 'Ann', 'ann@example.com';
INSERT INTO tips (commit_id, repo_id, sha, branch, flight, place, seq, opened_at, policy_version, lineage)
  SELECT n, 1, printf('%040x', n), 'busy', 1, n, n, 4102444800000, 1, '  ';
INSERT INTO overlaps (later, earlier, level, told, since, path, reason)
  SELECT n, n - 1, 1, 0, 1, 'a', 'same_lines' WHERE n > 1;
INSERT INTO attestations (id, previous, attestation_id, repo_id, commit_id, predicate_id, type_id, mapping_version,
    slot, signer_id, key_id, status, duration_ms, recorded_at, payload_digest, identity_id, emails,
    while_promotable, event_id)
  SELECT n, n - 1,
    'att_000000' || DIGIT(n >> 15) || DIGIT(n >> 10) || DIGIT(n >> 5) || DIGIT(n) || '0000000000000000',
    1, 1, n % 100 + 1, 1, 1, '', n % 100 + 1, 1,
    CASE n % 2 WHEN 1 THEN 'pass' ELSE 'error' END, 0, n, CAST(n AS BLOB), 'idn_x', '', 0, 'evt_' || n;
INSERT INTO exceptions (attestation_id, repo_id, commit_id, requirement, reason, ends_at)
  SELECT n, 1, n % 100 + 1, 'review', 'x', 4102444800000 + n;
INSERT INTO events (id, org_id, seq, event_id, type, repo_id, at, body)
  SELECT n, 1, n, 'evt_' || n, CASE n % 2 WHEN 1 THEN 'attestation' ELSE 'radar' END, 1, n, CAST('{}' AS BLOB);
INSERT INTO violations (repo_id, org_id, commit_id, predicate_id, attestation_id, state, opened_at, missing, closed_at)
  SELECT 1, 1, 1 + n % 2, 1 + n % 100, n, 0, n, '["x"]', n % 3;
INSERT INTO violation_events (org_id, seq, repo_id, event) SELECT 1, n, 1, n;
INSERT INTO audits (org_id, seq, event, kind, action, repo, actor)
  SELECT 1, n, n, 'token', 'token.created', 'api', 'tok_x';
INSERT INTO transitions (commit_id, event, from_state, to_state, at, cause_type, cause_id)
  SELECT 1, n, 0, 1, n, 'policy', '2';
INSERT INTO outbox (webhook_id, delivery_id, event, status, due_at, created_at, ended_at)
  SELECT 1, printf('dlv_%026d', n), n, 'succeeded', 0, 1, 1;
INSERT INTO outbox (webhook_id, delivery_id, ping, status, due_at, created_at, ended_at)
  SELECT 2, printf('dlv_%026d', n), '{"id":"evt_x"}', 'succeeded', 0, 1, 1;`

// filled returns a store in which every list of acme/api has many rows.
func filled(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), Options{})
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	for _, org := range []string{"acme", "crowd"} {
		_, err = s.CreateOrg(t.Context(), org)
		check(t, err)
	}
	for _, repo := range []string{"api", "web"} {
		_, err = s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: repo}, "host")
		check(t, err)
	}

	forgetEvents(t, s)
	check(t, s.write(t.Context(), "", func(t *tx) error {
		for _, id := range []int{1, 2} {
			_, err := t.Exec(`
INSERT INTO webhooks (id, webhook_id, repo_id, url, events, description, active, created_at, changed_at, secret)
VALUES (?, ?, 1, '', 1, '', 1, 1, 1, '')`, id, fmt.Sprint("whk_", id))
			if err != nil {
				return err
			}
		}
		err := t.Run(`
INSERT INTO keys (id, org_id, digest) VALUES (1, 1, x'00');
INSERT INTO predicate_types (id, org_id, uri)
  VALUES (1, 1, 'https://in-toto.io/attestation/vulns/v0.1'), (2, 1, 'https://in-toto.io/attestation/vulns/v0.2')`)
		if err != nil {
			return err
		}
		script := digit.ReplaceAllString(fill, "substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (($1) & 31) + 1, 1)")
		for statement := range strings.SplitSeq(script, ";\n") {
			into, values, _ := strings.Cut(statement, "SELECT")
			values, where, _ := strings.Cut(strings.TrimSuffix(values, ";"), " WHERE ")
			if where != "" {
				where = " WHERE " + where
			}
			err := t.Run(fmt.Sprintf(`%s
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
SELECT %s FROM numbers%s`, into, manyRows, values, where))
			if err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return t.Run(fmt.Sprintf(`
UPDATE commits SET attestations = %d, newest = %d WHERE id = 1;
UPDATE orgs SET next_seq = %d WHERE id = 1;`, manyRows, manyRows, manyRows+1))
	}))
	return s
}

// few is the maximum number of steps of a page. To examine all rows takes twice as many, and
// more if a row is looked up in several tables.
const few = 60 * maxExamined

// The lists of a ledger with many rows. The subtests share the ledger; the second one
// changes it.
func TestListsOfManyRows(t *testing.T) {
	testenv.From(t, testenv.Push, "inserts a million rows")
	if testing.Short() {
		t.Skip("inserts a million rows")
	}
	t.Parallel()
	s := filled(t)
	t.Run("a page examines few rows", func(t *testing.T) { wantFewRows(t, s) })
	t.Run("short pages lose no rows", func(t *testing.T) { wantAllRows(t, s) })
}

// wantFewRows checks that every list with every filter examines a limited number of rows,
// however many do not match.
func wantFewRows(t *testing.T, s *Store) {
	steps(t, s)

	// list reads pages of a list, from the start and after many empty ones.
	most, worst := 0, ""
	list := func(name string, page func(context.Context, Query) (string, error)) {
		t.Helper()
		q := Query{Limit: 50}
		for n := range 3 {
			next, err := page(t.Context(), q)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := steps(t, s)
			if got > few {
				t.Errorf("%s: page %d takes %d steps, want at most %d", name, n, got, few)
			}
			if got > most {
				most, worst = got, name
			}
			if q.Cursor = next; next == "" {
				break
			}
		}
	}
	listSimple(s, list)
	listAttestations(s, list)
	listAttestationTypes(s, list)
	listCommits(s, list)
	listEvents(s, list)
	listRadar(s, list)
	listViolations(s, list)
	listAudits(s, list)
	listExceptions(s, list)
	listEnvironments(t, s, list)
	listSearch(t, s, list)
	listInsights(s, list)
	listAttention(t, s, list)
	t.Logf("the most expensive page takes %d steps: %s", most, worst)
}

type listFunc = func(name string, page func(context.Context, Query) (string, error))

func next[T any](p ledger.Page[T], err error) (string, error) { return p.NextCursor, err }

// The overlaps of one commit are found without reading those of all others.
func TestOverlapsOfACommitAreLookedUp(t *testing.T) {
	s := openWithRepo(t)
	const tips, each = 12_000, 20
	const most = 3 * (tips/maxExamined + 1) // pages, for three levels
	check(t, s.write(t.Context(), "", func(t *tx) error {
		return t.Run(fmt.Sprintf(`
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
INSERT INTO commits (id, repo_id, sha, state, state_since, registered_at, policy_version)
  SELECT n, 1, printf('%%040x', n), 0, 1, 1, 1 FROM numbers;
INSERT INTO tips (commit_id, repo_id, sha, branch, flight, place, seq, opened_at, policy_version, lineage, level)
  SELECT id, 1, sha, 'b' || id, 1, id, id, 4102444800000, 1, '  ', 3 FROM commits;
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
INSERT INTO overlaps (later, earlier, level, told, since, path, reason)
  SELECT id, id - n, 1 + id %% 3, 0, 1, 'a', 'same_lines' FROM commits, numbers WHERE id > n`, tips, each))
	}))

	for n, want := range map[int]int{1: each, tips / 2: 2 * each, tips: each} {
		for _, f := range []RadarFilter{{Commit: fmt.Sprintf("%040x", n)}, {Branch: fmt.Sprint("b", n)}} {
			pages, found := 1, 0
			for f.Limit = 500; ; pages++ {
				p, end := pairsOf(t, s, f)
				found += len(p)
				if f.Cursor = end; end == "" {
					break
				}
			}
			if found != want || pages > most {
				t.Errorf("%+v: %d pairs on %d pages, want %d on at most %d", f, found, pages, want, most)
			}
		}
	}
}

// pairsOf reads a page of open pairs, without comparing their commits again.
func pairsOf(t *testing.T, s *Store, f RadarFilter) (list []openPair, next string) {
	t.Helper()
	cursors := listingOf(s, "overlaps", 1)
	position, err := cursors.position(f.Query, 3)
	check(t, err)
	_, err = read(t.Context(), s, byOrg("acme"), func(rd reader) (struct{}, error) {
		d, err := rd.deriverOf("acme", "api")
		check(t, err)
		pairs, end, err := rd.lister(d).pairs(f, position)
		if list = pairs; end != nil {
			next = cursors.cursor(end...)
		}
		return struct{}{}, err
	})
	check(t, err)
	return list, next
}
