package server

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// The history returns every event as the exact bytes that were rendered when it was
// recorded.
func TestEvents(t *testing.T) {
	b := newBackend(t)
	b.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	ci := b.signer("cn=ci,ou=build,o=acme")
	envelope := ci.statement(t, commitID(1), "test:go", ledger.Pass, 1)
	record := decode[ledger.AttestationRecord](b.attest(envelope).want(201))
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
			must.OK(t, ledger.DecodeOpen(
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
		Result: record.Result, Timestamp: record.RecordedAt, Attestation: record.ID, PayloadDigest: record.PayloadDigest,
		Key: ci.keyDigest(t), EnvelopeDigest: digestOf(envelope)})
	if body := b.get("/v1/orgs/acme/events?limit=1").body; !strings.HasPrefix(
		string(body), `{"data":[`+string(rendered)+`]`) {
		t.Errorf("first event\n%s, want\n%s", body, rendered)
	}
	b.get("/v1/orgs/acme/events?after=evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE").wantFields(400, ledger.CodeInvalidParameter,
		"after")
	b.get("/v1/orgs/acme/events?order=up").wantFields(400, ledger.CodeInvalidParameter, "order")
	b.get("/v1/orgs/acme/events?repo=none").wantProblem(404, ledger.CodeNotFound)
	b.get("/v1/orgs/acme/events?salts=yes").wantFields(400, ledger.CodeInvalidParameter, "salts")
}

