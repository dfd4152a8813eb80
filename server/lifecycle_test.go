package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// An archived repo can only be read, until it is unarchived.
func TestArchivedRepo(t *testing.T) {
	b := newBackend(t)
	s := b.signer("cn=ci,ou=build,o=acme")
	const repo = "/v1/orgs/acme/repos/api"
	b.attest(s.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)
	version := b.get("/v1/orgs/acme/policies/api").want(200)

	archived := decode[ledger.Repo](b.patch(repo, `{"archived":true}`).want(200))
	if archived.ArchivedAt == 0 || archived.Name != "api" {
		t.Errorf("the archived repo is %+v", archived)
	}
	again := decode[ledger.Repo](b.patch(repo, `{"archived":true}`).want(200))
	if again.ArchivedAt != archived.ArchivedAt {
		t.Errorf("archived again, it is %+v", again)
	}

	refused := func(resp response) { t.Helper(); resp.wantProblem(409, ledger.CodeArchived) }
	refused(b.attest(s.statement(t, commitID(1), "lint:go", ledger.Pass, 1)))
	refused(b.put(commitPath(commitID(2)), `{"branch":"fix"}`))
	refused(b.patch(commitPath(commitID(1)), `{"targets":["main"]}`))
	refused(b.post(commitPath(commitID(1))+"/withdraw", ""))
	refused(b.patch(repo, `{"web_url":"https://github.com/acme/api"}`))
	refused(b.post(repo+"/webhooks", `{"url":"https://ci.example.com/"}`))
	refused(b.send(request{method: "PUT", path: "/v1/orgs/acme/policies/api", token: b.admin, body: `{"requirements":[]}`,
		header: map[string]string{"If-Match": version.header.Get("ETag")}}))
	if record := decode[ledger.Commit](b.get(commitPath(commitID(1))).want(200)); len(record.Attestations) != 1 {
		t.Errorf("the commit has %d attestations, want 1", len(record.Attestations))
	}

	b.patch(repo, `{"archived":false}`).want(200)
	b.attest(s.statement(t, commitID(1), "lint:go", ledger.Pass, 1)).want(201)
	b.send(request{method: "PATCH", path: repo, token: b.writer, body: `{"archived":true}`}).
		wantProblem(403, ledger.CodeForbidden)
}

// A renamed repo has what it had, and requests for its former name say where it is.
func TestRenamedRepo(t *testing.T) {
	b := newBackend(t)
	s := b.signer("cn=ci,ou=build,o=acme")
	b.attest(s.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)
	b.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(201)

	const repo, renamed = "/v1/orgs/acme/repos/api", "/v1/orgs/acme/repos/core"
	b.patch(repo, `{"name":"Web"}`).wantProblem(409, ledger.CodeAlreadyExists)
	b.patch(repo, `{"name":"a/b"}`).wantFields(422, ledger.CodeInvalidField, "name")
	r := decode[ledger.Repo](b.patch(repo, `{"name":"core"}`).want(200))
	if r.Name != "core" || former(r.FormerNames) != "api" || r.Attestations != 1 {
		t.Errorf("the renamed repo is %+v", r)
	}

	for _, path := range []string{repo, repo + "/attestations", "/v1/orgs/acme/policies/api"} {
		p := b.get(path).wantProblem(404, ledger.CodeNotFound)
		if p.Detail != "repo acme/api was renamed to core" {
			t.Errorf("%s: %q", path, p.Detail)
		}
	}
	record := decode[ledger.Commit](b.get(renamed + "/commits/" + commitID(1)).want(200))
	if record.Repo != "core" || len(record.Attestations) != 1 || record.State != ledger.Attested {
		t.Errorf("the commit is %+v", record)
	}
	b.send(request{method: "POST", path: renamed + "/attestations", token: b.writer,
		body: string(s.statement(t, commitID(1), "lint:go", ledger.Pass, 1))}).want(201)

	b.post("/v1/orgs/acme/repos", `{"name":"api"}`).want(201) // the name is free
	if n := decode[ledger.Repo](b.get(repo).want(200)).Attestations; n != 0 {
		t.Errorf("a new repo with the former name has %d attestations", n)
	}
	b.patch(renamed, `{"name":"CORE"}`).want(200) // only the case differs
}

