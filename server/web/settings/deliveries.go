package settings

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/server/web/format"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// A webhookPage shows a webhook and a page of its deliveries.
type webhookPage struct {
	Webhook    outbound.Webhook
	State      string // of the webhook: active, failing, disabled or inactive
	Status     string // filter for the deliveries; empty for all
	Statuses   []string
	Deliveries []outbound.Delivery
	Next       string
}

func showWebhook(v *page.Visit) (*page.Response, error) {
	webhook, err := v.API.Webhook(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	status := v.Query("status")
	p, err := page.Filled(client.Query{Limit: settingsRows, Cursor: v.Query("cursor")},
		func(q client.Query) (ledger.Page[outbound.Delivery], error) {
			return v.API.DeliveriesPage(v.Ctx(), v.Org, v.Repo, webhook.ID,
				client.DeliveryFilter{Status: outbound.DeliveryStatus(status)}, q)
		})
	if err != nil {
		return nil, err
	}
	return v.Page("webhook", "Webhook", webhookPage{
		Webhook: webhook, State: stateOfWebhook(webhook), Status: status, Deliveries: p.Data,
		Next: v.NextPage(p.NextCursor),
		Statuses: []string{
			string(outbound.DeliveryPending), string(outbound.DeliverySucceeded), string(outbound.DeliveryFailed),
		},
	}), nil
}

// deliveryWait is how long the response to a ping or redelivery waits for the
// attempt, so that the page usually shows its outcome.
const deliveryWait = 2 * time.Second

func pingWebhook(v *page.Visit) (*page.Response, error) {
	d, err := v.API.PingWebhook(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	return afterAttempt(v, d), nil
}

func redeliver(v *page.Visit) (*page.Response, error) {
	d, err := v.API.Redeliver(v.Ctx(), v.Org, v.Repo, v.Value("id"), v.Value("delivery"))
	if err != nil {
		return nil, err
	}
	return afterAttempt(v, d), nil
}

// afterAttempt redirects to the page of a pending delivery, after its next
// attempt or deliveryWait.
func afterAttempt(v *page.Visit, d outbound.Delivery) *page.Response {
	ctx, cancel := context.WithTimeout(v.Ctx(), deliveryWait)
	defer cancel()
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case <-time.After(deliveryWait / 40):
			now, err := v.API.Delivery(ctx, v.Org, v.Repo, d.Webhook, d.ID)
			done = err != nil || now.Attempts > d.Attempts
		}
	}
	return page.SeeOther(v.PathOf(page.WebhooksPattern, d.Webhook, "deliveries", d.ID))
}

// A deliveryPage shows a delivery with its body and attempts.
type deliveryPage struct {
	Delivery outbound.Delivery
	Webhook  outbound.Webhook
	// Body is the indented body. Sent is the body as sent, or empty if it is longer
	// than maxSentText.
	Body excerpt
	Sent string
	// Attempts are the last maxAttempts attempts, newest first. Earlier counts the
	// others.
	Attempts []attemptView
	Earlier  int
}

// An attemptView is an attempt with its texts shortened and made visible.
type attemptView struct {
	Number          int
	At              ledger.Time
	DurationMS      int64
	Error           string
	URL             string
	RequestHeaders  []headerLine
	HasResponse     bool
	Status          int
	ResponseHeaders []headerLine
	Body            excerpt
	// Truncated reports whether the ledger stored only the beginning of the body.
	Truncated bool
}

type headerLine struct{ Name, Value string }

// Limits for a delivery's page, in bytes (maxSentText) or characters.
const (
	maxSentText     = 16 << 10
	maxBodyText     = 20_000
	maxResponseText = 4_000
	maxHeaderText   = 400
	maxHeaderLines  = 60
	maxAttempts     = 30
)

func showDelivery(v *page.Visit) (*page.Response, error) {
	webhook, err := v.API.Webhook(v.Ctx(), v.Org, v.Repo, v.Value("id"))
	if err != nil {
		return nil, err
	}
	d, err := v.API.Delivery(v.Ctx(), v.Org, v.Repo, webhook.ID, v.Value("delivery"))
	if err != nil {
		return nil, err
	}
	p := deliveryPage{Delivery: d.Delivery, Webhook: webhook, Body: excerptOf(format.Indented(d.Body), maxBodyText)}
	if len(d.Body) <= maxSentText {
		p.Sent = string(d.Body)
	}

	for _, a := range slices.Backward(d.History) {
		if len(p.Attempts) == maxAttempts {
			p.Earlier = len(d.History) - maxAttempts
			break
		}
		p.Attempts = append(p.Attempts, viewOf(a))
	}
	return v.Page("delivery", "Delivery", p), nil
}

func viewOf(a outbound.Attempt) attemptView {
	return attemptView{
		Number: a.Number, At: a.At, DurationMS: a.DurationMS, Error: plainText(a.Error, maxHeaderText),
		URL: plainText(a.Request.URL, 2048), RequestHeaders: headerLines(a.Request.Headers),
		HasResponse: a.Response.Status != 0, Status: a.Response.Status, ResponseHeaders: headerLines(a.Response.Headers),
		Body: excerptOf(a.Response.Body, maxResponseText), Truncated: a.Response.Truncated,
	}
}

// headerLines returns the headers sorted by name.
func headerLines(headers map[string][]string) []headerLine {
	var lines []headerLine
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			if len(lines) == maxHeaderLines {
				return append(lines, headerLine{"…", "and more"})
			}
			lines = append(lines, headerLine{plainText(name, 100), plainText(value, maxHeaderText)})
		}
	}
	return lines
}

// An excerpt is the beginning of an untrusted text, with invisible characters
// made visible.
type excerpt struct {
	Text string
	// Clipped reports whether the text has more than Shown characters.
	Clipped      bool
	Shown, Total int
}

func excerptOf(text string, limit int) excerpt {
	total := utf8.RuneCountInString(text)
	return excerpt{format.Visible(format.First(text, limit)), total > limit, min(total, limit), total}
}

// plainText returns a text on one line, cut to limit characters with an
// ellipsis.
func plainText(text string, limit int) string {
	return strings.NewReplacer("\n", "␊", "\t", "␉").Replace(format.Visible(format.Clip(text, limit)))
}
