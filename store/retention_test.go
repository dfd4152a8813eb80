package store_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store"
)

// keep sets how long the repo keeps what it has recorded.
func (l *timeline) keep(c ledger.RetentionChange) {
	l.t.Helper()
	_, err := l.ChangeRepo(l.t.Context(), "acme", "api", ledger.RepoChange{Retention: &c})
	must.OK(l.t, err)
}

func days(n int) *ledger.Duration { return new(ledger.Duration(time.Duration(n) * day)) }

// addHook adds a webhook that gets attestations.
func (l *timeline) addHook() outbound.Webhook {
	l.t.Helper()
	hook, err := l.CreateWebhook(l.t.Context(), "acme", "api", outbound.NewWebhook{
		URL: "https://hooks.example.com/", Events: []ledger.EventType{ledger.EventAttestation},
	}, "whsec_secret")
	must.OK(l.t, err)
	return hook
}

// wantKept checks the error of a read of what is kept, or was pruned.
func (l *timeline) wantKept(err error, isKept bool) {
	l.t.Helper()
	if isPruned := codeOf(err) == ledger.CodePruned; isKept && err != nil || !isKept && !isPruned {
		l.t.Errorf("the error is %v, want one that says it was pruned: %v", err, !isKept)
	}
}

// wantEnvelope checks that an envelope is kept, or that it was pruned.
func (l *timeline) wantEnvelope(a ledger.AttestationRecord, isKept bool) {
	l.t.Helper()
	_, err := l.Envelope(l.t.Context(), "acme", "api", a.ID)
	l.wantKept(err, isKept)
}

// wantEvent checks that the body of an event is kept, or that it was pruned, and that its leaf is in
// the log.
func (l *timeline) wantEvent(id string, isKept bool) {
	l.t.Helper()
	_, err := l.Event(l.t.Context(), "acme", id)
	l.wantKept(err, isKept)
}

// decide decides about a commit, with a checkpoint of all events.
func (l *timeline) decide(commit int) store.Decision {
	l.t.Helper()
	log, err := l.Log(l.t.Context(), "acme", 0)
	must.OK(l.t, err)
	must.OK(l.t, l.SaveCheckpoint(l.t.Context(), log, log.Leaves, []byte("signed")))
	d, err := l.Decide(l.t.Context(), store.DecisionQuery{
		Org: "acme", Repo: "api", Commit: sha(commit), State: new(ledger.Attested), Validity: time.Hour,
	})
	must.OK(l.t, err)
	return d
}

// What is pruned keeps its record, its digests and its place in the log.
func TestRetentionPrunesEnvelopesAndEvents(t *testing.T) {
	l := newTimeline(t)
	old := l.attest(1, "test:go")
	before, decided := l.commit(1), l.decide(1)
	l.keep(ledger.RetentionChange{Envelopes: days(2), Events: days(4)})
	log, err := l.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	root, err := l.Root(t.Context(), log, log.Leaves)
	must.OK(t, err)

	l.pass(2*day - time.Minute)
	l.wantEnvelope(old, true)
	l.pass(2 * time.Minute)
	l.wantEnvelope(old, false)
	l.wantEvent(old.Event, true)
	fresh := l.attest(2, "test:go")
	l.pass(2*day + time.Minute)
	l.wantEvent(old.Event, false)
	l.wantEvent(fresh.Event, true)
	l.wantEnvelope(fresh, false)

	if after := l.decide(1); fmt.Sprint(after.Evidence) != fmt.Sprint(decided.Evidence) || len(after.Evidence) == 0 {
		t.Errorf("a receipt has the evidence %v after pruning, want %v", after.Evidence, decided.Evidence)
	}
	if after := l.commit(1); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the commit is\n%v\nafter pruning, want\n%v", after, before)
	}
	kept, err := l.Attestation(t.Context(), "acme", "api", old.ID)
	must.OK(t, err)
	if kept.PayloadDigest != old.PayloadDigest || kept.Event != old.Event || !kept.Verification.EnvelopePruned {
		t.Errorf("the record of the attestation is %+v after pruning, want %+v", kept, old)
	}
	if now, err := l.Root(t.Context(), log, log.Leaves); err != nil || now != root {
		t.Errorf("the root of the log is %v (%v) after pruning, want %v", now, err, root)
	}
	log, err = l.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	_, err = l.Tile(t.Context(), log, proof.Tile{Level: proof.Entries, Width: int(log.Size)})
	must.OK(t, err)
}

