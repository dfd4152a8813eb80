package server

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// signLog signs the present size of acme's log. The first call begins its origin.
func (b *backend) signLog() []byte {
	b.t.Helper()
	const origin = "ledger.test/v1/orgs/acme/log"
	skey, vkey, err := note.GenerateKey(nil, origin)
	must.OK(b.t, err)
	key := must.Get(note.NewSigner(skey))(b.t)
	ctx := b.t.Context()
	l, err := b.store.Log(ctx, "acme", 0)
	must.OK(b.t, err)
	must.OK(b.t, b.store.BeginOrigin(ctx, l, origin, vkey))
	root, err := b.store.Root(ctx, l, l.Leaves)
	must.OK(b.t, err)
	signed, err := proof.Checkpoint{Origin: origin, Size: l.Leaves, Root: root}.Sign(key)
	must.OK(b.t, err)
	must.OK(b.t, b.store.SaveCheckpoint(ctx, l, l.Leaves, signed))
	return signed
}

// anonymous sends a request without a token.
func (b *backend) anonymous(method, path string) response {
	b.t.Helper()
	return b.send(request{method: method, path: path})
}

// logFiles are files of acme's log, in which one event is.
var logFiles = []string{"checkpoint", "tile/0/000.p/1", "tile/entries/000.p/1"}

// A public log can be read without a token, and nothing else can.
func TestPublicLog(t *testing.T) {
	b := newBackend(t)
	s := b.signer("cn=build,ou=ci,o=acme")
	a := decode[ledger.AttestationRecord](b.attest(s.statement(t, commitID(1), "test:go", ledger.Pass, 0)).want(201))
	b.host("POST", "/v1/orgs", `{"name":"other"}`).want(201)
	signed := b.signLog()
	const log = "/v1/orgs/acme/log/"
	private := func() {
		t.Helper()
		for _, file := range logFiles {
			b.anonymous("GET", log+file).wantProblem(401, ledger.CodeUnauthenticated)
			got := b.get(log + file).want(200)
			if !strings.HasPrefix(got.header.Get("Cache-Control"), "private, ") {
				t.Errorf("%s has Cache-Control %q", file, got.header.Get("Cache-Control"))
			}
		}
	}

	private()
	if org := decode[ledger.Org](b.get("/v1/orgs/acme").want(200)); org.LogPublic {
		t.Error("a new org's log is public")
	}
	changed := decode[ledger.Org](b.patch("/v1/orgs/acme", `{"log_public":true}`).want(200))
	if org := decode[ledger.Org](b.get("/v1/orgs/acme").want(200)); !org.LogPublic || !reflect.DeepEqual(org, changed) {
		t.Errorf("the response to the change is %+v, and the org %+v", changed, org)
	}
	if l := decode[ledger.Log](b.get("/v1/orgs/acme/log").want(200)); !l.Public {
		t.Errorf("the log is %+v", l)
	}
	for _, file := range logFiles {
		got := b.anonymous("GET", log+file).want(200)
		if !strings.HasPrefix(got.header.Get("Cache-Control"), "public, ") {
			t.Errorf("%s has Cache-Control %q", file, got.header.Get("Cache-Control"))
		}
		if file == "checkpoint" && string(got.body) != string(signed) {
			t.Errorf("the checkpoint is %q", got.body)
		}
		b.anonymous("HEAD", log+file).want(200)
	}
	b.onlyLogIsPublic(a)

	// A change of nothing changes nothing.
	if org := decode[ledger.Org](b.patch("/v1/orgs/acme", `{}`).want(200)); !org.LogPublic {
		t.Errorf("after a change of nothing: %+v", org)
	}
	b.patch("/v1/orgs/acme", `{"log_public":false}`).want(200)
	private()
}

// onlyLogIsPublic checks that callers without a valid token get nothing but the files of
// acme's log.
func (b *backend) onlyLogIsPublic(a ledger.AttestationRecord) {
	b.t.Helper()
	for _, rt := range b.server.routes() {
		path := strings.NewReplacer(":org", "acme", ":repo", "api", ":sha", a.Commit, "events/:id", "events/"+a.Event,
			":id", a.ID).Replace(rt.pattern)
		if rt.scope != public && rt.kind != ofPublicLog {
			b.anonymous(rt.method, path).wantProblem(401, ledger.CodeUnauthenticated)
		}
	}
	b.anonymous("GET", "/v1/orgs/other/log/checkpoint").wantProblem(401, ledger.CodeUnauthenticated)
	b.anonymous("GET", "/v1/orgs/nobody/log/checkpoint").wantProblem(401, ledger.CodeUnauthenticated)
	b.anonymous("GET", "/v1/orgs/acme/log/2/checkpoint").wantProblem(404, ledger.CodeNotFound)
	b.anonymous("GET", "/v1/orgs/acme/log/key").wantProblem(404, ledger.CodeNotFound)

	// A token that is not valid is an error, as everywhere.
	b.send(request{method: "GET", path: "/v1/orgs/acme/log/checkpoint", token: "ldg_no"}).
		wantProblem(401, ledger.CodeUnauthenticated)
	b.send(request{method: "GET", path: "/v1/orgs/acme/log/checkpoint", token: b.token("other", "admin")}).
		wantProblem(403, ledger.CodeForbidden)
}

func TestOrgChangesAreChecked(t *testing.T) {
	b := newBackend(t)
	b.patch("/v1/orgs/acme", `{"log_public":"yes"}`).wantProblem(400, ledger.CodeInvalidJSON)
	b.patch("/v1/orgs/acme", `{"names":"x"}`).wantFields(400, ledger.CodeUnknownField, "names")
	b.host("PATCH", "/v1/orgs/nobody", `{"log_public":true}`).wantProblem(404, ledger.CodeNotFound)
	b.host("PATCH", "/v1/orgs/nobody", `{}`).wantProblem(404, ledger.CodeNotFound)
	b.host("POST", "/v1/orgs", `{"name":"other"}`).want(201)
	b.patch("/v1/orgs/acme", `{"log_public":true}`).want(200)
	if org := decode[ledger.Org](b.host("GET", "/v1/orgs/other", "").want(200)); org.LogPublic {
		t.Error("a change of acme changed other")
	}
}

// Callers without a token share the concurrent reads of one token, so they keep out nobody
// who has one.
func TestReadsOfPublicLogsAreLimited(t *testing.T) {
	b := newBackend(t)
	s := b.signer("cn=build,ou=ci,o=acme")
	b.attest(s.statement(t, commitID(1), "test:go", ledger.Pass, 0)).want(201)
	b.signLog()
	b.patch("/v1/orgs/acme", `{"log_public":true}`).want(200)
	slots := b.server.budgets.reads.Lease("")
	must.OK(t, slots.Grow(t.Context(), readsPerToken()))

	const path = "/v1/orgs/acme/log/checkpoint"
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r := must.Get(http.NewRequestWithContext(ctx, "GET", b.url+path, nil))(t)
	if resp, err := b.stream.Do(r); err == nil {
		resp.Body.Close()
		t.Errorf("a read without a token has status %d while its reads are in use", resp.StatusCode)
	}
	b.get(path).want(200)
	slots.Release()
	b.anonymous("GET", path).want(200)
}
