package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

const webhooksPath = "/v1/orgs/acme/repos/api/webhooks"

// webhook creates a webhook of acme/api.
func (b *backend) webhook(body string) outbound.Webhook {
	b.t.Helper()
	return decode[outbound.Webhook](b.post(webhooksPath, body).want(201))
}

func TestWebhooks(t *testing.T) {
	b := newBackend(t)
	resp := b.post(webhooksPath, `{"url":"https://ci.example.com/ledger?key=k"}`).want(201)
	created := decode[outbound.Webhook](resp)
	want := outbound.Webhook{
		ID: created.ID, Org: "acme", Repo: "api", URL: "https://ci.example.com/ledger?key=k", Active: true,
		CreatedAt: b.clock.time(), Secret: created.Secret,
		Events: []ledger.EventType{ledger.EventAttestation, ledger.EventState, ledger.EventPolicy},
	}
	if toJSON(t, created) != toJSON(t, want) || !strings.HasPrefix(created.Secret, "whsec_") {
		t.Errorf("created %+v, want %+v", created, want)
	}
	at := webhooksPath + "/" + created.ID
	if resp.header.Get("Location") != at || resp.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Location: %s, Cache-Control: %s; want %s and no-store", resp.header.Get("Location"),
			resp.header.Get("Cache-Control"), at)
	}

	// No other response contains the secret.
	want.Secret = ""
	read := b.get(at).want(200)
	if got := string(read.body); got != toJSON(t, want) {
		t.Errorf("read %s, want %s", got, toJSON(t, want))
	}
	if got := string(b.get(webhooksPath).want(200).body); got != `{"data":[`+toJSON(t, want)+`]}` {
		t.Errorf("listed %s, want only %s", got, toJSON(t, want))
	}
	unchanged := map[string]string{"If-None-Match": read.header.Get("ETag")}
	for _, method := range []string{"GET", "HEAD"} {
		b.send(request{method: method, path: at, token: b.admin, header: unchanged}).want(304)
	}

	named := b.webhook(`{"url":"http://ci.example.com","events":["radar","state"],"description":"notifies the bot",` +
		`"active":false}`)
	if !slices.Equal(named.Events, []ledger.EventType{ledger.EventState, ledger.EventRadar}) ||
		named.Description != "notifies the bot" || named.Active {
		t.Errorf("created %+v", named)
	}
	if named.Secret == created.Secret {
		t.Error("two webhooks have the same secret")
	}

	b.delete(at).want(204)
	b.delete(at).wantProblem(404, ledger.CodeNotFound)
	b.get(at).wantProblem(404, ledger.CodeNotFound)
	b.patch(at, "{}").wantProblem(404, ledger.CodeNotFound)
	if list := decode[ledger.Page[outbound.Webhook]](b.get(webhooksPath).want(200)); len(list.Data) != 1 ||
		list.Data[0].ID != named.ID {
		t.Errorf("listed %+v, want only %s", list.Data, named.ID)
	}
}

// A PATCH leaves omitted fields unchanged.
func TestChangeWebhook(t *testing.T) {
	b := newBackend(t)
	w := b.webhook(`{"url":"https://ci.example.com","events":["state"],"description":"before"}`)
	w.Secret = ""
	at := webhooksPath + "/" + w.ID
	tag := b.get(at).want(200).header.Get("ETag")
	for _, test := range []struct {
		body   string
		change func()
	}{
		{`{}`, func() {}},
		{`{"description":"after"}`, func() { w.Description = "after" }},
		{`{"description":""}`, func() { w.Description = "" }},
		{`{"url":"http://10.1.2.3:8080/x"}`, func() { w.URL = "http://10.1.2.3:8080/x" }},
		{`{"events":["radar","attestation"]}`,
			func() { w.Events = []ledger.EventType{ledger.EventAttestation, ledger.EventRadar} }},
		{`{"authorization":"Bearer x"}`, func() { w.Authorization = outbound.MaskedAuthorization }},
		{`{"url":"http://10.1.2.3:8080/y"}`, func() { w.URL = "http://10.1.2.3:8080/y" }},
		{`{"authorization":""}`, func() { w.Authorization = "" }},
		{`{"active":false}`, func() { w.Active = false }},
		{`{"active":true,"description":"again"}`, func() { w.Active, w.Description = true, "again" }},
	} {
		test.change()
		if got := string(b.patch(at, test.body).want(200).body); got != toJSON(t, w) {
			t.Errorf("after %s: got\n%s, want\n%s", test.body, got, toJSON(t, w))
		}
		read := b.get(at).want(200)
		if string(read.body) != toJSON(t, w) || (read.header.Get("ETag") == tag) != (test.body == "{}") {
			t.Errorf("after %s: read\n%s with ETag %s, want\n%s", test.body, read.body, read.header.Get("ETag"),
				toJSON(t, w))
		}
		tag = read.header.Get("ETag")
	}
}

