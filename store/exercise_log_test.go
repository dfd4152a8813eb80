package store_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store"
)

func (e *exerciser) log() {
	t, ctx := e.t, e.t.Context()
	must.OK(t, e.BuildLogsOnce(ctx))
	e.ok(e.LogsToSign(ctx, false, "", 10))
	logs, err := e.LogsToSign(ctx, true, "", 10)
	must.OK(t, err)
	l := logs[0]
	must.OK(t, e.BeginOrigin(ctx, l, "ledger.example.com/v1/orgs/acme/log", "key"))
	e.ok(e.Root(ctx, l, l.Leaves))
	e.ok(e.LogRoots(ctx))
	e.ok(e.Consistency(ctx, l, 300, l.Leaves))
	must.OK(t, e.SaveCheckpoint(ctx, l, l.Leaves, []byte("signed")))

	e.ok(e.LogsSigned(ctx, e.Now().Add(-time.Minute), "", 10))

	l, err = e.Log(ctx, l.Org, 0)
	must.OK(t, err)
	e.ok(e.Log(ctx, l.Org, 1))
	for _, level := range []int{proof.Entries, 0} {
		e.ok(e.Tile(ctx, l, proof.Tile{Level: level, N: 0, Width: proof.TileWidth}))
	}
	recheck, err := e.Recheck(ctx, 1, 0)
	must.OK(t, err)
	if recheck.Commits == 0 || recheck.Last == 0 {
		t.Errorf("got %+v, want commits", recheck)
	}
	event, err := e.Events(ctx, l.Org, store.EventFilter{Query: store.Query{Limit: 1}})
	must.OK(t, err)
	e.ok(e.EventProof(ctx, l.Org, idIn(t, event.Data[0])))
	e.ok(e.SaltedEvents(ctx, l.Org, store.EventFilter{Query: store.Query{Limit: 1}}))
	e.receipts(l)
	e.ok(e.Event(ctx, l.Org, idIn(t, event.Data[0])))
	e.ok(e.BeginEpoch(ctx, l, l.Epoch+1, ledger.KeyEvent{Previous: &ledger.PreviousLog{}}))
}

// receipts decides about a commit, and announces a key of receipts.
func (e *exerciser) receipts(l store.Log) {
	t, ctx := e.t, e.t.Context()
	key := store.ReceiptKey{Key: "k1", PublicKey: []byte("key"), NotAfter: e.Now().Add(time.Hour)}
	must.OK(t, e.AnnounceReceiptKey(ctx, l.Org, l.Epoch, key))
	keys, err := e.ReceiptKeys(ctx, l.Org)
	must.OK(t, err)
	if len(keys) != 1 {
		t.Fatalf("%d keys", len(keys))
	}

	if _, err := e.Announcement(ctx, l.Org, keys[0]); codeOf(err) != ledger.CodeNotInCheckpoint {
		t.Errorf("the announcement: %v", err)
	}
	l, err = e.Log(ctx, l.Org, 0)
	must.OK(t, err)
	must.OK(t, e.SaveCheckpoint(ctx, l, l.Leaves, []byte("signed")))
	e.ok(e.Announcement(ctx, l.Org, keys[0]))

	attested := store.CommitFilter{Query: store.Query{Limit: 10}, State: new(ledger.Attested)}
	commits, err := e.Commits(ctx, l.Org, "api", attested)
	must.OK(t, err)
	if len(commits.Data) == 0 {
		t.Fatal("no commit is ATTESTED")
	}
	for _, c := range commits.Data {
		e.ok(e.Decide(ctx, store.DecisionQuery{Org: l.Org, Repo: "api", Commit: c.SHA, Validity: time.Hour}))
	}
}

// codeOf returns the code of an error; empty if it is not one of the ledger.
func codeOf(err error) ledger.Code {
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		return e.Code
	}
	return ""
}

// restored records that the database was restored, and looks where its history was cut back.
func (e *exerciser) restored() {
	t, ctx := e.t, e.t.Context()
	orgs, err := e.NoteRestore(ctx)
	must.OK(t, err)
	for _, org := range orgs {
		tail, err := e.Tail(ctx, org.Org)
		must.OK(t, err)
		lost := "evt_" + ulid.MustNew(uint64(org.At)+1, bytes.NewReader(make([]byte, 10))).String()
		cut, ok, err := tail.Cut(ctx, lost)
		must.OK(t, err)
		if !ok || cut.Seq != org.Events {
			t.Errorf("the history of %s is cut back at %d, %v; want %d", org.Org, cut.Seq, ok, org.Events)
		}
	}
}

// idIn returns the ID in the body of an event.
func idIn(t testing.TB, body jsontext.Value) string {
	t.Helper()
	var event struct {
		ID string `json:"id"`
	}
	must.OK(t, json.Unmarshal(body, &event))
	return event.ID
}
