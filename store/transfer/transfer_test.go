package transfer_test

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/store/transfer"
)

// unpack writes the database of schema version 5 to a new folder, and returns its path.
func unpack(t *testing.T) (path string) {
	t.Helper()
	packed := must.Get(os.Open("../testdata/v5.db.gz"))(t)
	defer packed.Close()
	text := must.Get(gzip.NewReader(packed))(t)
	database := must.Get(io.ReadAll(text))(t)
	path = filepath.Join(t.TempDir(), "ledger.db")
	must.OK(t, os.WriteFile(path, database, 0o600))
	return path
}

// newFile returns a file with the fixture, with more repos, and with values that are easily lost.
func newFile(t *testing.T, repos int) (path string) {
	t.Helper()
	path = unpack(t)
	s, err := store.Open(t.Context(), path, store.Options{NoCopy: true, Providers: storetest.Providers()})
	must.OK(t, err)
	must.OK(t, s.BuildLogsOnce(t.Context()))
	must.OK(t, s.Settle(t.Context()))
	for i := range repos {
		_, err := s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: fmt.Sprint("Repo-", i)}, "test")
		must.OK(t, err)
	}
	bob := storetest.NewReviewer(t, s, "cn=Bob,ou=people-dev,o=acme")
	bob.Review(s, strings.Repeat("7", 40), bob.Assert)
	must.OK(t, s.CreatePasskeyChallenge(t.Context(), "acme", bob.SignIn, []byte{2}, s.Now().Add(time.Hour)))
	must.OK(t, s.Settle(t.Context()))
	must.OK(t, s.Close())

	execute(t, path,
		"INSERT INTO commit_objects (commit_id, object) VALUES (900001, x''), (900002, x'00ff'), (900003, x'275c')",
		`INSERT INTO expressions (text) VALUES ('Ünïcode "quoted"	tab'), (''), ('\N')`,
		`INSERT INTO used_tokens (org_id, digest, until)
SELECT min(id), x'00', 9223372036854775807 FROM orgs UNION SELECT min(id), x'', -1 FROM orgs`,
		"UPDATE envelopes SET body = randomblob(32), payload = NULL, payload_at = -1 WHERE attestation_id = 1")
	addPeople(t, path)
	return path
}

// addPeople adds a former member, who signed in, with a rule and a draft to a file.
func addPeople(t *testing.T, path string) {
	t.Helper()
	execute(t, path,
		`INSERT INTO members (member_id, org_id, issuer, subject, dn, folded, name, email, role, by_rule, created_at,
  signed_in_at, removed_at)
SELECT 'mem_1', id, 'https://idp.example', 'ann', 'cn=Ann,ou=people-dev,o=acme', 'cn=ann,ou=people-dev,o=acme', 'Änn',
  '', 3, 1, 1, 2, 3 FROM orgs LIMIT 1`,
		`INSERT INTO provider_orgs (issuer, org_id) SELECT 'https://idp.example', id FROM orgs LIMIT 1`,
		`INSERT INTO member_rules (rule_id, org_id, issuer, claim, value, role, dn, created_at, removed_at)
SELECT 'mrl_1', id, 'https://idp.example', 'groups', 'dev', 4, 'cn={sub},ou=people-dev,o=acme', 1, 0 FROM orgs LIMIT 1`,
		`INSERT INTO tokens (token_id, org_id, name, permission, hash, created_at, expires_at, revoked_at, member_id,
  is_sign_in, auth_time, created_by, is_limited)
SELECT 'tok_1', org_id, dn, role, randomblob(32), 1, 9, 3, id, 1, 5, 'host', 1 FROM members WHERE member_id = 'mem_1'`,
		"INSERT INTO token_repos SELECT t.id, r.id FROM tokens t, repos r WHERE t.is_limited = 1 ORDER BY r.id LIMIT 2",
		`INSERT INTO review_drafts (digest, token_id, repo_id, until)
SELECT randomblob(32), t.id, r.id, 9 FROM tokens t, repos r WHERE t.is_sign_in = 1 ORDER BY r.id LIMIT 1`)
}