// A deleted repo is in no list, takes nothing, and can be read and restored.
func TestDeletedRepo(t *testing.T) {
	b := newBackend(t)
	s := b.signer("cn=ci,ou=build,o=acme")
	const repo = "/v1/orgs/acme/repos/api"
	b.attest(s.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)
	hook := decode[outbound.Webhook](b.post(repo+"/webhooks", `{"url":"https://ci.example.com/"}`).want(201))

	b.delete(repo).wantFields(400, ledger.CodeInvalidParameter, "confirm")
	b.delete(repo+"?confirm=web").wantFields(400, ledger.CodeInvalidParameter, "confirm")
	b.send(request{method: "DELETE", path: repo + "?confirm=api", token: b.writer}).wantProblem(403, ledger.CodeForbidden)
	b.get(repo).want(200)
	b.delete(repo + "?confirm=api").want(204)

	if p := b.get(repo).wantProblem(404, ledger.CodeNotFound); !strings.Contains(p.Detail, "was deleted") {
		t.Errorf("the deleted repo is %q", p.Detail)
	}
	b.attest(s.statement(t, commitID(1), "lint:go", ledger.Pass, 1)).wantProblem(404, ledger.CodeNotFound)
	for _, list := range []string{"/repos", "/overview", "/attention", "/search?q=api", "/environments", "/violations"} {
		if resp := b.get("/v1/orgs/acme" + list).want(200); strings.Contains(string(resp.body), `"repo":"api"`) ||
			strings.Contains(string(resp.body), `"name":"api"`) {
			t.Errorf("%s has the deleted repo: %s", list, resp.body)
		}
	}

	deleted := decode[ledger.Page[ledger.Repo]](b.get("/v1/orgs/acme/repos?deleted=true").want(200)).Data
	if len(deleted) != 1 || deleted[0].DeletedAt == 0 || former(deleted[0].FormerNames) != "api" {
		t.Fatalf("the deleted repos are %+v", deleted)
	}
	at := "/v1/orgs/acme/repos/" + deleted[0].Name
	b.get(at + "/commits/" + commitID(1)).want(200)
	b.send(request{method: "POST", path: at + "/attestations", token: b.writer,
		body: string(s.statement(t, commitID(1), "lint:go", ledger.Pass, 1))}).want(404)
	b.patch(at, `{"archived":true}`).wantProblem(409, ledger.CodeArchived)
	b.delete(at + "?confirm=" + deleted[0].Name).want(204) // no-op
	if w := decode[outbound.Webhook](b.get(at + "/webhooks/" + hook.ID).want(200)); w.Active || w.DisabledReason == "" {
		t.Errorf("the webhook is %+v", w)
	}

	b.post("/v1/orgs/acme/repos", `{"name":"api"}`).want(201)
	b.patch(at, `{"name":"api"}`).wantProblem(409, ledger.CodeAlreadyExists)
	restored := decode[ledger.Repo](b.patch(at, `{"name":"old-api"}`).want(200))
	if restored.DeletedAt != 0 || restored.Attestations != 1 {
		t.Errorf("the restored repo is %+v", restored)
	}
	b.send(request{method: "POST", path: "/v1/orgs/acme/repos/old-api/attestations", token: b.writer,
		body: string(s.statement(t, commitID(1), "lint:go", ledger.Pass, 1))}).want(201)
}

// Only the administrator of the host renames and deletes orgs. Another org can get the name of
// one that is gone, and nothing of it.
func TestOrgsAreRenamedAndDeleted(t *testing.T) {
	b := newBackend(t)
	s := b.signer("cn=ci,ou=build,o=acme")
	b.attest(s.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)
	b.patch("/v1/orgs/acme", `{"name":"globex"}`).wantProblem(403, ledger.CodeForbidden)
	b.delete("/v1/orgs/acme?confirm=acme").wantProblem(403, ledger.CodeForbidden)
	b.host(http.MethodPatch, "/v1/orgs/acme", `{"name":"Not an org"}`).wantFields(422, ledger.CodeInvalidField, "name")

	b.host(http.MethodPatch, "/v1/orgs/acme", `{"name":"globex"}`).want(200)
	b.get("/v1/orgs/acme/repos").wantProblem(403, ledger.CodeForbidden)
	b.get("/v1/orgs/globex/repos/api").want(200)

	b.host(http.MethodPost, "/v1/orgs", `{"name":"acme"}`).want(201)
	b.host(http.MethodPost, "/v1/orgs/acme/repos", `{"name":"api"}`).want(201)
	b.host(http.MethodPost, "/v1/orgs/acme/repos/api/attestations",
		string(s.statement(t, commitID(1), "test:go", ledger.Pass, 2))).wantProblem(422, ledger.CodeUntrustedIdentity)

	b.host(http.MethodDelete, "/v1/orgs/globex?confirm=globex", "").want(204)
	b.get("/v1/orgs/globex/repos/api").wantProblem(401, ledger.CodeUnauthenticated)
	deleted := decode[ledger.Page[ledger.Org]](b.host(http.MethodGet, "/v1/orgs?deleted=true", "").want(200)).Data
	if len(deleted) != 1 || former(deleted[0].FormerNames) != "acme globex" {
		t.Fatalf("the deleted orgs are %+v", deleted)
	}
	at := "/v1/orgs/" + deleted[0].Name
	log := string(b.host(http.MethodGet, at+"/audit?action=org", "").want(200).body)
	if !strings.Contains(log, `"action":"org.deleted"`) || !strings.Contains(log, `"action":"org.renamed"`) {
		t.Errorf("the administrative actions are %s", log)
	}
	b.host(http.MethodGet, at+"/repos/api/commits/"+commitID(1), "").want(200)
	b.host(http.MethodPatch, at, `{"archived":true}`).wantProblem(409, ledger.CodeArchived)
	b.host(http.MethodPatch, at, `{"name":"globex"}`).want(200)
	b.host(http.MethodGet, "/v1/orgs/globex/repos/api/commits/"+commitID(1), "").want(200)
	b.get("/v1/orgs/globex/repos/api").wantProblem(401, ledger.CodeUnauthenticated) // the tokens stay revoked
}

