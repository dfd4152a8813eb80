package settings

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// A webhooksPage lists the webhooks of a repo. There are at most 50.
type webhooksPage struct{ Webhooks []webhookRow }

// A webhookRow is a webhook with its state.
type webhookRow struct {
	outbound.Webhook
	State string
}

// stateOfWebhook returns active, failing, disabled (by ledgerd) or inactive.
func stateOfWebhook(w outbound.Webhook) string {
	switch {
	case w.Active && w.FailingSince != 0:
		return "failing"
	case w.Active:
		return "active"
	case w.DisabledReason != "":
		return "disabled"
	}
	return "inactive"
}

func showWebhooks(v *page.Visit) (*page.Response, error) {
	webhooks, err := client.Collect(v.API.Webhooks(v.Ctx(), v.Org, v.Repo), 0)
	if err != nil {
		return nil, err
	}
	var p webhooksPage
	for _, w := range webhooks {
		p.Webhooks = append(p.Webhooks, webhookRow{w, stateOfWebhook(w)})
	}
	return v.Page("webhooks", "Webhooks", p), nil
}

// A webhookFormPage shows a form about a webhook.
type webhookFormPage struct {
	Form *page.Form
	// Webhook is the existing webhook; nil for a new one.
	Webhook *outbound.Webhook
	// Now is the current time in UTC, as a hint for the start of a replay.
	Now string
}

// hookForm returns a page with a form about a webhook.
func hookForm(v *page.Visit, p, title string, f *page.Form, webhook *outbound.Webhook) *page.Response {
	return v.Page(p, title, webhookFormPage{f, webhook, v.Clock().UTC().Format("15:04 on 2 Jan 2006")})
}

func showWebhookForm(v *page.Visit) (*page.Response, error) {
	if _, err := v.API.Repo(v.Ctx(), v.Org, v.Repo); err != nil {
		return nil, err
	}
	f := page.NewForm()
	for _, t := range ledger.DefaultEventTypes() {
		f.Values.Add("events", string(t))
	}
	return hookForm(v, "webhook-edit", "New webhook", f, nil), nil
}

// A webhookSecretPage shows a webhook with its secret, once.
type webhookSecretPage struct {
	Webhook outbound.Webhook
	// Rotated reports whether the secret replaces an older one.
	Rotated bool
}

func createWebhook(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	webhook, err := v.API.CreateWebhook(v.Ctx(), v.Org, v.Repo, outbound.NewWebhook{
		URL: strings.TrimSpace(f.Get("url")), Events: eventsOf(f), Description: strings.TrimSpace(f.Get("description")),
		Active: new(f.Get("paused") == ""), Authorization: authorizationOf(f),
	})
	if err != nil && f.Explain(err) {
		return page.Again(f, hookForm(v, "webhook-edit", "New webhook", f, nil)), nil
	}
	if err != nil {
		return nil, err
	}
	resp := v.Page("webhook-secret", "Webhook created", webhookSecretPage{Webhook: webhook})
	resp.Status = http.StatusCreated
	return resp, nil
}

// authorizationOf returns the given header, and removes it from the form, which may be shown again.
func authorizationOf(f *page.Form) string {
	given := strings.TrimSpace(f.Get("authorization"))
	f.Values.Del("authorization")
	return given
}

// eventsOf returns the chosen event types. It is never nil, because the API
// replaces a missing list by its default.
func eventsOf(f *page.Form) []ledger.EventType {
	types := []ledger.EventType{}
	for _, name := range f.Values["events"] {
		types = append(types, ledger.EventType(name))
	}
	return types
}