// Lists and streams leave out pruned events. Policies and other events that states follow from are
// never pruned.
func TestPrunedEventsAreNotListed(t *testing.T) {
	l := newTimeline(t)
	l.promote(1)
	l.keep(ledger.RetentionChange{Events: days(1)})
	all := store.EventFilter{Query: store.Query{Limit: 100}, Types: ledger.EventTypes()}
	list := func() []jsontext.Value {
		page, err := l.Events(t.Context(), "acme", all)
		return wholeList(t, page, err)
	}
	before := list()
	l.pass(day + time.Minute)
	after := list()

	wantLeft := 0
	for _, body := range before {
		var e struct {
			Type ledger.EventType `json:"type"`
			ID   string           `json:"id"`
		}
		must.OK(t, ledger.DecodeOpen(body, &e))
		l.wantEvent(e.ID, !e.Type.IsPrunable())
		if !e.Type.IsPrunable() {
			wantLeft++
		}
	}
	if len(after) != wantLeft || wantLeft == 0 || wantLeft == len(before) {
		t.Errorf("%d of %d events are listed after pruning, want %d", len(after), len(before), wantLeft)
	}
}

// A repo without a retention keeps everything, and one whose retention ends keeps the rest.
func TestRetentionCanBeRemoved(t *testing.T) {
	l := newTimeline(t)
	first := l.attest(1, "test:go")
	l.pass(5000 * day)
	l.wantEnvelope(first, true)
	l.wantEvent(first.Event, true)

	second := l.attest(2, "test:go")
	l.keep(ledger.RetentionChange{Envelopes: days(1)})
	l.settle()
	l.wantEnvelope(first, false)
	l.keep(ledger.RetentionChange{Envelopes: days(0)})
	l.pass(10 * day)
	l.wantEnvelope(second, true)
}

// A webhook's log of deliveries is kept as long as the repo keeps it, if that is shorter than the
// server does. Events stay until then.
func TestRetentionOfDeliveries(t *testing.T) {
	l := newTimeline(t)
	hook := l.addHook()
	a := l.attest(1, "test:go")
	deliveries := func() int {
		list, err := l.Deliveries(t.Context(), "acme", "api", hook.ID, store.DeliveryFilter{Query: store.Query{Limit: 10}})
		return len(wholeList(t, list, err))
	}

	l.keep(ledger.RetentionChange{Events: days(1), Deliveries: days(3)})
	l.pass(10 * day)
	if deliveries() != 1 {
		t.Error("a pending delivery was pruned")
	}
	l.wantEvent(a.Event, true)

	_, due, err := l.Claim(t.Context(), hook.ID, 10, time.Minute)
	must.OK(t, err)
	must.OK(t, l.RecordOutcomes(t.Context(), []outbound.Outcome{{
		Webhook: hook.ID, Delivery: due[0].ID, Status: outbound.DeliverySucceeded, Tries: due[0].Tries, Lease: due[0].Lease,
	}}, 0))
	l.pass(3*day - time.Minute)
	if deliveries() != 1 {
		t.Error("a delivery was pruned too early")
	}
	l.wantEvent(a.Event, true)
	l.pass(2 * time.Minute)
	if deliveries() != 0 {
		t.Error("an old delivery was not pruned")
	}
	l.pass(time.Minute)
	l.wantEvent(a.Event, false)
}

// A purge prunes what can be, of a deleted repo. It cannot be undone.
func TestPurge(t *testing.T) {
	l, ctx := newTimeline(t), t.Context()
	a := l.attest(1, "test:go")
	l.wantCode(l.PurgeRepo(ctx, "acme", "api"), ledger.CodeNotDeleted)
	l.wantCode(l.PurgeOrg(ctx, "acme"), ledger.CodeNotDeleted)
	must.OK(t, l.DeleteRepo(ctx, "acme", "api"))
	must.OK(t, l.PurgeRepo(ctx, "acme", "~1"))
	must.OK(t, l.PurgeRepo(ctx, "acme", "~1"))
	l.pass(time.Second)

	_, err := l.Envelope(ctx, "acme", "~1", a.ID)
	l.wantKept(err, false)
	l.wantEvent(a.Event, false)
	_, err = l.Attestation(ctx, "acme", "~1", a.ID)
	must.OK(t, err)
	_, err = l.ChangeRepo(ctx, "acme", "~1", ledger.RepoChange{Name: new("api")})
	l.wantCode(err, ledger.CodeArchived)

	must.OK(t, l.DeleteOrg(ctx, "acme"))
	must.OK(t, l.PurgeOrg(ctx, "~1"))
	_, err = l.ChangeOrg(ctx, "~1", ledger.OrgChange{Name: new("acme")})
	l.wantCode(err, ledger.CodeArchived)
}

func (l *timeline) wantCode(err error, want ledger.Code) {
	l.t.Helper()
	if got := codeOf(err); got != want {
		l.t.Errorf("the error is %v, want code %s", err, want)
	}
}

