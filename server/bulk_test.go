package server

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/attestation/bulk"
)

// attestAll posts several envelopes with the write token.
func (b *backend) attestAll(mediaType, body string) response {
	b.t.Helper()
	return b.send(request{method: "POST", path: attestationsPath, token: b.writer, body: body,
		header: map[string]string{"Content-Type": mediaType}})
}

// items returns the items of a response, with their positions checked.
func (a response) items() []ledger.BulkItem {
	a.t.Helper()
	data := decode[ledger.BulkResponse](a.want(200)).Data
	for i, item := range data {
		if item.Index != i || (item.Attestation == nil) == (item.Problem == nil) {
			a.t.Errorf("item %d: %+v", i, item)
		}
	}
	return data
}

// outcomes returns the status of each item, and the code of those that are refused.
func outcomes(items []ledger.BulkItem) string {
	var list []string
	for _, item := range items {
		outcome := fmt.Sprint(item.Status)
		if item.Problem != nil {
			outcome += " " + string(item.Problem.Code)
		}
		list = append(list, outcome)
	}
	return strings.Join(list, ", ")
}

func lines(envelopes ...[]byte) string {
	var text strings.Builder
	for _, e := range envelopes {
		text.Write(e)
		text.WriteByte('\n')
	}
	return text.String()
}

// A bulkObserver counts new attestations and refusals.
type bulkObserver struct {
	noObserver
	recorded, refused atomic.Int64
}

func (o *bulkObserver) Recorded(ledger.Status) { o.recorded.Add(1) }
func (o *bulkObserver) Refused(ledger.Code)    { o.refused.Add(1) }

// Each envelope of several has the response that it has on its own, and the effects.
func TestBulk(t *testing.T) {
	observer := new(bulkObserver)
	b := newBackend(t, func(c *Config) { c.Observer = observer })
	ci := b.signer("cn=ci,ou=build,o=acme")
	revoked := b.signer("cn=gone,ou=build,o=acme")
	b.delete("/v1/orgs/acme/identities/" + revoked.id).want(204)
	pass := ci.statement(t, commitID(1), "test:go", ledger.Pass, 1)
	other, err := attestation.NewStatement("git+https://git.example/acme/web", commitID(1),
		attestation.ResultPredicate{Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass}, Repo: "acme/web"})
	must.OK(t, err)
	envelopes := [][]byte{
		pass,
		pass,
		flipped(t, pass, "sig"),
		flipped(t, pass, "payload"),
		newSigner(t, "cn=eve").statement(t, commitID(1), "test:go", ledger.Pass, 1),
		revoked.statement(t, commitID(1), "test:go", ledger.Pass, 1),
		ci.sign(t, other),
		[]byte(`{"hello":"world"}`),
		[]byte(`5`),
		ci.statement(t, commitID(1), "test:go", ledger.Fail, 2),
		pass, // by now, the signer has newer evidence
		ci.statement(t, commitID(2), "test:go", ledger.Pass, 3),
	}
	const want = "201, 200, 422 invalid_signature, 422 invalid_signature, 422 untrusted_identity, " +
		"422 revoked_identity, 422 wrong_repo, 422 invalid_envelope, 422 invalid_envelope, 201, 409 stale_statement, 201"

	resp := b.attestAll(typeLinesX, lines(envelopes...))
	items := resp.items()
	if got := outcomes(items); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	if recorded, refused := observer.recorded.Load(), observer.refused.Load(); recorded != 3 || refused != 8 {
		t.Errorf("the observer counts %d new attestations and %d refusals, want 3 and 8", recorded, refused)
	}
	if items[0].Attestation.ID != items[1].Attestation.ID {
		t.Errorf("a duplicate has the record %+v, want %+v", items[1].Attestation, items[0].Attestation)
	}
	if attestations, events := b.count(); attestations != 3 || events != 3 {
		t.Errorf("recorded %d attestations and %d events, want 3 each", attestations, events)
	}
	if got := [2]ledger.State{b.state(commitID(1)), b.state(commitID(2))}; got != [2]ledger.State{ledger.Validating,
		ledger.Attested} {
		t.Errorf("the commits are %v", got)
	}

	for i, item := range items {
		alone := b.attest(envelopes[i])
		if item.Problem != nil {
			p := decode[ledger.Problem](alone.want(item.Status))
			if item.Problem.RequestID != resp.header.Get("X-Request-Id") {
				t.Errorf("item %d has the request id %s", i, item.Problem.RequestID)
			}
			p.RequestID = item.Problem.RequestID
			if toJSON(t, p) != toJSON(t, item.Problem) {
				t.Errorf("item %d has\n%+v, on its own\n%+v", i, *item.Problem, p)
			}
			continue
		}
		read := decode[ledger.AttestationRecord](b.get(attestationsPath + "/" + item.Attestation.ID).want(200))
		if read.Verification = nil; toJSON(t, read) != toJSON(t, item.Attestation) {
			t.Errorf("item %d has\n%+v, read\n%+v", i, *item.Attestation, read)
		}
		stored := b.get(attestationsPath + "/" + item.Attestation.ID + "/envelope").want(200)
		if string(stored.body) != string(envelopes[i]) {
			t.Errorf("the envelope of item %d is stored as %s", i, stored.body)
		}
	}
	again := b.attestAll(typeLines, lines(pass, envelopes[9], envelopes[11])).items()
	if got := outcomes(again); got != "409 stale_statement, 200, 200" {
		t.Errorf("sent again: %s", got)
	}
}

