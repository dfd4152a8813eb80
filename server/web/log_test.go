package web_test

import (
	"database/sql"
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// testOrigin is the origin of acme's log.
const testOrigin = "ledger.test/v1/orgs/acme/log"

// A logKey signs the log of acme.
type logKey struct {
	note.Signer
	vkey string
}

// beginLog creates the key of acme's log.
func (e *env) beginLog() logKey {
	e.t.Helper()
	skey, vkey, err := note.GenerateKey(nil, testOrigin)
	must.OK(e.t, err)
	signer := must.Get(note.NewSigner(skey))(e.t)
	l, err := e.db.Log(e.t.Context(), "acme", 0)
	must.OK(e.t, err)
	must.OK(e.t, e.db.BeginOrigin(e.t.Context(), l, testOrigin, vkey))
	return logKey{signer, vkey}
}

// signLog signs the present size of acme's log, and returns it.
func (e *env) signLog(key logKey) int64 {
	e.t.Helper()
	ctx := e.t.Context()
	l, err := e.db.Log(ctx, "acme", 0)
	must.OK(e.t, err)
	root, err := e.db.Root(ctx, l, l.Leaves)
	must.OK(e.t, err)
	signed, err := proof.Checkpoint{Origin: testOrigin, Size: l.Leaves, Root: root}.Sign(key)
	must.OK(e.t, err)
	must.OK(e.t, e.db.SaveCheckpoint(ctx, l, l.Leaves, signed))
	return l.Leaves
}

// The page of a log shows whether it is signed, how far, by which key, and who may read it.
func TestLogPage(t *testing.T) {
	e := newEnv(t)
	w, admin := e.signIn(e.reader), e.signIn(e.admin)
	const path = "/orgs/acme/log"
	w.get("/orgs/acme").want(200).has("Log").hasNot("not signed")
	w.get(path).want(200).has("not signed", "Events 7", "Checkpoint none", "Readable by tokens of acme", "No witnesses",
		"ledgerd verify repo acme/REPO", "No checkpoint yet").hasNot("--log-public", "Origin", "Epoch", "Signed checkpoint")
	admin.get(path).want(200).has("ledgerd org update acme --log-public")

	ci := e.signer("cn=ci,ou=build,o=acme")
	e.attest(ci, commitID(0), "test:go", ledger.Pass)
	w.get(path).want(200).has("not signed", "No checkpoint yet.", "base_url")
	key := e.beginLog()
	size := e.signLog(key)
	w.get(path).want(200).has("Transparency log signed", fmt.Sprintf("Events %d", size),
		fmt.Sprintf("Checkpoint %d events, signed ", size), "Origin "+testOrigin, "Key "+key.vkey,
		"Signed checkpoint As it was signed. "+testOrigin+fmt.Sprintf(" %d ", size), "— "+testOrigin+" ",
		"curl -H \"Authorization: Bearer $LEDGERD_TOKEN\" $LEDGERD_URL/v1/orgs/acme/log/checkpoint > acme.checkpoint",
		"ledgerd check --database ledger.db").hasNot("not in it", "No checkpoint yet")

	e.attest(ci, commitID(1), "test:go", ledger.Pass)
	l, err := e.db.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	w.get(path).want(200).has(fmt.Sprintf("%d newer events are not in it", l.Leaves-size))
	_, err = e.host.ChangeOrg(t.Context(), "acme", ledger.OrgChange{LogPublic: new(true)})
	must.OK(t, err)
	admin.get(path).want(200).has("Readable by everybody").hasNot("--log-public", "tokens of acme")
}

// Both pages say why a log is not signed, in a text that nobody can format.
func TestLogPageHasTheProblem(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(0), "test:go", ledger.Pass)
	e.signLog(e.beginLog())
	e.problem = "its key <b>is missing</b>"
	w.get("/orgs/acme/log").want(200).has("Transparency log not signed",
		"The log is not signed: its key <b>is missing</b>", "A log that is not signed").hasNot("Transparency log signed")
	w.get("/orgs/acme").want(200).has("The transparency log is not signed: its key <b>is missing</b>")
}

func TestLogPageListsWitnesses(t *testing.T) {
	e := newEnv(t)
	ci := e.signer("cn=ci,ou=build,o=acme")
	e.attest(ci, commitID(0), "test:go", ledger.Pass)
	size := e.signLog(e.beginLog())
	now := e.clock.time()
	e.witnesses = []ledger.LogWitness{
		{Name: "good", Key: "good+1", Size: size, CosignedAt: now},
		{Name: "late", Key: "late+1", Size: size - 1, CosignedAt: now, Error: "connection refused", FailedAt: now},
		{Name: "never", Key: "never+1"},
		{Name: "ahead", Key: "ahead+1", Size: size + 7, CosignedAt: now},
	}
	at := now.Std().Format("2 Jan 2006 15:04") + " UTC"
	e.signIn(e.reader).get("/orgs/acme/log").want(200).has(
		fmt.Sprintf("good %d events none %s ok", size, at),
		fmt.Sprintf("late %d events 1 event %s failed connection refused %s", size-1, at, at),
		fmt.Sprintf("never nothing since the start of the server %d events – –", size),
		fmt.Sprintf("ahead %d events none", size+7),
	).hasNot("No witnesses")
}

// The page of a log that is being built shows how far it is.
func TestLogPageShowsTheBuilding(t *testing.T) {
	e := newEnv(t)
	e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(0), "test:go", ledger.Pass)
	l, err := e.db.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	e.sql("UPDATE orgs SET log_built = 1")
	w := e.signIn(e.reader) // which is an event
	w.get("/orgs/acme/log").want(200).has("Transparency log being built",
		fmt.Sprintf("1 of %d events are done", l.Leaves+1)).hasNot("No checkpoint yet")

	// A second epoch: its files are below its number.
	e.sql("UPDATE orgs SET log_built = -1; UPDATE logs SET epoch = 2, first_seq = 1; UPDATE orgs SET log_first = 1")
	e.signIn(e.reader).get("/orgs/acme/log").want(200).has("Epoch 2", "after the first 1 of the org",
		"/v1/orgs/acme/log/2/checkpoint > acme.checkpoint")
}

// sql changes the database as somebody on the host could.
func (e *env) sql(statements string) {
	e.t.Helper()
	db, err := sql.Open("sqlite", "file:"+e.database)
	must.OK(e.t, err)
	defer db.Close()
	_, err = db.ExecContext(e.t.Context(), statements)
	must.OK(e.t, err)
}