// A repo with more than one write prunes is pruned completely, in order.
func TestManyAttestationsArePruned(t *testing.T) {
	l := newTimeline(t)
	var list []ledger.AttestationRecord
	for i := range 250 {
		list = append(list, l.attest(i%50, fmt.Sprint("test:", i)))
	}
	l.keep(ledger.RetentionChange{Envelopes: days(1), Events: days(1)})
	l.pass(day + time.Minute)
	for _, a := range list {
		l.wantEnvelope(a, false)
		l.wantEvent(a.Event, false)
	}
}

// A purge prunes all, even what has times that are ahead because the clock was wrong.
func TestPurgeAfterAWrongClock(t *testing.T) {
	l, ctx := newTimeline(t), t.Context()
	l.wall = l.wall.Add(5 * time.Hour)
	l.restart()
	a := l.attest(1, "test:go")
	l.wall = l.wall.Add(-5 * time.Hour)
	l.restart()
	l.accept()
	must.OK(t, l.DeleteRepo(ctx, "acme", "api"))
	must.OK(t, l.PurgeRepo(ctx, "acme", "~1"))
	l.pass(time.Second)
	_, err := l.Envelope(ctx, "acme", "~1", a.ID)
	l.wantKept(err, false)
	l.wantEvent(a.Event, false)
}

// Events keep their order: one that is still delivered keeps those after it. A webhook that was
// deleted keeps none, and gets none without its body.
func TestPruningWaitsForDeliveries(t *testing.T) {
	l, ctx := newTimeline(t), t.Context()
	first := l.attest(1, "test:go")
	hook := l.addHook()
	second, later := l.attest(2, "test:go"), l.attest(3, "test:go")
	l.keep(ledger.RetentionChange{Events: days(1)})
	l.pass(day + time.Minute)
	l.wantEvent(first.Event, false)
	l.wantEvent(second.Event, true)
	l.wantEvent(later.Event, true)

	must.OK(t, l.DeleteWebhook(ctx, "acme", "api", hook.ID))
	l.pass(time.Minute)
	l.wantEvent(second.Event, false)
	l.wantEvent(later.Event, false)
}

// Events of the radar are pruned, and those of other repos of the org are not.
func TestRetentionIsOfOneRepo(t *testing.T) {
	l, ctx := newTimeline(t), t.Context()
	_, err := l.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "web"}, "host")
	must.OK(t, err)
	l.promote(1)
	must.OK(t, l.Close())
	db, err := sql.Open("sqlite", "file:"+l.path)
	must.OK(t, err)
	defer db.Close()
	_, err = db.Exec(`
INSERT INTO events (id, org_id, seq, event_id, type, repo_id, at, body, salt, leaf)
SELECT id + 1000 * n, org_id, (SELECT max(seq) FROM events) + n, event_id || n, 'radar', n, at, body, salt, leaf
FROM events, (SELECT 1 AS n UNION ALL SELECT 2) WHERE id = (SELECT min(id) FROM events WHERE repo_id = 1);
UPDATE orgs SET next_seq = next_seq + 2`)
	must.OK(t, err)
	l.open()

	l.keep(ledger.RetentionChange{Events: days(1)})
	l.pass(day + time.Minute)
	var left string
	must.OK(t, db.QueryRow(`
SELECT string_agg(repo_id || ':' || (length(body) > 0), ' ' ORDER BY repo_id) FROM events WHERE type = 'radar'`).
		Scan(&left))
	if left != "1:0 2:1" {
		t.Errorf("the events of the radar have bodies: %s, want 1:0 2:1", left)
	}
}

// All that is due is pruned, however many steps that takes.
func TestAllThatIsOverIsPruned(t *testing.T) {
	for name, keep := range map[string]ledger.RetentionChange{
		"envelopes": {Envelopes: days(1)}, "events": {Events: days(1)},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTimeline(t)
			var newest ledger.AttestationRecord
			for i := range 250 {
				newest = l.attest(i%50, fmt.Sprint("test:", i))
			}
			l.keep(keep)
			l.wall, l.monotonic = l.wall.Add(2*day), l.monotonic+2*day
			must.OK(t, l.Settle(t.Context()))
			l.wantEnvelope(newest, keep.Envelopes == nil)
			l.wantEvent(newest.Event, keep.Events == nil)
		})
	}
}

