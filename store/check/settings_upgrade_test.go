package check_test

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// newFields are the fields of audit events that earlier releases do not log, by the kind of resource; "" is any.
var newFields = map[string][]string{
	"":        {"secret_digest", "session_digest", "credential_digest", "fields_version", "member"},
	"session": {"scope", "auth_time"},
}

// asBefore makes a database one of the release before, whose audit events have fewer fields.
func asBefore(t testing.TB, db *sql.DB) {
	t.Helper()
	bodies := make(map[int64][]byte)
	rows, err := db.Query("SELECT id, body FROM events WHERE type = 'audit'")
	must.OK(t, err)
	for rows.Next() {
		var id int64
		var body []byte
		must.OK(t, rows.Scan(&id, &body))
		bodies[id] = body
	}
	must.OK(t, rows.Err())

	for id, body := range bodies {
		var e ledger.AuditEvent
		must.OK(t, json.Unmarshal(body, &e))
		kind, _, _ := strings.Cut(string(e.Action), ".")
		e.Changes = slices.DeleteFunc(e.Changes, func(c ledger.AuditChange) bool {
			return kind != "passkey" && slices.Contains(newFields[""], c.Field) || c.Field == "credential_digest" ||
				slices.Contains(newFields[kind], c.Field)
		})
		body = ledger.Render(e)
		var salt proof.Salt
		rand.Read(salt[:])
		leaf := proof.HashBody(salt, body)
		_, err := db.Exec("UPDATE events SET body = ?, salt = ?, leaf = ? WHERE id = ?", body, salt[:], leaf[:], id)
		must.OK(t, err)
	}
	_, err = db.Exec("UPDATE orgs SET unlogged_settings = 'repo:0'")
	must.OK(t, err)
}

// logged opens a database as a server does, which logs what is not logged.
func (d database) logged(t testing.TB) database {
	t.Helper()
	s := must.Get(store.Open(t.Context(), d.path, store.Options{Providers: storetest.Providers()}))(t)
	must.OK(t, s.BuildLogsOnce(t.Context()))
	must.OK(t, s.Close())
	return d
}

// report checks a database.
func (d database) report(t testing.TB) check.Report {
	t.Helper()
	report, err := check.Run(t.Context(), d.path, check.Options{})
	must.OK(t, err)
	return report
}

// manyTokens inserts tokens that are older than audit events.
func manyTokens(n int) func(testing.TB, *sql.DB) {
	return run(fmt.Sprintf(`
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
INSERT INTO tokens (token_id, org_id, name, permission, hash, created_at, expires_at)
SELECT 'tok_' || n, 1, 'token ' || n, 2, randomblob(32), 1, 0 FROM numbers`, n))
}

// pastSignIn inserts a sign-in that has expired, which is not logged.
const pastSignIn = `
INSERT INTO tokens (token_id, org_id, name, permission, hash, created_at, expires_at, is_sign_in)
VALUES ('tok_past', 1, 'past', 2, randomblob(32), 1, 2, 1)`

// After an upgrade, access and settings are not checked until the server has logged them, in several writes.
func TestSettingsAreLoggedAfterAnUpgrade(t *testing.T) {
	before := newSettings(t).copy(t, asBefore).copy(t, run(pastSignIn)).copy(t, manyTokens(120))
	report := before.report(t)
	if report.Found > 0 || report.Complete {
		t.Errorf("before it is logged, the report is %+v", report)
	}

	after := before.logged(t)
	report = after.report(t)
	if report.Found > 0 || !report.Complete {
		t.Errorf("after it is logged, the report is %+v", report)
	}
	if again := after.logged(t).report(t); again.Events != report.Events {
		t.Errorf("there were %d events, and after another start there are %d", report.Events, again.Events)
	}
	for _, test := range settingsChanges {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if report := after.copy(t, run(test.statement)).report(t); report.Found == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

// What was changed before an upgrade is found if events before have other values, and so is a row that is logged
// by a trick: somebody who changes a database can also say that its rows are not logged.
func TestSettingsAreNotLoggedAgain(t *testing.T) {
	const isLate = ": it says what there was before an upgrade, and there was an event about all of that before: the " +
		"server was made to log rows again"
	forged := settingsChanges[0].statement
	before := newSettings(t).copy(t, asBefore)
	for _, test := range []struct {
		name, statement string
		from            database
		want            []string
	}{
		{"another scope before the upgrade", `UPDATE tokens SET permission = 4 WHERE name = 'reader'`, before, []string{
			`: before an upgrade it had scope "admin", as event `, `and by the events before that it was "read"`}},
		{"no expiry before the upgrade", `UPDATE tokens SET expires_at = 0 WHERE name = 'short'`, before, []string{
			": before an upgrade it had expires_at none, as event "}},
		{"refs before the upgrade", `UPDATE exchange_rules SET rule = replace(rule, '["main"]', '["*"]')`, before,
			[]string{`: before an upgrade it had refs ["*"], as event `}},
		{"an end before the upgrade", `UPDATE tokens SET revoked_at = 0 WHERE name = 'revoked'`, before,
			[]string{": it says what there was before an upgrade, and the resource had ended by the events before"}},
		{"a row that is logged after all others", forged + "; UPDATE orgs SET unlogged_settings = 'token:0'",
			newSettings(t).copy(t, asBefore).logged(t), []string{isLate}},
		{"all rows that are logged again", forged + "; UPDATE orgs SET unlogged_settings = 'repo:0'",
			newSettings(t).copy(t, asBefore).logged(t), []string{"token tok_x: it is in force, and no event says"}},
		{"a row that is logged in a new org", forged + "; UPDATE orgs SET unlogged_settings = 'token:0'",
			newSettings(t), []string{isLate}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lines := test.from.copy(t, run(test.statement)).logged(t).problems(t)
			if !slices.ContainsFunc(lines, func(line string) bool { return containsAll(line, test.want) }) {
				t.Errorf("got the problems\n%s\nwant %q", strings.Join(lines, "\n"), test.want)
			}
		})
	}

	silenced := before.copy(t, run(forged+"; UPDATE orgs SET unlogged_settings = ''")).logged(t)
	if report := silenced.report(t); report.Complete {
		t.Errorf("rows are said to be logged and are not, and the report is %+v", report)
	}
}

// An org that was deleted and restored, and one that was purged, have what the events say.
func TestSettingsOfDeletedOrgs(t *testing.T) {
	for _, isPurged := range []bool{false, true} {
		d := newSettings(t)
		s := must.Get(store.Open(t.Context(), d.path, store.Options{Providers: storetest.Providers()}))(t)
		must.OK(t, s.DeleteOrg(t.Context(), "acme"))
		if isPurged {
			must.OK(t, s.PurgeOrg(t.Context(), "~1"))
			must.OK(t, s.Settle(t.Context()))
			must.OK(t, s.Prune(t.Context()))
		} else {
			_, err := s.ChangeOrg(t.Context(), "~1", ledger.OrgChange{Name: new("acme")})
			must.OK(t, err)
		}
		must.OK(t, s.Close())

		if lines := d.problems(t); len(lines) > 0 {
			t.Errorf("purged %t: the problems are\n%s", isPurged, strings.Join(lines, "\n"))
		}
		lines := d.copy(t, run("UPDATE tokens SET revoked_at = 0 WHERE name = 'reader'")).problems(t)
		if len(lines) != 1 || !strings.Contains(lines[0], "it is in force, and it had ended") {
			t.Errorf("purged %t: with a token that is active again, the problems are %q", isPurged, lines)
		}
	}
}