// A page has the salts of its events, in their order, if they are asked for.
func TestSaltsOfEvents(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	b.passes(b.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go")
	list := func(query string) (p ledger.EventPage[json.RawMessage]) {
		t.Helper()
		answer := b.get("/v1/orgs/acme/events?salts=true&types=state,attestation,identity" + query).want(200)
		must.OK(t, json.Unmarshal(answer.body, &p))
		return p
	}

	all, newest := list(""), list("&order=desc&limit=2")
	slices.Reverse(newest.Salts)
	if n := len(all.Data); n < 3 || len(all.Salts) != n || !slices.Equal(all.Salts[n-2:], newest.Salts) {
		t.Errorf("%d events have the salts %q, and the newest two %q", n, all.Salts, newest.Salts)
	}
	for _, salt := range all.Salts {
		if len(salt) != 32 {
			t.Errorf("the salts are %q", all.Salts)
		}
	}
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

// An event is the bytes that the history lists.
func TestEventIsWhatTheHistoryLists(t *testing.T) {
	b := newBackend(t)
	b.setPolicy(`"requirements":[]`)
	page := decode[ledger.Page[jsontext.Value]](b.get("/v1/orgs/acme/events?types=policy").want(200))
	if len(page.Data) == 0 {
		t.Fatal("no events")
	}
	for _, listed := range page.Data {
		e := decode[ledger.PolicyEvent](response{t: t, body: listed})
		got := b.get("/v1/orgs/acme/events/" + e.ID).want(200)
		if string(got.body) != string(listed) || got.header.Get("Content-Type") != typeJSON {
			t.Errorf("%s: %s\n%s\nwant\n%s", e.ID, got.header.Get("Content-Type"), got.body, listed)
		}
	}
	b.get("/v1/orgs/acme/events/evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE").wantProblem(404, ledger.CodeNotFound)
	b.get("/v1/orgs/acme/events/att_01KAJ8Q0M6R4YB0J3X5T9ZC2DE").wantProblem(404, ledger.CodeNotFound)
}

// logKey logs a key of the org acme, and returns the ID of the event.
func (b *backend) logKey(e ledger.KeyEvent) string {
	b.t.Helper()
	e.Key = strings.Repeat("0a", 32)
	id, err := b.store.LogKey(b.t.Context(), "acme", e)
	must.OK(b.t, err)
	return id
}

// Events of the org are only on streams and in lists that ask for them, and in none of a
// repo.
func TestEventsOfTheOrg(t *testing.T) {
	b := newBackend(t)
	all := b.listen("?types=key,policy", b.reader, nil)
	defaults := b.listen("", b.reader, nil)
	ofRepo := b.listen("?types=key,policy&repo=api", b.reader, nil)
	key := b.logKey(ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfReceipts, NotBefore: 1, Reason: "new"})
	b.setContract(`{"requirements":[]}`)

	for name, test := range map[string]struct {
		stream *listener
		want   string
	}{
		"asked for": {all, "key policy"}, "default": {defaults, "policy"}, "of a repo": {ofRepo, "policy"},
	} {
		var got []string
		for _, m := range test.stream.next(len(strings.Fields(test.want))) {
			got = append(got, m.event)
			if want := `{"action":"added","purpose":"receipt","key":"` + strings.Repeat("0a", 32) +
				`","not_before":"1970-01-01T00:00:00.001Z","reason":"new","timestamp":`; m.event == "key" &&
				(!strings.HasPrefix(m.data, want) || m.id != key) {
				t.Errorf("%s: %+v", name, m)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, want %s", name, got, test.want)
		}
	}

	// A stream resumes after an event of the org, and starts after it.
	resumed := b.listen("?types=policy,key", b.reader, map[string]string{"Last-Event-ID": key})
	if got := resumed.next(1)[0].event; got != "policy" {
		t.Errorf("resumed with %s", got)
	}
	last := b.logKey(ledger.KeyEvent{Action: ledger.KeyRevoked, Purpose: ledger.KeyOfReceipts})
	if start := <-b.listen("", b.reader, nil).start; start != last {
		t.Errorf("a new stream starts after %s, want %s", start, last)
	}

	for query, want := range map[string]int{"": 0, "?types=key": 2, "?types=key&limit=1": 1, "?types=key&repo=api": 0,
		"?types=key&after=" + key: 1, "?types=key&order=desc&after=" + key: 1, "?repo=api": 0} {
		body := string(b.get("/v1/orgs/acme/events" + query).want(200).body)
		if keys := strings.Count(body, `"type":"key"`); keys != want {
			t.Errorf("%s: %d keys, want %d: %s", query, keys, want, body)
		}
	}
	if body := b.get("/v1/orgs/acme/events?types=key&limit=1").want(200).body; strings.Contains(string(body), `"repo"`) {
		t.Errorf("an event of the org has a repo: %s", body)
	}
}

// keyDigest returns the hex SHA-256 of the signer's public key.
func (s *signer) keyDigest(t testing.TB) string {
	t.Helper()
	der := must.Get(x509.MarshalPKIXPublicKey(s.key.Public()))(t)
	return strings.TrimPrefix(digestOf(der), "sha256:")
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// A key that is registered, signs and is removed leaves traces: without them, a host could
// sign in the name of anybody.
func TestAnIdentityLeavesTraces(t *testing.T) {
	b := newBackend(t)
	asked, defaults := b.listen("?types=identity,attestation", b.reader, nil), b.listen("", b.reader, nil)
	alice := b.signer("cn=alice,ou=dev,o=acme")
	envelope := alice.statement(t, commitID(1), "review:code", ledger.Pass, 1)
	record := decode[ledger.AttestationRecord](b.attest(envelope).want(201))
	b.delete("/v1/orgs/acme/identities/" + alice.id).want(204)

	type trace struct {
		Type, Action, DN, Key, Attestation, Timestamp string
		IdentityID                                    string `json:"identity_id"`
		EnvelopeDigest                                string `json:"envelope_digest"`
	}
	key := alice.keyDigest(t)
	want := []trace{
		{Type: "identity", Action: "added", DN: alice.dn, Key: key, IdentityID: alice.id},
		{Type: "attestation", Key: key, Attestation: record.ID, EnvelopeDigest: digestOf(envelope)},
		{Type: "identity", Action: "revoked", DN: alice.dn, Key: key, IdentityID: alice.id},
	}
	var ids []string
	page := decode[ledger.Page[jsontext.Value]](b.get("/v1/orgs/acme/events?types=identity,attestation").want(200))
	for i, body := range page.Data {
		var got struct {
			trace
			ID string
		}
		must.OK(t, json.Unmarshal(body, &got))
		ids = append(ids, got.ID)
		if got.Timestamp == "" || len(page.Data) != len(want) {
			t.Fatalf("events %s", page.Data)
		}
		if got.Timestamp = ""; got.trace != want[i] {
			t.Errorf("event %d is %+v, want %+v", i, got.trace, want[i])
		}
	}

	for i, m := range asked.next(3) {
		if m.id != ids[i] || m.event != want[i].Type || strings.Contains(m.data, "envelope_digest") {
			t.Errorf("message %d is %+v", i, m)
		}
	}
	if got := defaults.next(2); got[0].event != "attestation" || got[1].event != "state" {
		t.Errorf("the default stream has %+v", got)
	}
	trusted := decode[identity.Identity](b.get("/v1/orgs/acme/identities/" + alice.id).want(200))
	if trusted.Event != ids[2] {
		t.Errorf("the identity's event is %s, want %s", trusted.Event, ids[2])
	}
}