// A job that prunes has its next turn when the first that is left is too old, and not before a minute has passed.
func TestPruningWaits(t *testing.T) {
	l := newTimeline(t)
	l.keep(ledger.RetentionChange{Envelopes: days(1)})
	l.wantTurn(day + time.Millisecond)
	for range 2 {
		l.attest(1, "test:go")
		l.wall, l.monotonic = l.wall.Add(time.Second), l.monotonic+time.Second
	}
	l.keep(ledger.RetentionChange{Envelopes: days(2)})
	l.wantTurn(2*day + time.Millisecond - 2*time.Second)
	l.wall, l.monotonic = l.wall.Add(2*day-time.Second), l.monotonic+2*day-time.Second
	l.wantTurn(time.Minute)
	l.keep(ledger.RetentionChange{Envelopes: new(ledger.Duration)})
	l.wantTurn(0)
}

// wantTurn checks after which time the envelopes are pruned again; 0: never.
func (l *timeline) wantTurn(want time.Duration) {
	l.t.Helper()
	must.OK(l.t, l.Settle(l.t.Context()))
	db := must.Get(sql.Open("sqlite", "file:"+l.path))(l.t)
	defer db.Close()
	var at sql.NullInt64
	must.OK(l.t, db.QueryRow("SELECT max(not_before) FROM backlog WHERE kind = 'prune' AND ref = 1").Scan(&at))
	if got := ledger.Time(at.Int64).Sub(l.Now()); at.Valid != (want > 0) || at.Valid && got != want {
		l.t.Errorf("the next turn is after %v (%v), want %v", got, at.Valid, want)
	}
}

// What is as old as the retention is kept, and what is older is not.
func TestRetentionLimit(t *testing.T) {
	l := newTimeline(t)
	l.keep(ledger.RetentionChange{Envelopes: days(1), Events: days(1)})
	a := l.attest(1, "test:go")
	for i, passes := range []time.Duration{day, time.Minute} {
		l.wall, l.monotonic = l.wall.Add(passes), l.monotonic+passes
		isKept := i == 0
		must.OK(t, l.Settle(t.Context()))
		l.wantEnvelope(a, isKept)
		l.wantEvent(a.Event, isKept)
	}
}

// The body of an event that has no leaf in the log yet is kept: the leaf needs it.
func TestRetentionKeepsEventsWithoutALeaf(t *testing.T) {
	l := newTimeline(t)
	a := l.attest(1, "test:go")
	must.OK(t, l.Close())
	db, err := sql.Open("sqlite", "file:"+l.path)
	must.OK(t, err)
	_, err = db.Exec("UPDATE events SET leaf = NULL, salt = NULL WHERE event_id = '" + a.Event + "'")
	must.OK(t, err)
	must.OK(t, db.Close())
	l.open()
	l.keep(ledger.RetentionChange{Events: days(1)})
	l.pass(day + time.Minute)
	l.wantEvent(a.Event, true)
}

// A purge of an org prunes all its repos, deletes their webhooks, and is recorded once. A repo that
// was purged before keeps its time.
func TestPurgeOfAnOrg(t *testing.T) {
	l, ctx := newTimeline(t), t.Context()
	a := l.attest(1, "test:go")
	l.addHook()
	_, err := l.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "web"}, "host")
	must.OK(t, err)
	must.OK(t, l.DeleteRepo(ctx, "acme", "web"))
	must.OK(t, l.PurgeRepo(ctx, "acme", "~2"))
	must.OK(t, l.PurgeRepo(ctx, "acme", "~2"))
	before, err := l.Repo(ctx, "acme", "~2")
	must.OK(t, err)

	l.pass(time.Minute)
	must.OK(t, l.DeleteOrg(ctx, "acme"))
	must.OK(t, l.PurgeOrg(ctx, "~1"))
	must.OK(t, l.PurgeOrg(ctx, "~1"))
	l.pass(time.Second)
	_, err = l.Envelope(ctx, "~1", "api", a.ID)
	l.wantKept(err, false)
	_, err = l.Event(ctx, "~1", a.Event)
	l.wantKept(err, false)
	after, err := l.Repo(ctx, "~1", "~2")
	must.OK(t, err)
	if after.PurgedAt != before.PurgedAt || before.PurgedAt == 0 {
		t.Errorf("the repo was purged at %s, want %s", after.PurgedAt, before.PurgedAt)
	}

	hooks, err := l.Webhooks(ctx, "~1", "api", store.Query{Limit: 10})
	if list := wholeList(t, hooks, err); len(list) > 0 {
		t.Errorf("the repo has %d webhooks after the purge", len(list))
	}
	for _, action := range []ledger.AuditAction{ledger.AuditRepoPurged, ledger.AuditOrgPurged} {
		list, err := l.Audits(ctx, "~1", store.AuditFilter{Query: store.Query{Limit: 100}, Action: action})
		if purges := wholeList(t, list, err); len(purges) != 1 {
			t.Errorf("%d times %s is recorded, want 1: %s", len(purges), action, purges)
		}
	}
}