// execute runs statements in a file.
func execute(t *testing.T, path string, statements ...string) {
	t.Helper()
	db := must.Get(sql.Open("sqlite", path))(t)
	for _, statement := range statements {
		_, err := db.Exec(statement)
		must.OK(t, err)
	}
	must.OK(t, db.Close())
}

// dump returns the rows of all tables of a file as text, sorted.
func dump(t *testing.T, path string) map[string][]string {
	t.Helper()
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	list := func(query string) (values []string) {
		rows, err := db.Query(query)
		must.OK(t, err)
		defer rows.Close()
		for rows.Next() {
			var value string
			must.OK(t, rows.Scan(&value))
			values = append(values, value)
		}
		must.OK(t, rows.Err())
		return values
	}

	tables := make(map[string][]string)
	for _, table := range list("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'") {
		columns := list("SELECT name FROM pragma_table_info('" + table + "') ORDER BY name")
		tables[table] = list("SELECT quote(" + strings.Join(columns, ") || ',' || quote(") + ") AS q FROM " + table +
			" ORDER BY q")
	}
	return tables
}

// try runs a copy.
func try(t *testing.T, from, to string) (transfer.Done, error) {
	t.Helper()
	return transfer.Copy{From: from, To: to}.Run(t.Context())
}

// mustCopy runs a copy that must succeed.
func mustCopy(t *testing.T, from, to string) transfer.Done {
	t.Helper()
	done, err := try(t, from, to)
	must.OK(t, err)
	return done
}

// wantError fails the test unless an error contains a text.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("error is %v, want one with %q", err, want)
	}
}

// freePath returns a path in a new folder.
func freePath(t *testing.T) string { return filepath.Join(t.TempDir(), "copy.db") }

// wantNoFile fails the test if there is a file at a path, or a part of one.
func wantNoFile(t *testing.T, path string) {
	t.Helper()
	names := must.Get(filepath.Glob(path + "*"))(t)
	if names = slices.DeleteFunc(names, func(name string) bool { return name == path+".lock" }); len(names) > 0 {
		t.Errorf("left %v", names)
	}
}

func TestRoundTrip(t *testing.T) {
	cluster := pgtest.Start(t, pgtest.Fast()...)
	first, url, second := newFile(t, 600), cluster.NewDatabase(t), cluster.NewDatabase(t)
	want := dump(t, first)

	steps := make(map[string]bool)
	there, err := transfer.Copy{From: first, To: url, Progress: func(step string, rows int64) {
		steps[step] = true
		if rows <= 0 {
			t.Errorf("%s: %d rows", step, rows)
		}
	}}.Run(t.Context())
	must.OK(t, err)
	if !steps["copying events"] && len(want["events"]) >= 1000 {
		t.Errorf("the progress was %v", steps)
	}
	across, last := mustCopy(t, url, second), freePath(t)
	back := mustCopy(t, second, last)

	got := dump(t, last)
	for _, table := range slices.Sorted(maps.Keys(want)) {
		if !slices.Equal(got[table], want[table]) {
			t.Errorf("%s has other rows: got\n%s\nwant\n%s", table, strings.Join(got[table], "\n"),
				strings.Join(want[table], "\n"))
		}
	}
	for _, table := range []string{
		"members", "member_rules", "provider_orgs", "token_repos", "review_drafts", "passkeys", "passkey_challenges",
	} {
		if len(want[table]) == 0 {
			t.Errorf("the fixture has no rows in %s", table)
		}
	}
	if len(got) != len(want) || len(want["tiles"]) < 3 {
		t.Errorf("got %d tables, want %d; there are %d tiles", len(got), len(want), len(want["tiles"]))
	}
	wantDone(t, want, there, across, back)
	// What no server has added is a problem of the original, too.
	if had, has := problems(t, first), problems(t, last); !slices.Equal(has, had) {
		t.Errorf("the copy has the problems %q, want %q", has, had)
	}
}

// wantDone checks the numbers that copies have reported.
func wantDone(t *testing.T, want map[string][]string, copies ...transfer.Done) {
	t.Helper()
	rows := 0
	for _, table := range want {
		rows += len(table)
	}
	for _, done := range copies {
		if done.Orgs != int64(len(want["orgs"])) || done.Events != int64(len(want["events"])) || done.Rows != int64(rows) ||
			done.Logs != len(want["logs"]) || done.Seconds <= 0 {
			t.Errorf("done is %+v, want %d rows", done, rows)
		}
	}
}