// Several JSON documents may be sent as application/json, which curl users and clients do.
func TestLinesAsJSON(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	body := lines(ci.statement(t, commitID(1), "a", ledger.Pass, 1), ci.statement(t, commitID(1), "b", ledger.Pass, 1))
	resp := receive(t, b.stream, b.url, request{method: "POST", path: attestationsPath, token: b.writer, body: body})
	if got := outcomes(resp.items()); got != "201, 201" {
		t.Errorf("got %s", got)
	}
}

// A single envelope has the same response in all media types, also as one line of JSON Lines.
func TestOneEnvelopeIsNotBulk(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	for i, mediaType := range []string{typeJSON, typeDSSE, typeLines, typeLinesX} {
		envelope := string(ci.statement(t, commitID(1), "test:go", ledger.Pass, i)) + "\n"
		resp := b.attestAll(mediaType, envelope).want(201)
		record := decode[ledger.AttestationRecord](resp)
		if got := resp.header.Get("Location"); got != attestationsPath+"/"+record.ID {
			t.Errorf("as %s: Location is %q", mediaType, got)
		}
		again := b.attestAll(mediaType, envelope).want(200)
		if string(again.body) != string(resp.body) {
			t.Errorf("as %s: a duplicate has\n%s, the first\n%s", mediaType, again.body, resp.body)
		}
		stored := b.get(attestationsPath + "/" + record.ID + "/envelope").want(200)
		if string(stored.body) != envelope {
			t.Errorf("as %s: stored %q, want %q", mediaType, stored.body, envelope)
		}
	}
	b.attestAll(typeLinesX, `{"a":1}`).wantFields(422, ledger.CodeInvalidEnvelope, "payloadType")
}

// A body that is invalid as a whole is refused, and nothing in it is recorded.
func TestBulkIsRefused(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	good := string(ci.statement(t, commitID(1), "test:go", ledger.Pass, 1))
	two := good + "\n" + good + "\n"
	list := `{"attestations":[{"bundle":` + good + `}]`
	for name, test := range map[string]struct {
		mediaType, body string
		status          int
		code            ledger.Code
		detail          string
	}{
		"truncated":    {typeLinesX, two[:len(two)-5], 400, ledger.CodeInvalidJSON, "line 2"},
		"deep nesting": {typeJSON, two + strings.Repeat("[", 1<<20), 400, ledger.CodeInvalidJSON, "depth"},
		"101 lines": {typeLinesX, strings.Repeat(good+"\n", bulk.Max+1), 413, ledger.CodePayloadTooLarge,
			"more than 100"},
		"a line of 4 MiB": {typeLinesX, good + "\n" + `{"payload":"` + strings.Repeat("A", 4<<20) + `"}`, 413,
			ledger.CodePayloadTooLarge, "max_body"},
		"several as an envelope": {typeDSSE, two, 400, ledger.CodeInvalidJSON, "2 JSON documents"},
		"an array as a bundle":   {typeBundle, "[" + good + "]", 422, ledger.CodeInvalidEnvelope, "array"},
		"a list as a bundle":     {typeBundle, list + "}", 422, ledger.CodeInvalidEnvelope, "list"},
		"another media type":     {"text/plain", two, 415, ledger.CodeUnsupportedMediaType, typeLinesX},
		"a media type's typo":    {"application/ndjson", two, 415, ledger.CodeUnsupportedMediaType, typeLinesX},
		"another charset": {typeLinesX + "; charset=latin1", two, 415, ledger.CodeUnsupportedMediaType,
			"charset"},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.in(t).attestAll(test.mediaType, test.body).wantProblem(test.status, test.code)
			if !strings.Contains(p.Detail, test.detail) {
				t.Errorf("the detail is %q, want %q in it", p.Detail, test.detail)
			}
		})
	}
	t.Run("unknown repo", func(t *testing.T) {
		b.in(t).send(request{method: "POST", path: "/v1/orgs/acme/repos/none/attestations", token: b.writer,
			header: map[string]string{"Content-Type": typeLinesX}, body: two}).wantProblem(404, ledger.CodeNotFound)
	})
	t.Run("read token", func(t *testing.T) {
		b.in(t).send(request{method: "POST", path: attestationsPath, token: b.reader,
			header: map[string]string{"Content-Type": typeLinesX}, body: two}).wantProblem(403, ledger.CodeForbidden)
	})
	if attestations, events := b.count(); attestations+events != 0 {
		t.Errorf("recorded %d attestations and %d events", attestations, events)
	}

	items := b.attestAll(typeLinesX, strings.Repeat(good+"\n", bulk.Max)).items()
	if got := outcomes(items); got != "201"+strings.Repeat(", 200", bulk.Max-1) {
		t.Errorf("100 lines: %s", got)
	}
}

