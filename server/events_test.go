package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
)

// The history gives every event as the bytes that were rendered once.
func TestEvents(t *testing.T) {
	b := newBench(t)
	b.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	ci := b.signer("cn=ci,ou=build,o=acme")
	record := decode[ledger.AttestationRecord](b.attest(ci.says(t, commitID(1), "test:go", ledger.Pass, 1)).want(201))
	b.setContract(`{"requirements":[]}`)
	b.send(request{method: "POST", path: "/v1/orgs/acme/repos/web/attestations", token: b.writer, body: string(ci.says(t, commitID(2), "test:go", ledger.Fail, 1))}).want(201)

	type event struct {
		ID, Type, Repo, From, To string
	}
	events := func(query string) (told string, ids []string) {
		page := decode[ledger.Page[jsontext.Value]](b.get("/v1/orgs/acme/events" + query).want(200))
		for _, raw := range page.Data {
			var e event
			check(t, ledger.DecodeOpen([]byte(strings.NewReplacer(`"id"`, `"ID"`, `"type"`, `"Type"`, `"repo"`, `"Repo"`, `"from"`, `"From"`, `"to"`, `"To"`).Replace(string(raw))), &e))
			told += fmt.Sprintf("%s %s %s%s; ", e.Repo, e.Type, e.From, e.To)
			ids = append(ids, e.ID)
		}
		return told, ids
	}
	all, ids := events("")
	const want = "api attestation ; api state DRAFTVALIDATING; api state VALIDATINGATTESTED; api policy ; api state ATTESTEDPROMOTABLE; web attestation ; web state DRAFTVALIDATING; "
	if all != want {
		t.Errorf("events\n%s, want\n%s", all, want)
	}
	for query, want := range map[string]string{
		"?types=policy":                     "api policy ; ",
		"?types=attestation,policy":         "api attestation ; api policy ; web attestation ; ",
		"?types=radar":                      "",
		"?repo=web":                         "web attestation ; web state DRAFTVALIDATING; ",
		"?repo=web&types=attestation":       "web attestation ; ",
		"?after=" + ids[4]:                  "web attestation ; web state DRAFTVALIDATING; ",
		"?after=" + ids[4] + "&types=state": "web state DRAFTVALIDATING; ",
		"?after=" + ids[6]:                  "",
	} {
		if got, _ := events(query); got != want {
			t.Errorf("%s:\n%s, want\n%s", query, got, want)
		}
	}
	rendered := ledger.Render(ledger.AttestationEvent{ID: record.Event, Org: "acme", Repo: "api", Commit: record.Commit, Predicate: "test:go", Identity: ci.dn,
		Result: record.Result, Timestamp: record.RecordedAt, Attestation: record.ID, PayloadDigest: record.PayloadDigest})
	if body := b.get("/v1/orgs/acme/events?limit=1").body; !strings.HasPrefix(string(body), `{"data":[`+string(rendered)+`]`) {
		t.Errorf("the first event is\n%s, want\n%s", body, rendered)
	}
	b.get("/v1/orgs/acme/events?after=evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE").wantFields(400, ledger.CodeInvalidParameter, "after")
	b.get("/v1/orgs/acme/events?repo=none").wantProblem(404, ledger.CodeNotFound)
}

func TestEventsAccept(t *testing.T) {
	b := newBench(t)
	for accept, status := range map[string]int{
		"":                 200,
		"*/*":              200,
		"application/json": 200,
		"application/*":    200,
		"text/event-stream, application/json;q=0.5": 200,
		"text/html, */*;q=0.1":                      200,
		"text/event-stream":                         406,
		"application/json;q=0":                      406,
		"text/*, image/png":                         406,
	} {
		header := map[string]string{"Accept": accept}
		answer := b.send(request{method: "GET", path: "/v1/orgs/acme/events", token: b.reader, header: header})
		if answer.status != status {
			t.Errorf("Accept: %s: %d, want %d", accept, answer.status, status)
		}
		if answer.status == 406 {
			answer.wantProblem(406, ledger.CodeNotAcceptable)
		} else if vary := answer.header.Values("Vary"); len(vary) != 2 || vary[1] != "Accept" {
			t.Errorf("Vary: %q", vary)
		}
	}
}
