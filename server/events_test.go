package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger"
)

// The history returns every event as the exact bytes that were rendered when it was
// recorded.
func TestEvents(t *testing.T) {
	b := newBackend(t)
	b.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	ci := b.signer("cn=ci,ou=build,o=acme")
	record := decode[ledger.AttestationRecord](b.attest(ci.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201))
	b.setContract(`{"requirements":[]}`)
	b.send(request{method: "POST", path: "/v1/orgs/acme/repos/web/attestations", token: b.writer,
		body: string(ci.statement(t, commitID(2), "test:go", ledger.Fail, 1))}).want(201)

	type event struct {
		ID, Type, Repo, From, To string
	}
	events := func(query string) (summary string, ids []string) {
		page := decode[ledger.Page[jsontext.Value]](b.get("/v1/orgs/acme/events" + query).want(200))
		for _, raw := range page.Data {
			var e event
			check(t, ledger.DecodeOpen(
				[]byte(strings.NewReplacer(`"id"`, `"ID"`, `"type"`, `"Type"`, `"repo"`, `"Repo"`, `"from"`, `"From"`, `"to"`,
					`"To"`).Replace(string(raw))), &e))
			summary += fmt.Sprintf("%s %s %s%s; ", e.Repo, e.Type, e.From, e.To)
			ids = append(ids, e.ID)
		}
		return summary, ids
	}
	all, ids := events("")
	const want = "api attestation ; api state DRAFTVALIDATING; api state VALIDATINGATTESTED; api policy ; api state " +
		"ATTESTEDPROMOTABLE; web attestation ; web state DRAFTVALIDATING; "
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
		"?order=asc&repo=web":               "web attestation ; web state DRAFTVALIDATING; ",
		"?order=desc&repo=web":              "web state DRAFTVALIDATING; web attestation ; ",
		"?order=desc&after=" + ids[4]:       "web state DRAFTVALIDATING; web attestation ; ",
		"?order=desc&types=policy,state": "web state DRAFTVALIDATING; api state ATTESTEDPROMOTABLE; api policy ; " +
			"api state VALIDATINGATTESTED; api state DRAFTVALIDATING; ",
	} {
		if got, _ := events(query); got != want {
			t.Errorf("%s:\n%s, want\n%s", query, got, want)
		}
	}
	rendered := ledger.Render(ledger.AttestationEvent{ID: record.Event, Org: "acme", Repo: "api", Commit: record.Commit,
		Predicate: "test:go", Identity: ci.dn,
		Result: record.Result, Timestamp: record.RecordedAt, Attestation: record.ID, PayloadDigest: record.PayloadDigest})
	if body := b.get("/v1/orgs/acme/events?limit=1").body; !strings.HasPrefix(
		string(body), `{"data":[`+string(rendered)+`]`) {
		t.Errorf("first event\n%s, want\n%s", body, rendered)
	}
	b.get("/v1/orgs/acme/events?after=evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE").wantFields(400, ledger.CodeInvalidParameter,
		"after")
	b.get("/v1/orgs/acme/events?order=up").wantFields(400, ledger.CodeInvalidParameter, "order")
	b.get("/v1/orgs/acme/events?repo=none").wantProblem(404, ledger.CodeNotFound)
}

func TestEventsAccept(t *testing.T) {
	b := newBackend(t)
	const stream, history, neither = typeEvents, typeJSON, typeProblem

	for accept, want := range map[string]string{
		"":                  stream,
		"*/*":               stream,
		"text/event-stream": stream,
		"text/*, image/png": stream,
		"text/event-stream, application/json;q=0.5": stream,
		"text/html, */*;q=0.1":                      stream,
		"application/json":                          history,
		"application/*":                             history,
		"application/json;q=0":                      neither,
		"text/html":                                 neither,
	} {
		// HEAD, because the body of a stream does not end.
		resp := b.send(request{method: "HEAD", path: "/v1/orgs/acme/events", token: b.reader,
			header: map[string]string{"Accept": accept}})
		if got := resp.header.Get("Content-Type"); got != want {
			t.Errorf("Accept: %s: %d %s, want %s", accept, resp.status, got, want)
		}
		if vary := resp.header.Values("Vary"); want != neither && !slices.Contains(vary, "Accept") {
			t.Errorf("Accept: %s: Vary: %q", accept, vary)
		}
	}
}