func TestWebhookFields(t *testing.T) {
	b := newBackend(t)
	at := webhooksPath + "/" + b.webhook(`{"url":"https://ci.example.com"}`).ID
	before := b.get(at).want(200)
	for name, test := range map[string]struct {
		body   string
		status int
		code   ledger.Code
		field  string
	}{
		"no host":                 {`{"url":"https:///ledger"}`, 422, ledger.CodeInvalidField, "url"},
		"number instead of a URL": {`{"url":1}`, 400, ledger.CodeInvalidJSON, "url"},
		"repeated event type": {`{"url":"https://x.example","events":["state","state"]}`, 422, ledger.CodeInvalidField,
			"events"},
		"string for an array": {`{"url":"https://x.example","events":"state"}`, 400, ledger.CodeInvalidJSON, "events"},
		"number for an event type": {`{"url":"https://x.example","events":["state",1]}`, 400, ledger.CodeInvalidJSON,
			"events[1]"},
		"long description": {`{"url":"https://x.example","description":"` + strings.Repeat("x", 501) + `"}`, 422,
			ledger.CodeInvalidField, "description"},
		"name of the header": {`{"url":"https://x.example","authorization":"Authorization: Bearer x"}`, 422,
			ledger.CodeInvalidField, "authorization"},
		"masked header": {`{"url":"https://x.example","authorization":"********"}`, 422, ledger.CodeInvalidField,
			"authorization"},
		"string for a boolean": {`{"url":"https://x.example","active":"true"}`, 400, ledger.CodeInvalidJSON, "active"},
		"secret":               {`{"url":"https://x.example","secret":"whsec_x"}`, 400, ledger.CodeUnknownField, "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.post(webhooksPath, test.body).wantFields(test.status, test.code, test.field)
			b.patch(at, test.body).wantFields(test.status, test.code, test.field)
		})
	}

	b.post(webhooksPath, `{"events":["state"]}`).wantFields(422, ledger.CodeInvalidField, "url")
	for _, send := range []func(string) response{
		func(body string) response { return b.post(webhooksPath, body) },
		func(body string) response { return b.patch(at, body) },
	} {
		send("").wantProblem(415, ledger.CodeUnsupportedMediaType)
		send(" ").wantProblem(400, ledger.CodeInvalidJSON)
		send(`{"url":"`+strings.Repeat("x", 1<<20)+`"}`).wantProblem(413, ledger.CodePayloadTooLarge)
	}

	if after := b.get(at).want(200); string(after.body) != string(before.body) {
		t.Errorf("after invalid changes: %s, before: %s", after.body, before.body)
	}
	if list := decode[ledger.Page[outbound.Webhook]](b.get(webhooksPath).want(200)); len(list.Data) != 1 {
		t.Errorf("webhooks after invalid requests: %+v", list.Data)
	}
}

// guard is a Config.CheckTarget that rejects one host and records the URLs it checks.
type guard struct {
	rejected string // host
	checked  []string
}

func (g *guard) check(_ context.Context, target string) error {
	g.checked = append(g.checked, target)
	if u, err := url.Parse(target); err == nil && u.Hostname() == g.rejected {
		return ledger.FieldErrorf(
			ledger.CodeInvalidField, "url", "%s is a private address: name its network in webhooks.allowed_networks", g.rejected)
	}
	return nil
}