// problems checks a file, to which can be written.
func problems(t *testing.T, path string) []check.Problem {
	t.Helper()
	execute(t, path, "UPDATE envelopes SET payload = NULL WHERE false")
	return must.Get(check.Run(t.Context(), path, check.Options{}))(t).Problems
}

// A ledger goes on in each copy as in the original: sequence numbers, ids and times follow those
// that are there.
func TestCopyGoesOn(t *testing.T) {
	first, url, last := newFile(t, 5), pgtest.Start(t, pgtest.Fast()...).NewDatabase(t), freePath(t)
	mustCopy(t, first, url)
	goOn(t, url, 1)
	mustCopy(t, url, last)
	goOn(t, last, 2)

	seqs := dump(t, last)["orgs"]
	if before := dump(t, first)["orgs"]; slices.Equal(seqs, before) {
		t.Error("nothing was recorded")
	}
}

// goOn records a statement, and checks that its event comes after all others.
func goOn(t *testing.T, database string, n int) {
	t.Helper()
	s := must.Get(store.Open(t.Context(), database, store.Options{}))(t)
	defer s.Close()
	before, err := s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	_, version, err := s.Keyring(t.Context(), "acme")
	must.OK(t, err)

	dn := must.Get(identity.ParseDN("cn=ci,ou=build,o=acme"))(t)
	envelope := fmt.Appendf(nil, "statement %d", n)
	_, created, err := s.Record(t.Context(), "acme", "api", &attestation.Attestation{
		Outcome: attestation.Outcome{Predicate: "test:moved", Result: ledger.Result{Status: ledger.Pass}},
		Commit:  fmt.Sprintf("%040x", n), PredicateType: attestation.ResultPredicateType,
		Signer:        identity.Signer{DN: dn, Identity: "idn_made", Key: sha256.Sum256([]byte("key"))},
		PayloadDigest: sha256.Sum256(envelope), Envelope: envelope,
	}, version)
	must.OK(t, err)
	after, err := s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	if !created || after.Leaves <= before.Leaves {
		t.Errorf("created is %t, the log has %d leaves, before it had %d", created, after.Leaves, before.Leaves)
	}
	_, err = s.Root(t.Context(), after, after.Leaves)
	must.OK(t, err)

	newest, err := s.Events(t.Context(), "acme", store.EventFilter{Query: store.Query{Limit: 500}})
	must.OK(t, err)
	if len(newest.Data) == 0 {
		t.Error("there are no events")
	}
}

