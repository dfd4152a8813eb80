package web_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

const webhooksPath = "/orgs/acme/repos/api/webhooks"

// webhookSecret matches the secret of a webhook.
var webhookSecret = regexp.MustCompile(`whsec_[\w+/=]+`)

// webhook creates a webhook of acme/api.
func (e *env) webhook(target string, events ...ledger.EventType) outbound.Webhook {
	e.t.Helper()
	created, err := e.host.CreateWebhook(e.t.Context(), "acme", "api", outbound.NewWebhook{URL: target, Events: events})
	must.OK(e.t, err)
	return created
}

func (e *env) webhooks() []outbound.Webhook {
	e.t.Helper()
	return must.Get(client.Collect(e.host.Webhooks(e.t.Context(), "acme", "api"), 0))(e.t)
}

// A receiver receives and stores deliveries. Tests set its response.
type receiver struct {
	url     string
	handler atomic.Value // http.HandlerFunc
	mu      sync.Mutex
	got     []*http.Request
	bodies  []string
}

func newReceiver(t testing.TB) *receiver {
	r := new(receiver)
	r.respondWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	network := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		body, _ := io.ReadAll(in.Body)
		r.mu.Lock()
		r.got, r.bodies = append(r.got, in), append(r.bodies, string(body))
		r.mu.Unlock()
		r.handler.Load().(http.HandlerFunc)(w, in)
	}))
	t.Cleanup(network.Close)
	r.url = network.URL
	return r
}

func (r *receiver) respondWith(h http.HandlerFunc) { r.handler.Store(h) }

// count returns the number of requests.
func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// dispatch sends pending deliveries until the end of the test.
func (e *env) dispatch() {
	ctx, cancel := context.WithCancel(context.Background())
	d := dispatch.New(dispatch.Config{Outbox: e.db, Guard: e.guard, UserAgent: "ledgerd/test", Timeout: 5 * time.Second,
		Grace: time.Second})
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	e.t.Cleanup(func() { cancel(); running.Wait() })
}

func TestCreateWebhook(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	w.get(webhooksPath).want(200).has(
		"No webhooks yet", "ledgerd webhook add acme/api --url https://ci.example.com/ledger")
	form := w.get(webhooksPath + "/new").want(200)
	var checked []string
	for _, box := range form.elements("input", "name", "events") {
		if slices.ContainsFunc(box.Attr, isChecked) {
			checked = append(checked, attribute(box, "value"))
		}
	}
	if !slices.Equal(checked, []string{"attestation", "state", "policy"}) {
		t.Errorf("default events: %v, want all but radar", checked)
	}

	p := w.post(webhooksPath+"/new", url.Values{"url": {" https://ci.example.com/ledger?key=<b> "},
		"events": {"state", "radar"}, "description": {" the <b>deployer</b> "}}).
		want(201).has("Webhook created", "It won't be shown again", "webhook listen")
	created := e.webhooks()[0]
	if created.URL != "https://ci.example.com/ledger?key=<b>" ||
		!slices.Equal(created.Events, []ledger.EventType{"state", "radar"}) || created.Description != "the <b>deployer</b>" ||
		!created.Active {
		t.Errorf("created %+v", created)
	}
	secret := webhookSecret.FindString(p.text())
	if secret == "" || strings.Count(p.text(), secret) != 1 || p.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the secret is not shown exactly once: %s", p.text())
	}
	for _, path := range []string{webhooksPath, webhooksPath + "/" + created.ID, webhooksPath + "/" + created.ID + "/edit",
		"/orgs/acme"} {
		page := w.get(path).want(200).hasNot("whsec_")
		if len(page.elements("b")) > 0 {
			t.Errorf("%s: text became an element", path)
		}
		checkHTML(t, "an admin", page)
	}
	w.get(webhooksPath).has("https://ci.example.com/ledger?key=<b>", "the <b>deployer</b>", "state, radar", "active")
	if strings.Contains(e.log.String(), secret) {
		t.Error("the secret is in the log")
	}

	w.post(webhooksPath+"/new",
		url.Values{"url": {"https://ci.example.com"}, "events": {"state"}, "paused": {"true"}}).want(201)
	if second := e.webhooks()[1]; second.Active {
		t.Errorf("created %+v, want it inactive", second)
	}
	w.get(webhooksPath).has("inactive")
	w.get("/orgs/acme/repos/none/webhooks/new").want(404)
	w.get("/orgs/acme/repos/none/webhooks").want(404)
}

