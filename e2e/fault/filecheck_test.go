package fault_test

import (
	"context"
	"database/sql"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/e2e/internal/filecheck"
	"github.com/ledgerd/ledgerd/e2e/internal/load"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// newLedger returns a database that a server has written under load, and the notes of its
// clients.
func newLedger(t *testing.T) (database string, notes []filecheck.Note) {
	t.Helper()
	database = filepath.Join(t.TempDir(), "ledger.db")
	l, err := load.New(t.Context(), database)
	must.OK(t, err)
	defer l.Close()

	settings := config.Default()
	settings.Database, settings.Listen = config.Database(database), "127.0.0.1:0"
	settings.Webhooks.AllowedNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	server, err := service.Start(t.Context(), settings, &service.Log{Logger: slog.New(slog.DiscardHandler)})
	must.OK(t, err)
	f, err := l.Follow(t.Context(), server.URL)
	must.OK(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- l.Run(ctx, server.URL, 4, time.Millisecond) }()
	for len(kinds(l.Book.Notes())) < 4 || l.Book.Count(filecheck.Confirmed) < 300 {
		select {
		case err := <-ran:
			t.Fatalf("the load has ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	stop()
	must.OK(t, <-ran)

	n, err := l.Delivered(t.Context(), server.URL, f, time.Minute)
	must.OK(t, err)
	f.Close()
	must.OK(t, server.Stop(0, time.Minute))
	t.Logf("%d confirmed, %d refused, %d events", l.Book.Count(filecheck.Confirmed), l.Book.Count(filecheck.Refused), n)
	return database, l.Book.Notes()
}

// kinds counts the confirmed notes of each kind.
func kinds(notes []filecheck.Note) map[filecheck.Kind]int {
	n := make(map[filecheck.Kind]int)
	for _, note := range notes {
		if note.Outcome == filecheck.Confirmed {
			n[note.Kind]++
		}
	}
	return n
}

// Some ways to damage a database so that SQLite itself finds nothing wrong.
var damages = []struct{ name, statements, problem string }{
	{"a confirmed record is deleted, with all that belongs to it", `
		PRAGMA foreign_keys = OFF; DELETE FROM attestations WHERE id = (SELECT max(id) FROM attestations)`,
		"was confirmed, but is not recorded"},
	{"the content of a record is changed", `
		UPDATE attestations SET status = 'warn' WHERE id = (SELECT min(id) FROM attestations)`, "status is warn"},
	{"an envelope is changed", `
		UPDATE envelopes SET body = CAST(body || ' ' AS BLOB) WHERE attestation_id = 1`,
		"content is"},
	{"a payload is changed", `
		UPDATE envelopes SET payload = CAST(payload || ' ' AS BLOB) WHERE attestation_id = 1`,
		"has no envelope, or another payload"},
	{"a registration is lost", `
		UPDATE commits SET message = '' WHERE id = (SELECT max(id) FROM commits WHERE message <> '')`,
		"was confirmed, but is not recorded"},
	{"a branch is lost", `UPDATE commits SET branch = '' WHERE id = (SELECT max(id) FROM commits WHERE message <> '')`,
		"branch is "},
	{"a policy version is lost", `DELETE FROM policies WHERE version > 1`, "has the active version"},
	{"a policy is changed", `
		UPDATE policies SET contract = CAST(contract || ' ' AS BLOB) WHERE version > 1`, "content is"},
	{"a webhook is lost", `UPDATE webhooks SET deleted_at = 1, active = 0`, "was confirmed, but is not recorded"},
	{"an event is lost", `
		PRAGMA foreign_keys = OFF; DELETE FROM events WHERE seq = 20`, "events are numbered from"},
	{"the last event is lost", `
		PRAGMA foreign_keys = OFF; DELETE FROM events WHERE id = (SELECT max(id) FROM events)`, "events are numbered from"},
	{"two events are swapped", `
		UPDATE events SET event_id = event_id || 'x' WHERE seq = 20;
		UPDATE events SET event_id = (SELECT event_id FROM events WHERE seq = 21) WHERE seq = 20`, "does not ascend"},
	{"an event has another body", `
		UPDATE events SET body = (SELECT body FROM events WHERE seq = 1) WHERE seq = 2`, "has the body of"},
	{"a row refers to nothing", `
		PRAGMA foreign_keys = OFF; DELETE FROM signers WHERE id = 1`, "foreign_key_check"},
	{"a commit's chain of attestations is cut", `UPDATE commits SET newest = 0`, "has the newest attestation 0"},
	{"an attestation is out of the chain", `UPDATE attestations SET previous = 0`, "has the previous one 0"},
	{"evidence is not the latest", `
		UPDATE latest SET attestation_id = 1 WHERE attestation_id <> 1`, "latest of commit"},
	{"evidence is left out", `
		DELETE FROM latest WHERE attestation_id = (SELECT max(attestation_id) FROM latest)`, "latest of commit"},
	{"the counter of a repo", `UPDATE repos SET attestations = attestations + 1`, "attestations, has"},
	{"the counter of a predicate", `UPDATE predicates SET attestations = attestations + 1`, "predicate "},
	{"the counter of a commit", `UPDATE commits SET attestations = attestations + 1`, "attestations, has"},
	{"the counter of a state", `UPDATE repo_states SET commits = commits + 1`, "the count of commits in state"},
	{"the counter of events", `UPDATE orgs SET next_seq = next_seq + 1`, "the next number is"},
	{"a transition is changed", `
		UPDATE transitions SET from_state = 4 WHERE event = (SELECT max(event) FROM transitions WHERE from_state = 1)`,
		"but the commit was in"},
	{"the last transition is lost", `DELETE FROM transitions WHERE event = (SELECT max(event) FROM transitions)`,
		"its transitions end in"},
	{"a transition has no cause", `UPDATE transitions SET cause_id = 'att_none' WHERE cause_type = 'attestation'`,
		"which is not recorded"},
	{"a transition differs from its event", `
		UPDATE events SET body = CAST(replace(CAST(body AS TEXT), '"to":"VALIDATING"', '"to":"DEPLOYED"') AS BLOB)
		WHERE type = 'state'`,
		"has no transition, or another one"},
	{"a transition has no event", `
		UPDATE transitions SET event = (SELECT min(id) FROM events WHERE type = 'attestation') WHERE event =
		  (SELECT max(event) FROM transitions)`, "has no event"},
	{"a policy has no event", `
		UPDATE events SET body = CAST(replace(CAST(body AS TEXT), '"version":', '"version_":') AS BLOB)
		WHERE type = 'policy'`,
		"of the policy has 0 events"},
	{"what expires is not settled then", `DELETE FROM backlog WHERE kind = 'expire'`,
		"it is not planned to settle it then"},
	{"a delivery is lost", `DELETE FROM outbox WHERE event = (SELECT max(event) FROM outbox)`, "has no delivery of event"},
	{"a delivery nobody asked for", `
		UPDATE webhooks SET events = 8`, "to which it does not subscribe"},
	{"a delivery that is neither pending nor ended", `UPDATE outbox SET due_at = 0, ended_at = 0`, "is succeeded, with"},
	{"an attempt is lost", `DELETE FROM attempts`, "attempts"},
	{"the event types of a repo", `UPDATE repos SET webhook_events = 63 - webhook_events`, "has the event types"},
	{"two tips of a branch", `UPDATE tips SET flight = 1`, "tips in flight"},
}

// hasAttested reports whether a commit is ATTESTED or PROMOTABLE.
func hasAttested(t *testing.T, database string) (has bool) {
	t.Helper()
	db := must.Get(sql.Open("sqlite", database))(t)
	defer db.Close()
	must.OK(t, db.QueryRow("SELECT EXISTS (SELECT 1 FROM commits WHERE state IN (2, 3))").Scan(&has))
	return has
}

func TestDamagesAreFound(t *testing.T) {
	testenv.Need(t, "python3")
	database, notes := newLedger(t)
	problemsOf := func(file string, notes []filecheck.Note) string {
		t.Helper()
		problems, err := filecheck.Check(t.Context(), file, notes, time.Now)
		must.OK(t, err)
		return strings.Join(problems, "\n")
	}
	if got := problemsOf(database, notes); got != "" {
		t.Fatalf("an intact database has these problems:\n%s", got)
	}

	damaged := func(t *testing.T, statements string) string {
		t.Helper()
		content := must.Read(t, database)
		file := filepath.Join(t.TempDir(), "damaged.db")
		must.OK(t, os.WriteFile(file, content, 0o600))
		db, err := sql.Open("sqlite", file)
		must.OK(t, err)
		_, err = db.Exec(statements)
		must.OK(t, err)
		must.OK(t, db.Close())
		return file
	}
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			if got := problemsOf(damaged(t, d.statements), notes); !strings.Contains(got, d.problem) {
				t.Errorf("got the problems\n%s\nwant %q", got, d.problem)
			}
		})
	}

	t.Run("a block of the file", func(t *testing.T) {
		file := damaged(t, "")
		content := must.Read(t, file)
		copy(content[len(content)/2:], make([]byte, 4096))
		must.OK(t, os.WriteFile(file, content, 0o600))
		if got := problemsOf(file, notes); got == "" {
			t.Error("no problem was found")
		}
	})
	t.Run("a state that does not follow", func(t *testing.T) {
		if !hasAttested(t, database) {
			t.Skip("the load is random, and has taken no commit to ATTESTED this time")
		}
		file := damaged(t, `
			UPDATE attestations SET status = 'fail' WHERE commit_id = (SELECT min(id) FROM commits WHERE state IN (2, 3))`)
		if got := problemsOf(file, nil); !strings.Contains(got, "but its evidence makes it") {
			t.Errorf("got the problems\n%s", got)
		}
	})
	t.Run("a refused record", func(t *testing.T) {
		for i, n := range notes {
			if n.Outcome != filecheck.Confirmed {
				continue
			}
			changed := append([]filecheck.Note{}, notes...)
			changed[i].Outcome = filecheck.Refused
			if got := problemsOf(database, changed); !strings.Contains(got, "was refused, but is recorded") {
				t.Errorf("%s: got the problems\n%s", n.Kind, got)
			}
			if n.Kind == filecheck.Attestation {
				break
			}
		}
	})
	t.Run("the order of answers", func(t *testing.T) {
		changed := append([]filecheck.Note{}, notes...)
		for i := range changed {
			changed[i].Sent, changed[i].Answered = -changed[i].Answered, -changed[i].Sent
		}
		if got := problemsOf(database, changed); !strings.Contains(got, "which was answered before it was sent") {
			t.Errorf("got the problems\n%s", got)
		}
	})
}