// The streams of a renamed org go on with its events, and those of a new org with its former name
// have none of them.
func TestStreamsOfARenamedOrg(t *testing.T) {
	b := newBackend(t)
	listeners := map[*listener]string{ // with their orgs
		b.listen("", b.reader, nil):          "globex",
		b.listen("?repo=api", b.reader, nil): "globex",
	}
	b.host(http.MethodPatch, "/v1/orgs/acme", `{"name":"globex"}`).want(200)
	b.host(http.MethodPost, "/v1/orgs", `{"name":"acme"}`).want(201)
	b.host(http.MethodPost, "/v1/orgs/acme/repos", `{"name":"api"}`).want(201)
	admins := map[string]string{"globex": b.admin, "acme": b.token("acme", "admin")}
	for org, token := range admins {
		listeners[b.listenTo(org, "", token, nil)] = org
		listeners[b.listenTo(org, "?repo=api", token, nil)] = org
	}

	const rounds = 3
	for n := range rounds {
		for org, token := range admins {
			b.send(request{method: "PUT", path: "/v1/orgs/" + org + "/policies/api", token: token,
				header: map[string]string{"If-Match": "*"},
				body:   fmt.Sprintf(`{"requirements":[{"state":"ATTESTED","predicate":"test:%d"}]}`, n)}).want(200)
		}
	}
	events := make(map[string][]string) // by org
	for org := range admins {
		history := b.host(http.MethodGet, "/v1/orgs/"+org+"/events?types=policy", "").want(200)
		for _, e := range decode[ledger.Page[ledger.PolicyEvent]](history).Data {
			events[org] = append(events[org], e.ID)
		}
		slices.Sort(events[org])
	}

	for l, org := range listeners {
		var got []string
		for _, m := range l.next(rounds) {
			got = append(got, m.id)
		}
		if want := events[org][len(events[org])-rounds:]; !slices.Equal(got, want) {
			t.Errorf("a stream of %s got %v, want %v", org, got, want)
		}
		if len(l.messages) > 0 {
			t.Errorf("a stream of %s got %v, too", org, <-l.messages)
		}
	}

	// A client of the renamed org that resumes under the former name learns nothing. HEAD has no
	// body, so a stream that is opened by mistake ends.
	b.send(request{method: "HEAD", path: "/v1/orgs/acme/events", token: b.reader,
		header: map[string]string{"Accept": typeEvents}}).want(403)
	b.send(request{method: "HEAD", path: "/v1/orgs/acme/events", token: admins["acme"],
		header: map[string]string{"Accept": typeEvents, "Last-Event-ID": events["globex"][0]}}).want(400)
}

// An archived org can only be read, but its tokens and identities can be revoked.
func TestArchivedOrg(t *testing.T) {
	b := newBackend(t)
	s := b.signer("cn=ci,ou=build,o=acme")
	if o := decode[ledger.Org](b.patch("/v1/orgs/acme", `{"archived":true}`).want(200)); o.ArchivedAt == 0 {
		t.Errorf("the archived org is %+v", o)
	}
	refused := func(resp response) { t.Helper(); resp.wantProblem(409, ledger.CodeArchived) }
	refused(b.attest(s.statement(t, commitID(1), "test:go", ledger.Pass, 1)))
	refused(b.post("/v1/orgs/acme/repos", `{"name":"web"}`))
	refused(b.post("/v1/orgs/acme/tokens", `{"name":"x","scope":"read"}`))
	refused(b.patch("/v1/orgs/acme", `{"log_public":true}`))
	refused(b.patch("/v1/orgs/acme/identities/"+s.id, `{"may":["test:*"]}`))
	b.delete("/v1/orgs/acme/identities/" + s.id).want(204)

	b.patch("/v1/orgs/acme", `{"archived":false}`).want(200)
	b.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
}

// former returns names, separated by spaces.
func former(list []ledger.FormerName) string {
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
	}
	return strings.Join(names, " ")
}