// The forms for a new and an existing webhook show errors under their fields, and
// do not lose input.
func TestWebhookFormErrors(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	at := webhooksPath + "/" + e.webhook("https://ci.example.com").ID
	good := url.Values{"url": {"https://ci.example.com"}, "events": {"state"}, "description": {"typed in"}}

	for name, test := range map[string]struct{ field, value, want string }{
		"no URL":          {"url", "", ""},
		"not a URL":       {"url", `"><script>alert(1)</script>`, ""},
		"private network": {"url", "http://10.1.2.3/", "webhooks.allowed_networks"},
		"no events":       {"events", "", ""},
		"unknown event":   {"events", "<i>deploy</i>", ""},
	} {
		for what, path := range map[string]string{"new": webhooksPath + "/new", "edit": at + "/edit"} {
			t.Run(name+", "+what, func(t *testing.T) {
				form := url.Values{}
				for field, values := range good {
					form[field] = values
				}
				form.Set(test.field, test.value)
				if name == "no events" {
					form.Del("events")
				}

				p := e.in(t).browserOf(w).post(path, form)
				if p.status < 400 || p.status > 422 {
					t.Fatalf("%d: %s", p.status, p.text())
				}
				p.hasError(test.field, test.want)
				if len(p.elements("script")) > 1 || len(p.elements("i")) > 0 {
					t.Error("text became an element")
				}
				if test.field != "description" && p.value("description") != "typed in" {
					t.Error("the form lost the description")
				}
				checkHTML(t, "an admin", p)
			})
		}
	}

	if all := e.webhooks(); len(all) != 1 || all[0].URL != "https://ci.example.com" {
		t.Errorf("webhooks: %+v", all)
	}
}

func TestEditWebhook(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	hook := e.webhook("https://ci.example.com", ledger.EventState)
	at := webhooksPath + "/" + hook.ID
	form := w.get(at + "/edit").want(200)
	if got := form.value("url"); got != "https://ci.example.com" {
		t.Errorf("url: %q", got)
	}
	w.post(at+"/edit", url.Values{"url": {"https://cd.example.com"}, "events": {"policy", "radar"},
		"description": {"new"}}).redirectsTo(at)
	w.get(at).want(200).has("https://cd.example.com", "policy, radar", "new")

	if len(w.get(at).elements("form", "action", at+"/ping")) != 1 {
		t.Error("no ping button")
	}
	edit := func(field, value string) page {
		return w.post(at+"/edit", url.Values{"url": {"https://cd.example.com"}, "events": {"policy"}, field: {value}})
	}
	if p := edit("authorization", "Bearer é").want(422); p.value("authorization") != "" {
		t.Error("the form shows the header")
	}
	edit("authorization", " Bearer gateway-key\n").redirectsTo(at)
	w.get(at).has("Authorization header", "********").hasNot("gateway-key")
	edit("authorization", "").redirectsTo(at)
	w.get(at).has("********")
	w.get(at + "/edit").has("keep the present value").hasNot("gateway-key")
	edit("url", "https://evil.example").want(422).hasError("authorization", "https://cd.example.com")
	w.post(at+"/edit", url.Values{"url": {"https://cd.example.com"}, "events": {"policy"}, "authorization": {"Bearer x"},
		"without": {"true"}}).want(422).hasError("authorization", "empty")
	edit("without", "true").redirectsTo(at)
	w.get(at).hasNot("Authorization header")

	w.post(at+"/active", url.Values{"active": {"false"}}).redirectsTo(at)
	p := w.get(at).want(200).has("Inactive: nothing is sent.", "Activate",
		"Activate the webhook to send it events.").hasNot("Replay")
	if len(p.elements("form", "action", at+"/ping")) != 0 {
		t.Error("an inactive webhook has a ping button")
	}
	if p := w.post(at+"/ping", nil); p.status < 400 || p.status > 499 {
		t.Errorf("ping of an inactive webhook: %d, want a 4xx", p.status)
	}
	w.post(at+"/active", url.Values{"active": {"true"}}).redirectsTo(at)
	w.get(at).has("active", "Deactivate")

	w.post(at+"/remove", nil).redirectsTo(webhooksPath)
	w.get(at).want(404)
	w.post(at+"/remove", nil).want(404)
	if n := len(e.webhooks()); n != 0 {
		t.Errorf("%d webhooks, want none", n)
	}
}