// The items of an archived repo are refused, each on its own.
func TestBulkInAnArchivedRepo(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.patch("/v1/orgs/acme/repos/api", `{"archived":true}`).want(200)
	body := lines(ci.statement(t, commitID(1), "a", ledger.Pass, 1), ci.statement(t, commitID(1), "b", ledger.Pass, 1))
	if got := outcomes(b.attestAll(typeLinesX, body).items()); got != "409 archived, 409 archived" {
		t.Errorf("got %s", got)
	}
}

// Each item counts as a request of the token. Beyond the limit, nothing is recorded.
func TestBulkCountsAsRequests(t *testing.T) {
	b := newBackend(t, func(c *Config) { c.Limits.Requests = 2 })
	ci := b.signer("cn=ci,ou=build,o=acme")
	var envelopes [][]byte
	for i := range 12 {
		envelopes = append(envelopes, ci.statement(t, commitID(1), fmt.Sprint("test:", i), ledger.Pass, 1))
	}

	start := time.Now()
	resp := b.attestAll(typeLinesX, lines(envelopes...))
	var left, full int
	_, err := fmt.Sscanf(resp.header.Get("RateLimit"), `"requests";r=%d;t=%d`, &left, &full)
	cameBack := int(2*time.Since(start).Seconds()) + 1
	if len(resp.items()) != 12 || err != nil || left < 8 || left > 8+cameBack {
		t.Errorf("after 12 items, RateLimit is %s, want 8 of 20", resp.header.Get("RateLimit"))
	}

	recorded, more := 12, ci.statement(t, commitID(1), "test:more", ledger.Pass, 1)
	refused := b.attestAll(typeLinesX, lines(append(envelopes, more)...))
	for refused.status == 200 && time.Since(start) > 2*time.Second { // enough came back in the meantime
		start, recorded = time.Now(), 13
		refused = b.attestAll(typeLinesX, lines(append(envelopes, more)...))
	}
	refused.wantProblem(429, ledger.CodeTooManyRequests)
	if refused.header.Get("Retry-After") == "" {
		t.Errorf("the refusal has the headers %v", refused.header)
	}
	if attestations, _ := b.count(); attestations != recorded {
		t.Errorf("recorded %d attestations, want %d", attestations, recorded)
	}
}

// Items that would begin too late are not recorded, and say so.
func TestBulkTakesLimitedTime(t *testing.T) {
	b := newBackend(t)
	b.server.bulkTime = -1
	ci := b.signer("cn=ci,ou=build,o=acme")
	body := "[" + string(ci.statement(t, commitID(1), "a", ledger.Pass, 1)) + "]"
	if got := outcomes(b.attestAll(typeJSON, body).items()); got != "503 server_busy" {
		t.Errorf("got %s", got)
	}
	if attestations, _ := b.count(); attestations != 0 {
		t.Errorf("recorded %d attestations", attestations)
	}
}

// If the storage fails, what was recorded before stays, and each other item says that it is not
// recorded. The same request can be sent again.
func TestStorageFailsDuringBulk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files cannot be renamed")
	}
	var during func()
	start := newClock()
	b := newBackend(t, func(c *Config) {
		c.Now = func() time.Time {
			if during != nil {
				during()
			}
			return start.now()
		}
	})
	ci := b.signer("cn=ci,ou=build,o=acme")
	var envelopes [][]byte
	for i := range 4 {
		envelopes = append(envelopes, ci.statement(t, commitID(1), fmt.Sprint("test:", i), ledger.Pass, 1))
	}
	b.attest(envelopes[0]).want(201) // now the keyring is cached

	calls, away := 0, b.file+".away"
	during = func() { // called once for the token, once for the body, and then once for each envelope
		if calls++; calls == 5 {
			must.OK(t, os.Rename(b.file, away))
		}
	}
	items := b.attestAll(typeLinesX, lines(envelopes...)).items()
	if got := outcomes(items); got != "200, 201, 503 storage_unavailable, 503 storage_unavailable" {
		t.Errorf("got %s", got)
	}
	during = nil
	must.OK(t, os.Rename(away, b.file))

	if got := outcomes(b.attestAll(typeLinesX, lines(envelopes...)).items()); got != "200, 200, 201, 201" {
		t.Errorf("sent again: %s", got)
	}
	if attestations, events := b.count(); attestations != 4 || events != 4 {
		t.Errorf("recorded %d attestations and %d events, want 4 each", attestations, events)
	}
}
