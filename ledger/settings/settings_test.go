package settings_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/settings"
)

const now = ledger.Time(1_000_000)

// A recorder adds events to a Replay.
type recorder struct {
	*settings.Replay
	t   testing.TB
	seq int64
}

func newRecorder(t testing.TB, limit int) *recorder {
	r := &recorder{Replay: settings.NewReplay(now, limit), t: t}
	r.add(ledger.AuditOrgCreated, "acme", "", nil, fields("log_public", false, settings.VersionField, 1))
	r.want(settings.Row{Kind: settings.Org, Target: "acme", Fields: fields("log_public", false)})
	return r
}

// add adds an event.
func (r *recorder) add(action ledger.AuditAction, target, repo string, before, after []ledger.Field) {
	r.t.Helper()
	problem := r.Add(r.seq, &ledger.AuditEvent{
		Action: action, Target: target, Repo: repo, Changes: ledger.Changes(before, after), Timestamp: ledger.Time(r.seq),
	})
	if r.seq++; problem != "" {
		r.t.Errorf("event %d: %s", r.seq-1, problem)
	}
}

// want checks the differences of a row.
func (r *recorder) want(row settings.Row, want ...string) {
	r.t.Helper()
	got, isLogged := r.Compare(row)
	if !isLogged || len(got) != len(want) {
		r.t.Fatalf("logged %t: the differences of %s %s are %q, want %q", isLogged, row.Kind, row.Target, got, want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			r.t.Errorf("the difference of %s %s is %q, want %q", row.Kind, row.Target, got[i], want[i])
		}
	}
}

// fields returns fields of names and values.
func fields(list ...any) (fields []ledger.Field) {
	for pair := range slices.Chunk(list, 2) {
		fields = append(fields, ledger.Field{Name: pair[0].(string), Value: pair[1]})
	}
	return fields
}

func tokenRow(target string, list ...any) settings.Row {
	return settings.Row{Kind: settings.Token, Target: target, Fields: fields(list...)}
}

// A token has the repos that it was created for, whatever their names are now.
func TestReposAreFollowed(t *testing.T) {
	r := newRecorder(t, settings.MaxBytes)
	deletion := func(name, number string, at int) {
		r.add(ledger.AuditRepoDeleted, name, name, fields("name", name, "deleted_at", nil),
			fields("name", number, "deleted_at", ledger.Time(at)))
	}
	creation := func() { r.add(ledger.AuditRepoCreated, "web", "web", nil, fields("default_branch", "main")) }
	creation()
	r.add(ledger.AuditTokenCreated, "tok_1", "", nil, fields("repos", []string{"Web"}))
	deletion("web", "~1", 10)
	creation()
	r.add(ledger.AuditTokenCreated, "tok_2", "", nil, fields("repos", []string{"web"}))
	deletion("web", "~2", 11)
	creation()
	r.want(tokenRow("tok_1", "repos", []string{"~1"}))
	r.want(tokenRow("tok_2", "repos", []string{"~2"}))
	r.want(tokenRow("tok_2", "repos", []string{"web"}),
		"the row has repos web, and by the events, the last of which is 5, it is ~2")

	r.add(ledger.AuditRepoRenamed, "site", "site", fields("name", "web", "deleted_at", ledger.Time(11)),
		fields("name", "site", "deleted_at", nil))
	r.add(ledger.AuditRepoRenamed, "shop", "shop", fields("name", "web"), fields("name", "shop"))
	r.add(ledger.AuditRepoRenamed, "web", "web", fields("name", "web", "deleted_at", ledger.Time(10)),
		fields("name", "web", "deleted_at", nil)) // its own name, which is free again
	r.want(tokenRow("tok_1", "repos", []string{"web"}))
	r.want(tokenRow("tok_2", "repos", []string{"site"}))
	r.want(settings.Row{Kind: settings.Repo, Target: "shop", Fields: fields("default_branch", "main", "deleted_at", nil)})
	if missing := r.Missing(100); !slices.Equal(missing, []string{"repo web", "repo site"}) {
		t.Errorf("missing are %q, want the repos of which no row was compared", missing)
	}
}