func TestRotateSecret(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	hook := e.webhook("https://ci.example.com")
	at := webhooksPath + "/" + hook.ID
	if got := w.get(at + "/rotate").want(200).value("overlap"); got != "24h" {
		t.Errorf("overlap: %q", got)
	}

	for _, invalid := range []string{"", "soon", "-1h", "31d", "<b>"} {
		p := w.post(at+"/rotate", url.Values{"overlap": {invalid}}).want(422).hasError("overlap", "").hasNot("whsec_")
		if p.value("overlap") != invalid {
			t.Errorf("the form lost %q", invalid)
		}
	}

	p := w.post(at+"/rotate", url.Values{"overlap": {"48h"}}).want(200).has("New secret", "It won't be shown again",
		"Deliveries are also signed with the old secret, which expires 2 Dec 2030 09:00 UTC")
	secret := webhookSecret.FindString(p.text())
	if secret == "" || secret == hook.Secret || strings.Contains(p.body, hook.Secret) {
		t.Errorf("the page shows the secret %s", secret)
	}
	w.get(at).has("Old secret still signs, expires 2 Dec 2030 09:00 UTC").hasNot("whsec_")
	w.get(at + "/rotate").has("A rotation is in progress: the old secret expires 2 Dec 2030 09:00 UTC")
	w.post(at+"/rotate", url.Values{"overlap": {"0s"}}).want(200).has("The old secret no longer signs")
	w.get(at).hasNot("Old secret")
}

// A webhook that ledgerd disabled shows the reason on its page, in the list and on
// the org's page. A failing webhook shows when it first failed.
func TestFailingWebhook(t *testing.T) {
	e := newEnv(t)
	r := newReceiver(t)
	w := e.signIn(e.admin)
	hook := e.webhook(r.url)
	at := webhooksPath + "/" + hook.ID
	r.respondWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	e.dispatch()
	w.post(at+"/ping", nil).want(303)
	must.Wait(t, "the failure", func() bool { return e.webhooks()[0].FailingSince != 0 })
	w.get(at).has("first failure 30 Nov 2030 09:00 UTC")
	w.get(webhooksPath).has("first failure 30 Nov 2030 09:00 UTC")
	w.get("/orgs/acme").has("Webhooks 1 Webhook api "+r.url, "failing: 1 failed attempt")
	if got := w.get(at + "/replay").want(200).value("since"); got != "2030-11-30T09:00" {
		t.Errorf("default start of a replay: %q", got)
	}

	r.respondWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	w.post(at+"/ping", nil).want(303)
	must.Wait(t, "the end", func() bool { return !e.webhooks()[0].Active })
	reason := e.webhooks()[0].DisabledReason
	w.get(at).has("Disabled by ledgerd 30 Nov 2030 09:00 UTC", reason, "Fix the receiver", "Activate")
	w.get(webhooksPath).has("disabled", reason)
	w.get("/orgs/acme").has("Webhook api "+r.url, "disabled: "+reason)
	e.signIn(e.reader).get("/orgs/acme").hasNot(r.url, reason)
	w.post(at+"/active", url.Values{"active": {"true"}}).redirectsTo(at)
	w.get(at).hasNot("Disabled by ledgerd")
}