// A repo has a limited number of former names.
func TestFormerNamesAreBounded(t *testing.T) {
	b := newBackend(t)
	names := [2]string{"api", "core"}
	for n := range 100 {
		b.patch("/v1/orgs/acme/repos/"+names[n%2], `{"name":"`+names[(n+1)%2]+`"}`).want(200)
	}
	b.patch("/v1/orgs/acme/repos/api", `{"name":"core"}`).wantProblem(422, ledger.CodeLimitReached)
	b.get("/v1/orgs/acme/repos/api").want(200)
}

// The states of a deleted repo stay as they are. They are derived again when it is restored.
func TestDeletedRepoKeepsItsStates(t *testing.T) {
	b := newBackend(t)
	s := b.signer("cn=ci,ou=build,o=acme")
	version := b.get("/v1/orgs/acme/policies/api").want(200)
	b.send(request{method: "PUT", path: "/v1/orgs/acme/policies/api", token: b.admin,
		body:   `{"requirements":[{"state":"ATTESTED","predicate":"test:go","max_age":"1h"}]}`,
		header: map[string]string{"If-Match": version.header.Get("ETag")}}).want(200)
	b.attest(s.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)
	states := func() (list []string) {
		t.Helper()
		must.OK(t, b.store.Settle(t.Context()))
		page := decode[ledger.Page[ledger.StateEvent]](b.get("/v1/orgs/acme/events?types=state").want(200))
		for _, e := range page.Data {
			list = append(list, e.From.String()+" "+e.To.String()+" "+string(e.Cause.Type))
		}
		return list
	}

	before := states()
	b.delete("/v1/orgs/acme/repos/api?confirm=api").want(204)
	b.clock.advance(2 * time.Hour)
	if after := states(); !slices.Equal(before, after) {
		t.Errorf("while the repo is deleted, its commits move: %q", after[len(before):])
	}
	b.patch("/v1/orgs/acme/repos/~1", `{"name":"api"}`).want(200)
	if after := states(); !slices.Equal(after[len(before):], []string{"PROMOTABLE VALIDATING expiry"}) {
		t.Errorf("after the restore, the commits move: %q", after[len(before):])
	}
}

// Links of artifacts with commits of a deleted repo do not count.
func TestArtifactsOfADeletedRepo(t *testing.T) {
	b := newBackend(t)
	s := b.limited("cn=ci,ou=build,o=acme", builderMay...)
	b.builds(s, 1, image(1))
	if a := b.artifact(image(1)); a.State == nil || !a.Links[0].Counts {
		t.Fatalf("the artifact is %+v", a)
	}
	b.delete("/v1/orgs/acme/repos/api?confirm=api").want(204)
	if a := b.artifact(image(1)); a.State != nil || a.Links[0].Reason != "its repo was deleted" {
		t.Errorf("the artifact of a deleted repo is %+v", a)
	}
}

// Requests for what was pruned get 410, and lists and streams leave it out.
func TestPruned(t *testing.T) {
	b := newBackend(t)
	s := b.signer("cn=ci,ou=build,o=acme")
	const repo = "/v1/orgs/acme/repos/api"
	a := decode[ledger.AttestationRecord](b.attest(s.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201))
	b.patch(repo, `{"retention":{"envelopes":"1h"}}`).wantFields(422, ledger.CodeInvalidField, "retention.envelopes")
	b.patch(repo, `{"retention":{"bodies":"1d"}}`).wantFields(400, ledger.CodeUnknownField, "retention.bodies")
	b.patch(repo, `{"retention":{"envelopes":"1d","events":"1d"}}`).want(200)

	b.clock.advance(25 * time.Hour)
	must.OK(t, b.store.Settle(t.Context()))
	b.get(repo+"/attestations/"+a.ID+"/envelope").wantProblem(410, ledger.CodePruned)
	b.get("/v1/orgs/acme/events/"+a.Event).wantProblem(410, ledger.CodePruned)
	now := decode[ledger.AttestationRecord](b.get(repo + "/attestations/" + a.ID).want(200))
	if now.Event != a.Event || !now.Verification.EnvelopePruned {
		t.Errorf("the record is %+v", now)
	}

	later := decode[ledger.AttestationRecord](b.attest(s.statement(t, commitID(2), "test:go", ledger.Pass, 2)).want(201))
	if m := b.listen("?last_event_id=earliest", b.reader, nil).next(1)[0]; m.id != later.Event {
		t.Errorf("a stream begins with %+v, want the event after those that were pruned, %s", m, later.Event)
	}
	list := decode[ledger.Page[jsontext.Value]](b.get("/v1/orgs/acme/events").want(200)).Data
	if len(list) != 3 || !strings.Contains(string(list[0]), later.Event) {
		t.Errorf("the events are %s, want only those after", list)
	}
}