// Values are compared as a whole, and shown in part.
func TestValues(t *testing.T) {
	long := strings.Repeat("x", 3000)
	repos := make([]string, 50)
	for i := range repos {
		repos[i] = fmt.Sprint(i, strings.Repeat("r", 100))
	}
	odd := "<\"\\\x00\u2028\xff>"
	r := newRecorder(t, settings.MaxBytes)
	r.add(ledger.AuditTokenCreated, "tok", "", nil, fields("name", odd, "where", long, "text", long+long, "repos", repos))
	r.want(tokenRow("tok", "name", odd, "where", long, "text", long+long, "repos", repos, "scope", nil))
	r.want(tokenRow("tok", "where", long+"y"), `has where "xxx`)
	r.want(tokenRow("tok", "text", long+long+"y"), `has text "sha256:`)
	r.want(tokenRow("tok", "scope", ledger.Admin), `scope "admin", and by the events, the last of which is 1, it is none`)
}

// What may be without an event, or without a row.
func TestExceptions(t *testing.T) {
	r := newRecorder(t, settings.MaxBytes)
	for _, past := range []settings.Row{
		{Kind: settings.Session, Target: "tok", Fields: fields("expires_at", now)},
		tokenRow("tok", "rule", "rul_1", "expires_at", now),
	} {
		r.want(past)
		if !past.IsPast(now) || past.IsPast(now-1) {
			t.Errorf("%+v is past %t at its end, want true, and %t before", past, past.IsPast(now), past.IsPast(now-1))
		}
	}
	r.want(tokenRow("tok", "expires_at", now), "no event says that it was created")
	r.want(tokenRow("tok", "rule", "rul_1", "expires_at", now+1), "no event says that it was created")

	r.add(ledger.AuditTokenExchanged, "tok_1", "", nil, fields("rule", "rul_1", "expires_at", now)) // its row is deleted
	r.add(ledger.AuditTokenCreated, "tok_2", "", nil, fields("expires_at", now))                    // gives no access
	r.add(ledger.AuditSessionCreated, "tok_2", "", nil, fields("expires_at", now+1, "session_digest", "x"))
	r.add(ledger.AuditTokenCreated, "tok_3", "", nil, fields("expires_at", now+1))
	if missing := r.Missing(r.seq); !slices.Equal(missing, []string{"token tok_3"}) {
		t.Errorf("missing are %q, want only the token that is in force", missing)
	}
	if missing := r.Missing(r.seq - 1); len(missing) > 0 {
		t.Errorf("missing are %q, and the row may be newer than the check", missing)
	}
}

// Of more resources than fit, nothing is said.
func TestReplayIsBounded(t *testing.T) {
	n := testenv.Pick(20_000, 100_000, 1_000_000)
	limit := n * 30
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := newRecorder(t, limit)
	token := func(i int) []ledger.Field {
		return fields("name", fmt.Sprint("token ", i), "scope", "write", "expires_at", now+1,
			"secret_digest", fmt.Sprintf("sha256:%064d", i))
	}
	for i := range n {
		r.add(ledger.AuditTokenCreated, fmt.Sprintf("tok_%026d", i), "", nil, token(i))
		r.add(ledger.AuditTokenExchanged, fmt.Sprintf("tok_x%025d", i), "", nil, fields("rule", "rul", "expires_at", now))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2*int64(limit) {
		t.Errorf("the events of %d tokens take %d bytes, want at most about %d", n, grown, limit)
	}
	if left := r.Left(); left == 0 || left >= int64(n) {
		t.Errorf("%d events of %d are left out, want some", left, n)
	}

	r.want(tokenRow(fmt.Sprintf("tok_%026d", 0), "scope", "admin"), `has scope "admin"`)
	if got, isLogged := r.Compare(tokenRow(fmt.Sprintf("tok_%026d", n-1), "scope", "admin")); isLogged {
		t.Errorf("the last token was left out, and its differences are %q", got)
	}
}