func editWebhookForm(v *page.Visit) (*page.Response, error) {
	webhook, err := v.API.Webhook(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	f := page.NewForm("url", webhook.URL, "description", webhook.Description)
	for _, t := range webhook.Events {
		f.Values.Add("events", string(t))
	}
	return hookForm(v, "webhook-edit", "Edit webhook", f, &webhook), nil
}

func editWebhook(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	events := eventsOf(f)
	change := outbound.WebhookChange{
		URL: new(strings.TrimSpace(f.Get("url"))), Events: &events, Description: new(strings.TrimSpace(f.Get("description"))),
	}
	given, without := authorizationOf(f), f.Get("without") != ""
	if given != "" && without {
		f.Fail("authorization", "Leave it empty to remove the header.")
		return afterForm(v, f, "webhook-edit", "Edit webhook", nil)
	}
	if given != "" || without {
		change.Authorization = &given
	}
	_, err := v.API.ChangeWebhook(v.Ctx(), v.Org, v.Repo, v.Value("id"), change)
	return afterForm(v, f, "webhook-edit", "Edit webhook", err)
}

// afterForm returns the response to a form about an existing webhook: a redirect
// to the webhook, or the form with its errors.
func afterForm(v *page.Visit, f *page.Form, p, title string, err error) (*page.Response, error) {
	if err != nil && !f.Explain(err) {
		return nil, err
	}
	if !f.Failed() {
		return page.SeeOther(v.PathOf(page.WebhooksPattern, v.Value("id"))), nil
	}
	webhook, err := v.API.Webhook(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	return page.Again(f, hookForm(v, p, title, f, &webhook)), nil
}

// activateWebhook activates or deactivates a webhook.
func activateWebhook(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	change := outbound.WebhookChange{Active: new(f.Get("active") == "true")}
	_, err := v.API.ChangeWebhook(v.Ctx(), v.Org, v.Repo, v.Value("id"), change)
	return v.Then(err, page.WebhooksPattern, v.Value("id"))
}

func removeWebhook(v *page.Visit) (*page.Response, error) {
	return v.Then(v.API.DeleteWebhook(v.Ctx(), v.Org, v.Repo, v.Value("id")), page.WebhooksPattern)
}

func rotateWebhookForm(v *page.Visit) (*page.Response, error) {
	webhook, err := v.API.Webhook(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	return hookForm(v, "webhook-rotate", "Rotate secret", page.NewForm("overlap", outbound.DefaultOverlap.String()),
		&webhook), nil
}

func rotateWebhook(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	var overlap ledger.Duration
	if err := overlap.UnmarshalText([]byte(f.Get("overlap"))); err != nil {
		f.Fail("overlap", err.Error())
		return afterForm(v, f, "webhook-rotate", "Rotate secret", nil)
	}
	webhook, err := v.API.RotateWebhook(v.Ctx(), v.Org, v.Repo, v.Value("id"), overlap)
	if err != nil {
		return afterForm(v, f, "webhook-rotate", "Rotate secret", err)
	}
	return v.Page("webhook-secret", "New secret", webhookSecretPage{webhook, true}), nil
}

func replayWebhookForm(v *page.Visit) (*page.Response, error) {
	webhook, err := v.API.Webhook(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	f := page.NewForm()
	if lost := cmp.Or(webhook.FailingSince, webhook.DisabledAt); lost != 0 {
		f.Values.Set("since", lost.Std().UTC().Format(minuteLayout))
	}
	return hookForm(v, "webhook-replay", "Replay events", f, &webhook), nil
}

// minuteLayout is the format of a datetime-local field. It has no time zone: the
// field's label says UTC.
const minuteLayout = "2006-01-02T15:04"

// sinceOf parses the value of a datetime-local field, or what ParseSince accepts.
func sinceOf(text string) (ledger.Time, error) {
	for _, layout := range []string{minuteLayout, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil && ledger.TimeOf(t) > 0 {
			return ledger.TimeOf(t), nil
		}
	}
	return ledger.ParseSince(text)
}

// A replayedPage shows the result of a replay.
type replayedPage struct {
	Webhook string
	Since   ledger.Time
	Queued  int64
}

func replayWebhook(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	since, err := sinceOf(strings.TrimSpace(f.Get("since")))
	if err != nil {
		f.Fail("since", err.Error())
		return afterForm(v, f, "webhook-replay", "Replay events", nil)
	}

	replayed, err := v.API.ReplayWebhook(v.Ctx(), v.Org, v.Repo, v.Value("id"), since)
	if err != nil {
		return afterForm(v, f, "webhook-replay", "Replay events", err)
	}
	return v.Page("webhook-replayed", "Events replayed", replayedPage{v.Value("id"), since, replayed.Queued}), nil
}
