package store

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/sqlite"
	"github.com/ledgerd/ledgerd/store/txn"
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
		must.OK(t, s.db.ReadLoose(t.Context(), txn.ByOrg(""), func(c *sqldb.Conn) error { return sqlite.Raw(c, count) }))
	}
	return total
}

// manyRows is the number of rows of each list that do not match its filters.
const manyRows = 100_000

// ulidSQL returns an expression for the ULID of the time n.
func ulidSQL() string {
	digits := "'000000'"
	for _, shift := range []int{15, 10, 5, 0} {
		digits += fmt.Sprintf(" || substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((n >> %d) & 31) + 1, 1)", shift)
	}
	return digits + " || '0000000000000000'"
}

// fill is a script that fills the lists of acme/api, which are empty, with manyRows rows
// each. Commits and tips have the ids from 1 to manyRows, and stay in flight until 2100. Each
// statement that begins with INSERT gets the numbers n from 1 to manyRows.
const fill = `
INSERT INTO tokens (token_id, org_id, name, permission, hash, created_at, expires_at)
  SELECT 'tok_' || n, 2, 'x', 1, CAST(n AS BLOB), 1, 0;
INSERT INTO identities (identity_id, org_id, kind, dn, email, pem, fingerprint, not_after, created_at)
  SELECT 'idn_' || n, 2, 'key', 'cn=x', '', '', n || '', 0, 1;
INSERT INTO repos (org_id, name, default_branch, created_at, policy_version, policy_digest)
  SELECT 2, CASE n WHEN 1 THEN 'web' ELSE 'r' || n END, 'main', 1, 1, '';
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
INSERT INTO overlaps (later, earlier, level, announced, since, path, reason)
  SELECT n, n - 1, 1, 0, 1, 'a', 'same_lines' WHERE n > 1;
INSERT INTO attestations (id, previous, attestation_id, repo_id, commit_id, predicate_id, type_id, mapping_version,
    slot, signer_id, key_id, status, duration_ms, recorded_at, payload_digest, identity_id, emails,
    while_promotable, event_id)
  SELECT n, n - 1, 'att_' || ULID, 1, 1, n % 100 + 1, 1, 1, '', n % 100 + 1, 1,
    CASE n % 2 WHEN 1 THEN 'pass' ELSE 'error' END, 0, n, CAST(n AS BLOB), 'idn_x', '', 0, 'evt_' || ULID;
INSERT INTO exceptions (attestation_id, repo_id, commit_id, requirement, reason, ends_at)
  SELECT n, 1, n % 100 + 1, 'review', 'x', 4102444800000 + n;
INSERT INTO events (id, org_id, seq, event_id, type, repo_id, at, body)
  SELECT n, 1, n, 'evt_' || ULID, CASE n % 2 WHEN 1 THEN 'attestation' ELSE 'radar' END, 1, n, CAST('{}' AS BLOB);
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
	s, err := Open(t.Context(), NewFile(t), Options{})
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, s.Close()) })
	for _, org := range []string{"acme", "umbrella"} {
		_, err = s.CreateOrg(t.Context(), org)
		must.OK(t, err)
	}
	for _, repo := range []string{"api", "web"} {
		_, err = s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: repo}, "host")
		must.OK(t, err)
	}

	forgetEvents(t, s)
	must.OK(t, s.db.Change(t.Context(), "", func(t *txn.Tx) error {
		for i, id := range []string{webhook, "whk_2"} {
			_, err := t.Exec(`
INSERT INTO webhooks (id, webhook_id, repo_id, url, events, description, active, created_at, changed_at, secret)
VALUES (?, ?, 1, '', 1, '', 1, 1, 1, '')`, i+1, id)
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
		script := strings.ReplaceAll(fill, "ULID", ulidSQL())
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
const few = 60 * txn.MaxExamined

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

	most, worst := 0, ""
	for _, l := range append(reports(s), Lists(t, s)...) {
		must.OK(t, s.Run(t.Context(), before(s)[l.Name]))
		for f := range l.Filters() {
			// Pages from the start, and after many empty ones.
			q := txn.Query{Limit: 50}
			for n := range 3 {
				next, err := f.Page(t.Context(), q)
				if err != nil {
					t.Fatalf("%v: %v", f, err)
				}
				got := steps(t, s)
				if got > few {
					t.Errorf("%v: page %d takes %d steps, want at most %d", f, n, got, few)
				}
				if got > most {
					most, worst = got, f.String()
				}
				if q.Cursor = next; next == "" {
					break
				}
			}
		}
	}
	t.Logf("the most expensive page takes %d steps: %s", most, worst)
	must.OK(t, s.Run(t.Context(),
		"UPDATE commits SET state = 0; UPDATE tips SET level = 0; UPDATE overlaps SET level = 1"))
}

// before returns scripts that are run before a list is read.
func before(s *Store) map[string]string {
	now, soon := s.Now(), s.Now().Add(time.Hour)
	return map[string]string{
		// Environments of many repos and of one repo, with many deployments, commits and violations.
		"environments": `
UPDATE predicates SET name = 'deploy:prod' WHERE id = 7;
INSERT INTO environments (predicate_id, repo_id, org_id, latest_id) SELECT id, 1, 1, id FROM predicates;
INSERT INTO environments (predicate_id, repo_id, org_id, latest_id) SELECT 7, id, 2, id FROM repos WHERE id > 2;
INSERT INTO environments (predicate_id, repo_id, org_id, latest_id) VALUES (7, 2, 1, 1);
INSERT INTO deployments (repo_id, predicate_id, commit_id, attestation_id, required, ended_id)
  SELECT 1, 7, id, id, 1, id % 2 FROM commits;