func TestWebhookTargets(t *testing.T) {
	g := &guard{rejected: "10.0.0.1"}
	b := newBackend(t, func(c *Config) { c.CheckTarget = g.check })
	const private, public = `{"url":"http://10.0.0.1/hook"}`, `{"url":"https://ci.example.com"}`
	wantRejected := func(a response) {
		t.Helper()
		a.wantFields(422, ledger.CodeInvalidField, "url")
		if !strings.Contains(string(a.body), "webhooks.allowed_networks") {
			t.Errorf("%s: %s, want it to name the setting", a.what, a.body)
		}
	}
	wantRejected(b.post(webhooksPath, private))
	at := webhooksPath + "/" + b.webhook(public).ID
	wantRejected(b.patch(at, private))

	// Only a changed URL of an existing webhook is checked.
	g.checked = nil
	g.rejected = "ci.example.com"
	b.patch(at, public).want(200)
	b.patch(at, `{"description":"x","active":false}`).want(200)
	b.patch(webhooksPath+"/whk_01KAJ8Q0M6R4YB0J3X5T9ZC2DE", private).wantProblem(404, ledger.CodeNotFound)
	b.post(webhooksPath, `{"url":"ftp://x.example"}`).wantFields(422, ledger.CodeInvalidField, "url")
	if len(g.checked) != 0 {
		t.Errorf("checked %q", g.checked)
	}
	b.patch(at, private).want(200)
	wantRejected(b.patch(at, public))
}

// webhookRoute is a request to an endpoint for webhooks.
type webhookRoute struct{ method, path, body string }

// webhookRoutes returns requests to all endpoints for one webhook, and to those for the
// list.
func (b *backend) webhookRoutes(repo, webhook, delivery string) (one, list []webhookRoute) {
	b.t.Helper()
	for _, rt := range b.server.routes() {
		if !strings.Contains(rt.pattern, "/webhooks") {
			continue
		}
		r := webhookRoute{rt.method,
			strings.NewReplacer(":org/repos/:repo", repo, ":id", webhook, ":delivery", delivery).Replace(rt.pattern), ""}
		switch {
		case rt.method == "PATCH":
			r.body = `{"url":"https://other.example"}`
		case strings.HasSuffix(rt.pattern, "/replay"):
			r.body = fmt.Sprintf(`{"since":%q}`, b.clock.time())
		case rt.method == "POST" && strings.HasSuffix(rt.pattern, "/webhooks"):
			r.body = `{"url":"https://ci.example.com"}`
		}

		if strings.Contains(rt.pattern, ":id") {
			one = append(one, r)
		} else {
			list = append(list, r)
		}
	}
	if len(one) != 9 || len(list) != 2 {
		b.t.Fatalf("%d routes for one webhook and %d for the list, want 9 and 2", len(one), len(list))
	}
	return one, list
}

func (b *backend) call(r webhookRoute, token string) response {
	b.t.Helper()
	return b.send(request{method: r.method, path: r.path, token: token, body: r.body})
}

// A webhook's URL is often a secret, and so is the response of a receiver.
func TestWebhooksAreForMaintainers(t *testing.T) {
	b := newBackend(t)
	w := b.webhook(`{"url":"https://ci.example.com"}`)
	d := decode[outbound.Delivery](b.post(webhooksPath+"/"+w.ID+"/ping", "").want(202))
	one, list := b.webhookRoutes("acme/repos/api", w.ID, d.ID)
	for _, r := range slices.Concat(one, list) {
		for _, token := range []string{b.reader, b.writer} {
			p := b.call(r, token).wantProblem(403, ledger.CodeForbidden)
			if !strings.Contains(p.Detail, "scope maintain") {
				t.Errorf("%s %s: detail %q", r.method, r.path, p.Detail)
			}
		}
		b.call(r, "").wantProblem(401, ledger.CodeUnauthenticated)
	}
}