func TestRefusals(t *testing.T) {
	cluster := pgtest.Start(t, pgtest.Fast()...)
	file, full, empty := newFile(t, 5), cluster.NewDatabase(t), cluster.NewDatabase(t)
	mustCopy(t, file, full)
	must.OK(t, open(t, empty).Close())
	old, newer := cluster.NewDatabase(t), cluster.NewDatabase(t)
	for url, version := range map[string]string{old: "14", newer: "1000"} {
		must.OK(t, open(t, url).Close())
		must.OK(t, cluster.Exec(t.Context(), url, "UPDATE ledger SET schema_version = "+version))
	}
	foreign := cluster.NewDatabase(t)
	must.OK(t, cluster.Exec(t.Context(), foreign, "CREATE TABLE things (id bigint)"))
	extended := cluster.NewDatabase(t)
	must.OK(t, open(t, extended).Close())
	must.OK(t, cluster.Exec(t.Context(), extended, "ALTER TABLE orgs ADD COLUMN color text"))

	planted := newFile(t, 5)
	execute(t, planted, "CREATE TRIGGER raise AFTER UPDATE ON tokens BEGIN UPDATE tokens SET permission = 4; END")

	for _, test := range []struct{ name, from, to, want string }{
		{"file with a trigger", planted, empty, `trigger "raise" of "tokens" is unknown`},
		{"target with another column", file, extended, `column "color" of "orgs" is unknown`},
		{"full database", file, full, "the target is not empty: its table "},
		{"database without a ledger", cluster.NewDatabase(t), freePath(t), "the database is empty"},
		{"existing file", full, file, "exists already, and is not replaced"},
		{"missing file", freePath(t), empty, "no such file"},
		{"two files", file, freePath(t), "both are files"},
		{"same database", full, full, "the source and the target are the same database"},
		{"same database, empty", empty, empty + "&application_name=other", "are the same database"},
		{"file of an old schema", unpack(t), empty, "schema version 5 is of an earlier release"},
		{"source of no release", old, freePath(t), "schema version 14 is not valid"},
		{"target of no release", file, old, "schema version 14 is not valid"},
		{"source of a newer schema", newer, freePath(t), "schema version 1000 is too new"},
		{"target of a newer schema", file, newer, "schema version 1000 is too new"},
		{"database of another program", file, foreign, "not a database of ledgerd"},
		{"another column", extended, freePath(t), `column "color" of "orgs" is unknown`},
		{"invalid URL", file, "postgres://%zz", "the URL of the database is not valid"},
		{"URL of another engine", file, "mysql://root:secret@localhost/ledger", "mysql://… is not the URL of a PostgreSQL"},
		{"wrong port", "postgres://u:secret@127.0.0.1:1/x", freePath(t), "127.0.0.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := try(t, test.from, test.to)
			wantError(t, err, test.want)
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q has the password", err)
			}
			if !store.IsPostgres(test.to) && test.to != file {
				wantNoFile(t, test.to)
			}
		})
	}
	mustCopy(t, file, empty) // nothing was left in it
}

// open opens a database, which migrates it.
func open(t *testing.T, database string) *store.Store {
	t.Helper()
	return must.Get(store.Open(t.Context(), database, store.Options{}))(t)
}

// PostgreSQL stores neither zero bytes in text nor invalid UTF-8.
func TestTextThatCannotBeStored(t *testing.T) {
	cluster := pgtest.Start(t, pgtest.Fast()...)
	for value, want := range map[string]string{
		"'a' || char(0) || 'b'": "the column message of the row of table commits with id 2: the text has a zero byte",
		"CAST(x'61ff' AS TEXT)": "the column message of the row of table commits with id 2: the text is not valid UTF-8",
	} {
		path, url := newFile(t, 5), cluster.NewDatabase(t)
		execute(t, path, "UPDATE commits SET message = "+value+" WHERE id = 2")
		_, err := try(t, path, url)
		wantError(t, err, want)
		execute(t, path, "UPDATE commits SET message = '' WHERE id = 2")
		mustCopy(t, path, url) // the database is empty
	}
}

// A copy that is stopped leaves nothing.
func TestStoppedCopyLeavesNothing(t *testing.T) {
	cluster := pgtest.Start(t, pgtest.Fast()...)
	path, url, last := newFile(t, 5), cluster.NewDatabase(t), freePath(t)
	execute(t, path, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) "+
		"INSERT INTO expressions (id, text) SELECT 1000 + i, 'signer.ou == ' || i FROM n")
	stop := func(from, to string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := transfer.Copy{From: from, To: to, Progress: func(_ string, rows int64) {
			if rows == 25000 {
				cancel()
			}
		}}.Run(ctx)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("error is %v", err)
		}
	}

	stop(path, url)
	mustCopy(t, path, url)
	stop(url, last)
	wantNoFile(t, last)
	mustCopy(t, url, last)
}

// While a file is copied, a server may write to it: the copy has one moment of it.
func TestCopyNextToServer(t *testing.T) {
	path, url := newFile(t, 5), pgtest.Start(t, pgtest.Fast()...).NewDatabase(t)
	s := open(t, path)
	defer s.Close()
	before, err := s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	wrote := false
	_, err = transfer.Copy{From: path, To: url, Progress: func(string, int64) {
		if !wrote {
			_, err := s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "late"}, "test")
			must.OK(t, err)
			wrote = true
		}
	}}.Run(t.Context())
	must.OK(t, err)

	moved := open(t, url)
	defer moved.Close()
	after, err := moved.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	if after.Leaves != before.Leaves {
		t.Errorf("the copy has %d events, want %d", after.Leaves, before.Leaves)
	}
}