UPDATE environments SET latest_id = 1000000 WHERE repo_id = 1 AND predicate_id < 70;
UPDATE commits SET state = 3`,
		// Everything needs attention.
		"attention": fmt.Sprintf(`
INSERT INTO policies (repo_id, version, digest, contract, created_at, created_by)
  SELECT id, 1, '', CAST('{"requirements":[]}' AS BLOB), 1, '' FROM repos WHERE org_id = 2;
UPDATE commits SET state = 2, state_since = %[1]d, failing_since = (id %% 2) * %[1]d, expires = %[2]d,
  branch = 'b' || id %% 7;
INSERT INTO repo_states (repo_id, state, commits) VALUES (1, 2, 100000)
  ON CONFLICT (repo_id, state) DO UPDATE SET commits = 100000;
UPDATE tips SET level = 3;
UPDATE overlaps SET level = 3;
UPDATE webhooks SET active = 0;
UPDATE tokens SET expires_at = %[2]d;
UPDATE identities SET not_after = %[2]d;
UPDATE exceptions SET ends_at = %[2]d + attestation_id`, now, soon),
	}
}

// reports returns reads that only a ledger with many rows can do.
func reports(s *Store) []List {
	return []List{
		{"review", func(ctx context.Context, f *Filter) (string, error) {
			org := pick(f, "acme", "umbrella")
			return "", reviewLargest(ctx, s, org, reposOf(org)[1])
		}},
		// The oldest tip may overlap with all others.
		{"commit", func(ctx context.Context, f *Filter) (string, error) {
			_, err := s.Commit(ctx, "acme", "api", fmt.Sprintf("%040x", pick(f, 1, manyRows/2, manyRows)))
			return "", err
		}},
		{"commits from the middle", func(ctx context.Context, f *Filter) (string, error) {
			q := txn.Query{Limit: f.Limit, Cursor: cmp.Or(f.Cursor, listingOf(s, "commits", 1).Cursor(manyRows/2))}
			return next(s.Commits(ctx, "acme", "api", lists.CommitFilter{Query: q, Standing: true}))
		}},
	}
}

// reviewLargest reads the facts for a review of a contract that is about 200 predicates and
// types, of which there are many.
func reviewLargest(ctx context.Context, s *Store, org, repo string) error {
	var c policy.Contract
	for i := range 100 {
		c.Requirements = append(c.Requirements, policy.Requirement{Predicate: fmt.Sprintf("test:%d*", i)},
			policy.Requirement{Type: fmt.Sprintf("https://many.example/%d*", i)})
	}
	f, err := s.LintFacts(ctx, org, repo, c)
	if err == nil && (len(f.Signers) > lists.MaxLintSigners || f.Missing != (org == "umbrella") ||
		len(f.Signed["test:1*"]) > lists.MaxLintNames) {
		return fmt.Errorf("%d identities, missing: %t, names: %q", len(f.Signers), f.Missing, f.Signed["test:1*"])
	}
	return err
}

func TestFiltersAreAllCombinations(t *testing.T) {
	l := List{"things", func(_ context.Context, f *Filter) (string, error) {
		if pick(f, "red", "blue") == "blue" {
			pick(f, 1, 2)
		}
		return "", nil
	}}
	var got []string
	for f := range l.Filters() {
		_, err := f.Page(t.Context(), txn.Query{Limit: 1})
		must.OK(t, err)
		got = append(got, f.String())
	}
	if want := []string{"things [red]", "things [blue 1]", "things [blue 2]"}; !slices.Equal(got, want) {
		t.Errorf("the filters are %q, want %q", got, want)
	}
}

// The overlaps of one commit are found without reading those of all others.
func TestOverlapsOfACommitAreLookedUp(t *testing.T) {
	s := openWithRepo(t)
	const tips, each = 12_000, 20
	const most = 3 * (tips/txn.MaxExamined + 1) // pages, for three levels
	must.OK(t, s.db.Change(t.Context(), "", func(t *txn.Tx) error {
		return t.Run(fmt.Sprintf(`
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
INSERT INTO commits (id, repo_id, sha, state, state_since, registered_at, policy_version)
  SELECT n, 1, printf('%%040x', n), 0, 1, 1, 1 FROM numbers;
INSERT INTO tips (commit_id, repo_id, sha, branch, flight, place, seq, opened_at, policy_version, lineage, level)
  SELECT id, 1, sha, 'b' || id, 1, id, id, 4102444800000, 1, '  ', 3 FROM commits;
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
INSERT INTO overlaps (later, earlier, level, announced, since, path, reason)
  SELECT id, id - n, 1 + id %% 3, 0, 1, 'a', 'same_lines' FROM commits, numbers WHERE id > n`, tips, each))
	}))

	for n, want := range map[int]int{1: each, tips / 2: 2 * each, tips: each} {
		for _, f := range []overlaps.RadarFilter{{Commit: fmt.Sprintf("%040x", n)}, {Branch: fmt.Sprint("b", n)}} {
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
func pairsOf(t *testing.T, s *Store, f overlaps.RadarFilter) (list []overlaps.OpenPair, next string) {
	t.Helper()
	cursors := listingOf(s, "overlaps", 1)
	position, err := cursors.Position(f.Query, 3)
	must.OK(t, err)
	_, err = txn.Read(t.Context(), s.db, txn.ByOrg("acme"), func(rd txn.Reader) (struct{}, error) {
		d, err := s.Facts.DeriverOf(rd, "acme", "api")
		must.OK(t, err)
		pairs, end, err := overlaps.Lister(rd, d).Pairs(f, position)
		if list = pairs; end != nil {
			next = cursors.Cursor(end...)
		}
		return struct{}{}, err
	})
	must.OK(t, err)
	return list, next
}