// A webhook is only accessible through its own repo.
func TestWebhooksOfOtherRepos(t *testing.T) {
	b := newBackend(t)
	b.host("POST", "/v1/orgs", `{"name":"umbrella"}`).want(201)
	b.host("POST", "/v1/orgs/umbrella/repos", `{"name":"api"}`).want(201)
	b.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	w := b.webhook(`{"url":"https://ci.example.com"}`)
	d := decode[outbound.Delivery](b.post(webhooksPath+"/"+w.ID+"/ping", "").want(202))
	before := b.get(webhooksPath + "/" + w.ID).want(200)

	for _, test := range []struct{ repo, token string }{
		{"acme/repos/web", b.admin}, {"umbrella/repos/api", b.token("umbrella", "admin")}} {
		one, list := b.webhookRoutes(test.repo, w.ID, d.ID)
		for _, r := range one {
			b.call(r, test.token).wantProblem(404, ledger.CodeNotFound)
		}
		for _, r := range list {
			if a := b.call(r, test.token); strings.Contains(string(a.body), w.ID) || a.status >= 300 {
				t.Errorf("%s: %d %s", a.what, a.status, a.body)
			}
		}
	}
	const none = "01KAJ8Q0M6R4YB0J3X5T9ZC2DE"
	unknown, _ := b.webhookRoutes("acme/repos/api", "whk_"+none, d.ID)
	ofUnknownRepo, listOfUnknownRepo := b.webhookRoutes("acme/repos/nowhere", w.ID, d.ID)
	for _, r := range slices.Concat(unknown, ofUnknownRepo, listOfUnknownRepo) {
		b.call(r, b.admin).wantProblem(404, ledger.CodeNotFound)
	}

	// A delivery is only accessible through its own webhook.
	other := b.webhook(`{"url":"https://other.example"}`)
	for _, at := range []string{webhooksPath + "/" + other.ID + "/deliveries/" + d.ID, webhooksPath + "/" + w.ID +
		"/deliveries/dlv_" + none} {
		b.get(at).wantProblem(404, ledger.CodeNotFound)
		b.post(at+"/redeliver", "").wantProblem(404, ledger.CodeNotFound)
	}
	if after := b.get(webhooksPath + "/" + w.ID).want(200); string(after.body) != string(before.body) {
		t.Errorf("the webhook changed to %s, from %s", after.body, before.body)
	}
}

// The name of a repo ignores case, for webhooks too.
func TestWebhookRepoIgnoresCase(t *testing.T) {
	b := newBackend(t)
	w := b.webhook(`{"url":"https://ci.example.com"}`)
	at := "/v1/orgs/acme/repos/API/webhooks/" + w.ID
	if got := decode[outbound.Webhook](b.get(at).want(200)); got.Repo != "api" {
		t.Errorf("read as a webhook of %s", got.Repo)
	}
	b.get(b.post(at+"/ping", "").want(202).header.Get("Location")).want(200)
}

