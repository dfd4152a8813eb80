package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

func isChecked(a html.Attribute) bool { return a.Key == "checked" }

func (e *env) deliveries(hook string) []outbound.Delivery {
	e.t.Helper()
	list, err := client.Collect(e.host.Deliveries(e.t.Context(), "acme", "api", hook, client.DeliveryFilter{}), 0)
	must.OK(e.t, err)
	return list
}

// The page of a ping shows its request and response.
func TestPing(t *testing.T) {
	e := newEnv(t)
	r := newReceiver(t)
	r.respondWith(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Receiver", "ci")
		fmt.Fprint(w, "thank you")
	})

	hook := e.webhook(r.url + "/ledger")
	at := webhooksPath + "/" + hook.ID
	w := e.signIn(e.admin)
	w.get(at).want(200).has("No deliveries yet", "ledgerd webhook ping acme/api "+hook.ID)

	e.dispatch()
	location := w.post(at+"/ping", nil).want(303).header.Get("Location")
	sent := e.deliveries(hook.ID)[0]
	if location != at+"/deliveries/"+sent.ID {
		t.Errorf("a ping redirects to %s", location)
	}

	p := w.get(location).want(200).has("Delivery: ping", "succeeded", "POST "+r.url+"/ledger", "X-ledger-Signature",
		"User-Agent ledgerd/test",
		"X-Receiver ci", "thank you", `"type": "ping"`).hasNot("whsec_", hook.Secret)
	checkHTML(t, "an admin", p)
	if copied := attribute(p.elements("button", "class", "copy wide")[0], "data-copy"); copied != r.bodies[0] {
		t.Errorf("the copy button has %s, want %s", copied, r.bodies[0])
	}
	if got := r.got[0].Header.Get("X-ledger-Event"); got != "ping" {
		t.Errorf("event header: %q", got)
	}
	w.get(at).has("succeeded", "ping", "1 attempt, last response 200")
}

// Each attempt is shown with its response. Responses are untrusted: they must not
// become markup, set headers or make pages large.
func TestHostileResponses(t *testing.T) {
	e := newEnv(t)
	r := newReceiver(t)
	const nasty = `<script>alert(1)</script></pre></textarea>"'><img src=x onerror=alert(1)>{{.}}&amp;`
	r.respondWith(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Nasty", nasty)
		w.Header().Set("Content-Type", `text/html; charset="<b>"`)
		w.Header().Set("Set-Cookie", "ledgerd=stolen; Path=/")
		for n := range 100 {
			w.Header().Set(fmt.Sprintf("X-Many-%d", n), strings.Repeat("v", 60))
		}
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, nasty+"\u202edlrow\u202c\x00\x1b[31m\xff😀"+strings.Repeat("long", 20_000))
	})

	hook := e.webhook(r.url)
	w := e.signIn(e.admin)
	e.dispatch()
	location := w.post(webhooksPath+"/"+hook.ID+"/ping", nil).want(303).header.Get("Location")
	w.post(location+"/redeliver", nil).redirectsTo(location)
	must.Wait(t, "two attempts", func() bool { return e.deliveries(hook.ID)[0].Attempts == 2 })

	p := w.get(location).want(200).has(nasty, "418", "[U+202E]dlrow[U+202C]␀␛[31m\ufffd😀", "First 4 000 of",
		"ledgerd stores only the beginning")
	if n := len(p.elements("details", "class", "card attempt")); n != 2 {
		t.Errorf("%d attempts on the page, want 2", n)
	}
	for name, most := range map[string]int{"script": 1, "img": 0, "textarea": 0, "b": 0} {
		if n := len(p.elements(name)); n > most {
			t.Errorf("the response became %d %s elements", n, name)
		}
	}
	if strings.ContainsAny(p.body, "\u202e\x00\x1b") {
		t.Error("the page has invisible characters")
	}
	if p.header.Get("Set-Cookie") != "" {
		t.Error("the page sets the receiver's cookie")
	}
	if len(p.body) > 60_000 {
		t.Errorf("the page has %d bytes", len(p.body))
	}
	checkHTML(t, "an admin", p)
}

// A failed connection is shown as an attempt without a response.
func TestNoResponse(t *testing.T) {
	e := newEnv(t)
	hook := e.webhook("http://127.0.0.1:1/<b>")
	w := e.signIn(e.admin)
	e.dispatch()
	location := w.post(webhooksPath+"/"+hook.ID+"/ping", nil).want(303).header.Get("Location")
	w.get(location).want(200).has("no response", "None received", "refused",
		"Queued. Next attempt 30 Nov 2030 09:00 UTC", "Refresh")
	w.get(webhooksPath+"/"+hook.ID).has("pending", "1 attempt: ", ", next attempt ")
}

