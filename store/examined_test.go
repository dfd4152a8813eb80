package store

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/ledger/search"
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
INSERT INTO tokens (token_id, org_id, name, scope, hash, created_at, expires_at)
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
	listExceptions(s, list)
	listEnvironments(t, s, list)
	listSearch(t, s, list)
	listInsights(s, list)
	listAttention(t, s, list)
	t.Logf("the most expensive page takes %d steps: %s", most, worst)
}

type listFunc = func(name string, page func(context.Context, Query) (string, error))

func next[T any](p ledger.Page[T], err error) (string, error) { return p.NextCursor, err }

func listSimple(s *Store, list listFunc) {
	list("orgs", func(ctx context.Context, q Query) (string, error) { return next(s.Orgs(ctx, q)) })
	for _, org := range []string{"acme", "crowd"} {
		list("repos of "+org, func(ctx context.Context, q Query) (string, error) { return next(s.Repos(ctx, org, q)) })
		list("tokens of "+org, func(ctx context.Context, q Query) (string, error) { return next(s.Tokens(ctx, org, q)) })
		list("identities of "+org, func(ctx context.Context, q Query) (string, error) {
			return next(s.Identities(ctx, org, q))
		})
		list("predicates of "+org, func(ctx context.Context, q Query) (string, error) {
			return next(s.Predicates(ctx, org, q))
		})
	}
	list("transitions", func(ctx context.Context, q Query) (string, error) {
		return next(s.Transitions(ctx, "acme", "api", fmt.Sprintf("%040x", 1), q))
	})
	for org, repo := range map[string]string{"acme": "api", "crowd": "r1"} {
		list("review in "+org, func(ctx context.Context, _ Query) (string, error) {
			return "", reviewLargest(ctx, s, org, repo)
		})
	}
	list("versions", func(ctx context.Context, q Query) (string, error) { return next(s.Policies(ctx, "acme", "api", q)) })
	list("webhooks", func(ctx context.Context, q Query) (string, error) { return next(s.Webhooks(ctx, "acme", "api", q)) })

	for _, hook := range []string{"whk_1", "whk_2"} {
		for _, event := range []string{"", "evt_00000000000000000000000000"} {
			for _, status := range []ledger.DeliveryStatus{
				"", ledger.DeliveryPending, ledger.DeliverySucceeded, ledger.DeliveryFailed,
			} {
				list(fmt.Sprintf("deliveries of %s %q %s", hook, event, status),
					func(ctx context.Context, q Query) (string, error) {
						return next(s.Deliveries(ctx, "acme", "api", hook, DeliveryFilter{Query: q, Event: event, Status: status}))
					})
			}
		}
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
	if err == nil && (len(f.Signers) > maxLintSigners || f.Missing != (org == "crowd") ||
		len(f.Signed["test:1*"]) > maxLintNames) {
		return fmt.Errorf("%d identities, missing: %t, names: %q", len(f.Signers), f.Missing, f.Signed["test:1*"])
	}
	return err
}

func listAttestations(s *Store, list listFunc) {
	f := AttestationFilter{}
	for _, f.Predicate = range []string{"", "test:1", "test:7*", "test:*", "test:90000", "none"} {
		for _, f.Identity = range []string{"", "x", "cn=x,ou=1", "cn=x,ou=90000", "none"} {
			for _, f.Commit = range []string{"", fmt.Sprintf("%040x", 1), fmt.Sprintf("%040x", 2)} {
				for _, f.Status = range []ledger.Status{"", ledger.Pass, ledger.Fail, ledger.Errored} {
					for _, f.Since = range []ledger.Time{0, 50_000} {
						for _, f.Ascending = range []bool{false, true} {
							list(fmt.Sprintf("attestations %+v", f), func(ctx context.Context, q Query) (string, error) {
								f.Query = q
								return next(s.Attestations(ctx, "acme", "api", f))
							})
							f.Query = Query{}
						}
					}
				}
			}
		}
	}
}

func listAttestationTypes(s *Store, list listFunc) {
	f := AttestationFilter{}
	const vulns = "https://in-toto.io/attestation/vulns/"
	types := []string{vulns + "v0.1", vulns + "v0.2", vulns + "*", "https://many.example/*", "none"}
	for _, f.PredicateType = range types {
		for _, f.Predicate = range []string{"", "test:1", "test:*", vulns + "v0.2"} {
			for _, f.Identity = range []string{"", "x"} {
				for _, f.Commit = range []string{"", fmt.Sprintf("%040x", 1)} {
					for _, f.Status = range []ledger.Status{"", ledger.Recorded} {
						list(fmt.Sprintf("attestations %+v", f), func(ctx context.Context, q Query) (string, error) {
							f.Query = q
							return next(s.Attestations(ctx, "acme", "api", f))
						})
						f.Query = Query{}
					}
				}
			}
		}
	}
}

func listCommits(s *Store, list listFunc) {
	f := CommitFilter{}
	for _, f.State = range []*ledger.State{nil, new(ledger.Draft), new(ledger.Attested)} {
		for _, f.Branch = range []string{"", "busy", "none"} {
			for _, f.Author = range []string{"", "Ann", "ann@example.com", "none"} {
				for _, f.InFlight = range []bool{false, true} {
					for _, f.Standing = range []bool{false, true} {
						list(fmt.Sprintf("commits %+v", f), func(ctx context.Context, q Query) (string, error) {
							f.Query = q
							return next(s.Commits(ctx, "acme", "api", f))
						})
						f.Query = Query{}
					}
				}
			}
		}
	}

	for _, f = range []CommitFilter{{Text: "nowhere"}, {Text: "busy"}, {Text: "nowhere", Author: "Ann"},
		{Text: "nowhere", Branch: "busy", State: new(ledger.Draft)}, {Text: "nowhere", InFlight: true}} {
		list(fmt.Sprintf("commits %+v", f), func(ctx context.Context, q Query) (string, error) {
			f.Query = q
			return next(s.Commits(ctx, "acme", "api", f))
		})
	}
	list("commits from the middle", func(ctx context.Context, q Query) (string, error) {
		q.Cursor = cmp.Or(q.Cursor, cursor(manyRows/2))
		return next(s.Commits(ctx, "acme", "api", CommitFilter{Query: q, Standing: true}))
	})
	// The oldest tip may overlap with all others.
	for _, n := range []int{1, manyRows / 2, manyRows} {
		list(fmt.Sprint("commit ", n), func(ctx context.Context, _ Query) (string, error) {
			_, err := s.Commit(ctx, "acme", "api", fmt.Sprintf("%040x", n))
			return "", err
		})
	}
}

func listEvents(s *Store, list listFunc) {
	types := ledger.EventTypes()
	f := EventFilter{}
	for i := range 1 << len(types) {
		f.Types = nil
		for bit, kind := range types {
			if i>>bit&1 == 1 {
				f.Types = append(f.Types, kind)
			}
		}
		for _, f.Repo = range []string{"", "api", "web"} {
			for _, f.Descending = range []bool{false, true} {
				list(fmt.Sprintf("events %+v", f), func(ctx context.Context, q Query) (string, error) {
					f.Query = q
					return next(s.Events(ctx, "acme", f))
				})
				f.Query = Query{}
			}
		}
	}
}

func listViolations(s *Store, list listFunc) {
	f := ViolationFilter{}
	for _, f.Repo = range []string{"", "api", "web"} {
		for _, f.Commit = range []string{"", fmt.Sprintf("%040x", 1), fmt.Sprintf("%040x", 2)} {
			if f.Commit != "" && f.Repo != "api" {
				continue
			}
			for _, f.Predicate = range []string{"", "test:1", "test:90000", "none"} {
				for _, f.Status = range []ledger.ViolationStatus{"", ledger.ViolationOpen, ledger.ViolationClosed} {
					list(fmt.Sprintf("violations %+v", f), func(ctx context.Context, q Query) (string, error) {
						f.Query = q
						return next(s.Violations(ctx, "acme", f))
					})
					f.Query = Query{}
				}
			}
		}
	}
}

// listEnvironments lists environments of many repos and of one repo, with many deployments,
// commits and violations. Afterwards, the commits are as before.
func listEnvironments(t *testing.T, s *Store, list listFunc) {
	t.Helper()
	run := func(script string) {
		t.Helper()
		check(t, s.write(t.Context(), "", func(t *tx) error { return t.Run(script) }))
	}
	run(`
UPDATE predicates SET name = 'deploy:x' WHERE id = 7;
INSERT INTO environments (predicate_id, repo_id, org_id, latest_id) SELECT id, 1, 1, id FROM predicates;
INSERT INTO environments (predicate_id, repo_id, org_id, latest_id) SELECT 7, id, 2, id FROM repos WHERE id > 2;
INSERT INTO environments (predicate_id, repo_id, org_id, latest_id) VALUES (7, 2, 1, 1);
INSERT INTO deployments (repo_id, predicate_id, commit_id, attestation_id, required, ended_id)
  SELECT 1, 7, id, id, 1, id % 2 FROM commits;
UPDATE environments SET latest_id = 1000000 WHERE repo_id = 1 AND predicate_id < 70;
UPDATE commits SET state = 3`)
	for _, org := range []string{"acme", "crowd"} {
		for _, repo := range []string{"", "api", "web", "r1"} {
			if repo != "" && (repo == "r1") != (org == "crowd") {
				continue
			}
			for _, name := range []string{"", "x", "none"} {
				list(fmt.Sprintf("environments of %s/%s %s", org, repo, name), func(ctx context.Context, q Query) (string, error) {
					return next(s.Environments(ctx, org, EnvironmentFilter{Query: q, Repo: repo, Name: name}))
				})
			}
		}
	}

	run("UPDATE commits SET state = 0; UPDATE predicates SET name = 'test:7' WHERE id = 7")
	s.caches.evictRows()
}

// listSearch searches for what is found in many rows, or in none.
func listSearch(t *testing.T, s *Store, list listFunc) {
	t.Helper()
	for _, org := range []string{"acme", "crowd"} {
		for _, text := range []string{
			"nothing like it", "busy", "Ann", "x", "test:1", "r1", "0000000", fmt.Sprintf("%040x", 500), "sha256:0000000",
			"sha256:" + strings.Repeat("0", 64), "att_00000000000000000000000000", "evt_00000000000000000000000000",
		} {
			q, err := search.Parse(text)
			check(t, err)
			list(fmt.Sprintf("search in %s for %q", org, text), func(ctx context.Context, page Query) (string, error) {
				found, err := s.Search(ctx, org, SearchQuery{Query: q, Limit: page.Limit, Cursor: page.Cursor, IsAdmin: true})
				return found.NextCursor, err
			})
		}
	}
}

func listInsights(s *Store, list listFunc) {
	for org, repos := range map[string][]string{"acme": {"", "api", "web"}, "crowd": {"", "r1"}} {
		for _, repo := range repos {
			list(fmt.Sprintf("insights of %s/%s", org, repo), func(ctx context.Context, _ Query) (string, error) {
				_, err := s.Insights(ctx, org, repo, 365*60) // since the first row
				return "", err
			})
		}
	}
}

// listAttention lists what needs attention if everything does, and overviews of many repos.
// Afterwards, the commits are as before.
func listAttention(t *testing.T, s *Store, list listFunc) {
	t.Helper()
	run := func(script string) {
		t.Helper()
		check(t, s.write(t.Context(), "", func(t *tx) error { return t.Run(script) }))
	}
	soon := s.Now().Add(time.Hour)
	run(fmt.Sprintf(`
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
UPDATE exceptions SET ends_at = %[2]d + attestation_id`, s.Now(), soon))
	s.caches.evictRows()
	for _, org := range []string{"acme", "crowd"} {
		for _, repo := range []string{"", "api"} {
			if repo != "" && org == "crowd" {
				continue
			}
			list(fmt.Sprintf("attention of %s/%s", org, repo), func(ctx context.Context, q Query) (string, error) {
				l, err := s.Attention(ctx, org, AttentionFilter{Query: q, Repo: repo, Admin: true})
				return l.NextCursor, err
			})
		}
		for _, sort := range ledger.OverviewSorts() {
			for _, name := range []string{"", "r9999", "none"} {
				list(fmt.Sprintf("overview of %s by %s %s", org, sort, name), func(ctx context.Context, q Query) (string, error) {
					v, err := s.Overview(ctx, org, OverviewFilter{Query: q, Sort: sort, Name: name})
					return v.NextCursor, err
				})
			}
		}
	}

	run(`
DELETE FROM policies WHERE repo_id > 2;
UPDATE commits SET state = 0, failing_since = 0, expires = 0, branch = 'busy';
DELETE FROM repo_states WHERE state = 2;
UPDATE tips SET level = 0;
UPDATE overlaps SET level = 1;
UPDATE webhooks SET active = 1;
UPDATE exceptions SET ends_at = 4102444800000 + attestation_id`)
	s.caches.evictRows()
}

func listExceptions(s *Store, list listFunc) {
	f := ExceptionFilter{}
	for _, f.Commit = range []string{"", fmt.Sprintf("%040x", 1), fmt.Sprintf("%040x", 500)} {
		for _, f.Active = range []bool{false, true} {
			list(fmt.Sprintf("exceptions %+v", f), func(ctx context.Context, q Query) (string, error) {
				f.Query = q
				return next(s.Exceptions(ctx, "acme", "api", f))
			})
			f.Query = Query{}
		}
	}
}

func listRadar(s *Store, list listFunc) {
	f := RadarFilter{}
	for _, f.Level = range []radar.Level{radar.NoLevel, radar.Low, radar.Medium, radar.High} {
		for _, f.Commit = range []string{"", fmt.Sprintf("%040x", 1), fmt.Sprintf("%040x", 500)} {
			for _, f.Branch = range []string{"", "busy", "none"} {
				list(fmt.Sprintf("radar %+v", f), func(ctx context.Context, q Query) (string, error) {
					f.Query = q
					return next(s.Overlaps(ctx, "acme", "api", f))
				})
				f.Query = Query{}
			}
		}
	}
}

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
	position, err := f.keys(3)
	check(t, err)
	_, err = read(t.Context(), s, byOrg("acme"), func(rd reader) (struct{}, error) {
		d, err := rd.deriverOf("acme", "api")
		check(t, err)
		pairs, end, err := rd.lister(d).pairs(f, position)
		if list = pairs; end != nil {
			next = cursor(end...)
		}
		return struct{}{}, err
	})
	check(t, err)
	return list, next
}