func TestRotateWebhook(t *testing.T) {
	const hour = time.Hour
	for name, test := range map[string]struct {
		body    string
		overlap time.Duration
	}{
		"no body":    {"", 24 * hour},
		"default":    {"{}", 24 * hour},
		"three days": {`{"overlap":"3d"}`, 72 * hour},
		"maximum":    {`{"overlap":"30d"}`, 720 * hour},
		"no overlap": {`{"overlap":"0s"}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			w := b.webhook(`{"url":"https://ci.example.com"}`)
			at := webhooksPath + "/" + w.ID
			resp := b.post(at+"/rotate", test.body).want(200)
			rotated := decode[outbound.Webhook](resp)
			if rotated.Secret == w.Secret || !strings.HasPrefix(rotated.Secret, "whsec_") ||
				resp.header.Get("Cache-Control") != "no-store" {
				t.Errorf("rotated to %+v", rotated)
			}
			var until ledger.Time
			if test.overlap > 0 {
				until = b.clock.time().Add(test.overlap)
			}
			if got := decode[outbound.Webhook](b.get(at).want(200)); got.PreviousSecretUntil != until ||
				rotated.PreviousSecretUntil != until || got.Secret != "" {
				t.Errorf("read %+v, want the previous secret until %q", got, until)
			}

			// The dispatcher signs with the new secret.
			b.post(at+"/ping", "").want(202)
			endpoint, due := b.claim(w.ID)
			if len(due) != 1 || endpoint.Secret != rotated.Secret ||
				(endpoint.PreviousSecret == w.Secret) != (test.overlap > 0) || endpoint.PreviousUntil != until {
				t.Errorf("claimed %d deliveries for %+v", len(due), endpoint)
			}
			b.clock.advance(test.overlap)
			if got := decode[outbound.Webhook](b.get(at).want(200)); got.PreviousSecretUntil != 0 {
				t.Errorf("after the overlap the previous secret signs until %s", got.PreviousSecretUntil)
			}
		})
	}
}

func TestInvalidRotations(t *testing.T) {
	b := newBackend(t)
	w := b.webhook(`{"url":"https://ci.example.com"}`)
	at := webhooksPath + "/" + w.ID + "/rotate"
	for name, test := range map[string]struct {
		body   string
		status int
		code   ledger.Code
		fields []string
	}{
		"too long":       {`{"overlap":"30d1ms"}`, 422, ledger.CodeInvalidField, []string{"overlap"}},
		"out of range":   {`{"overlap":"9999d"}`, 400, ledger.CodeInvalidJSON, []string{"overlap"}},
		"negative":       {`{"overlap":"-1h"}`, 400, ledger.CodeInvalidJSON, []string{"overlap"}},
		"not a duration": {`{"overlap":"soon"}`, 400, ledger.CodeInvalidJSON, []string{"overlap"}},
		"number":         {`{"overlap":24}`, 400, ledger.CodeInvalidJSON, []string{"overlap"}},
		"unknown field":  {`{"overlpa":"1h"}`, 400, ledger.CodeUnknownField, []string{"overlpa"}},
		"truncated":      {`{`, 400, ledger.CodeInvalidJSON, nil},
	} {
		t.Run(name, func(t *testing.T) { b.in(t).post(at, test.body).wantFields(test.status, test.code, test.fields...) })
	}
	b.send(request{method: "POST", path: at, token: b.admin, body: "{}",
		header: map[string]string{"Content-Type": "text/plain"}}).wantProblem(415, ledger.CodeUnsupportedMediaType)
	b.post(at, strings.Repeat(" ", 1<<20+1)).wantProblem(413, ledger.CodePayloadTooLarge)
	b.post(webhooksPath+"/"+w.ID+"/ping", "").want(202)
	if endpoint, _ := b.claim(w.ID); endpoint.Secret != w.Secret || endpoint.PreviousSecret != "" {
		t.Errorf("after invalid rotations: %+v", endpoint)
	}
}

// The administrator of the host manages webhooks without a token.
func TestWebhooksByHost(t *testing.T) {
	b := newBackend(t)
	created := decode[outbound.Webhook](b.host("POST", webhooksPath, `{"url":"https://ci.example.com"}`).want(201))
	at := webhooksPath + "/" + created.ID
	b.host("PATCH", at, `{"description":"x"}`).want(200)
	if rotated := decode[outbound.Webhook](b.host("POST", at+"/rotate", "").want(200)); created.Secret == "" ||
		rotated.Secret == "" || rotated.Description != "x" {
		t.Errorf("created %+v, rotated to %+v", created, rotated)
	}
	location := b.host("POST", at+"/ping", "").want(202).header.Get("Location")
	b.host("GET", location, "").want(200)
	b.host("POST", location+"/redeliver", "").want(202)
	b.host("POST", at+"/replay", fmt.Sprintf(`{"since":%q}`, b.clock.time())).want(202)
	if list := decode[ledger.Page[outbound.Delivery]](b.host("GET", at+"/deliveries", "").want(200)); len(list.Data) != 1 {
		t.Errorf("deliveries: %+v", list.Data)
	}
	b.host("DELETE", at, "").want(204)
	b.host("GET", at, "").wantProblem(404, ledger.CodeNotFound)
}

func TestLogsHaveNoSigningSecret(t *testing.T) {
	var log bytes.Buffer
	b := newBackend(t, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	w := b.webhook(`{"url":"https://ci.example.com/hidden-path","authorization":"Bearer hidden-key"}`)
	elsewhere := b.patch(webhooksPath+"/"+w.ID, `{"url":"https://evil.example"}`)
	elsewhere.wantFields(422, ledger.CodeInvalidField, "authorization")
	rotated := decode[outbound.Webhook](b.post(webhooksPath+"/"+w.ID+"/rotate", "").want(200))
	shown := decode[outbound.Webhook](b.get(webhooksPath + "/" + w.ID).want(200))
	if !strings.Contains(log.String(), "/rotate") {
		t.Errorf("the log has no rotation: %s", log.String())
	}
	for _, secret := range []string{w.Secret[6:], rotated.Secret[6:], "whsec_", "hidden-path", "hidden-key"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log contains %s: %s", secret, log.String())
		}
	}
	if shown.Secret != "" {
		t.Errorf("GET returns the secret %s", shown.Secret)
	}
}