func TestDeliveryLists(t *testing.T) {
	e := newEnv(t)
	r := newReceiver(t)
	hook := e.webhook(r.url, ledger.EventAttestation)
	at := webhooksPath + "/" + hook.ID
	ci := e.signer("cn=ci,ou=build,o=acme")
	for n := range 60 {
		e.attest(ci, commitID(n), "test:go", ledger.Pass)
	}

	w := e.signIn(e.admin)
	p := w.get(at).want(200).has("pending", "0 attempts, due now")
	next := p.elements("a", "rel", "next")
	if len(next) != 1 {
		t.Fatal("no link to the next page")
	}

	shown := func(p page) int {
		n := 0
		for _, a := range p.elements("a") {
			if strings.HasPrefix(attribute(a, "href"), at+"/deliveries/") {
				n++
			}
		}
		return n
	}
	if first, second := shown(p), shown(w.get(attribute(next[0], "href")).want(200)); first != 50 || second != 10 {
		t.Errorf("%d and %d deliveries on the pages, want 50 and 10", first, second)
	}

	w.get(at + "?status=failed").want(200).has("No failed deliveries")
	pending := w.get(at + "?status=pending").want(200)
	if href := attribute(pending.elements("a", "rel", "next")[0], "href"); !strings.Contains(href, "status=pending") {
		t.Errorf("the link to the next page has no filter: %s", href)
	}
	if current := pending.elements("a", "aria-current", "page"); attribute(current[len(current)-1], "href") != at+
		"?status=pending" {
		t.Error("the current filter is not marked")
	}

	for _, query := range []string{"?status=x<b>", "?cursor=x"} {
		if p := w.get(at + query); p.status < 400 || p.status > 499 {
			t.Errorf("%s: %d, want a 4xx", query, p.status)
		}
	}
	w.get(at + "/deliveries/dlv_01KAJ8Q0M6R4YB0J3X5T9ZC2DE").want(404)

	e.dispatch()
	must.Wait(t, "all to be sent", func() bool { return r.count() == 60 })
	must.Wait(t, "all to be written", func() bool { return shown(w.get(at+"?status=pending")) == 0 })
	w.get(at + "?status=succeeded").want(200).has("last response 204")
}

// A replay queues the events since a time in UTC.
func TestReplay(t *testing.T) {
	e := newEnv(t)
	r := newReceiver(t)
	ci := e.signer("cn=ci,ou=build,o=acme")
	e.attest(ci, commitID(1), "test:go", ledger.Pass)
	hook := e.webhook(r.url, ledger.EventAttestation)
	at := webhooksPath + "/" + hook.ID
	w := e.signIn(e.admin)
	form := w.get(at+"/replay").want(200).has("Since (UTC)", "Now: 09:00 on 30 Nov 2030 UTC")
	if fields := form.elements("input", "name", "since"); len(fields) != 1 ||
		attribute(fields[0], "type") != "datetime-local" {
		t.Error("since is not a datetime-local field")
	}
	for _, invalid := range []string{"", "yesterday<b>", "2030-13-01T00:00", "0001-01-01T00:00", "1969-12-31T23:59",
		"1970-01-01T00:00"} {
		w.post(at+"/replay", url.Values{"since": {invalid}}).want(422).hasError("since", "")
	}
	// A local time east of UTC can be in the future.
	w.post(at+"/replay", url.Values{"since": {"2030-11-30T10:30"}}).want(422).hasError("since", "is in the future")
	e.clock.advance(2 * time.Minute)
	w.post(at+"/replay", url.Values{"since": {"2030-11-30T09:01"}}).want(200).has("Nothing to replay")
	w.post(at+"/replay", url.Values{"since": {"2030-11-30T09:00"}}).want(200).has("Queued 1 delivery")
	for _, since := range []string{"2030-11-30T08:59:59", "2030-11-30", "2030-11-30T11:00:00+02:00"} {
		w.post(at+"/replay", url.Values{"since": {since}}).want(200).has("Nothing to replay") // already queued
	}
	e.dispatch()
	must.Wait(t, "the event", func() bool { return r.count() == 1 })

	w.post(at+"/active", url.Values{"active": {"false"}}).redirectsTo(at)
	if p := w.post(at+"/replay", url.Values{"since": {"2030-11-30"}}); p.status < 400 || p.status > 499 {
		t.Errorf("replay to an inactive webhook: %d, want a 4xx", p.status)
	}
	d := e.deliveries(hook.ID)[0]
	if len(w.get(at+"/deliveries/"+d.ID).has("Activate it to redeliver").elements(
		"form", "action", at+"/deliveries/"+d.ID+"/redeliver")) != 0 {
		t.Error("an inactive webhook has a redeliver button")
	}
}
