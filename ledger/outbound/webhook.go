// Package outbound has the webhooks to which the events of a repo are posted, and their deliveries.
package outbound

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// FailuresBeforePause is the number of failures in a row after which a webhook pauses
// between attempts.
const FailuresBeforePause = 5

// A Webhook is a URL to which the events of one repo are posted.
type Webhook struct {
	ID          string             `json:"id"`
	Org         string             `json:"org"`
	Repo        string             `json:"repo"`
	URL         string             `json:"url"`
	Events      []ledger.EventType `json:"events"`
	Active      bool               `json:"active"`
	Description string             `json:"description"`
	CreatedAt   ledger.Time        `json:"created_at"`
	// DisabledReason is why ledgerd disabled the webhook; empty if it did not.
	DisabledReason string      `json:"disabled_reason,omitzero"`
	DisabledAt     ledger.Time `json:"disabled_at,omitzero"`
	// FailingSince is when the first attempt after the last success failed.
	FailingSince ledger.Time `json:"failing_since,omitzero"`
	// PreviousSecretUntil is when the previous secret stops signing.
	PreviousSecretUntil ledger.Time `json:"previous_secret_until,omitzero"`
	// Authorization is MaskedAuthorization if deliveries have an Authorization header.
	Authorization string `json:"authorization,omitzero"`
	// Secret is the signing secret. It is set only in the response that created it.
	Secret string `json:"secret,omitzero"`
}

// Origin returns the URL without its path and query, which are often secret.
func (w Webhook) Origin() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// A NewWebhook is the body of a request to create a webhook.
type NewWebhook struct {
	URL string `json:"url"`
	// Events are the event types to send. The default is ledger.DefaultEventTypes.
	Events      []ledger.EventType `json:"events,omitzero"`
	Description string             `json:"description,omitzero"`
	// Authorization is the value of the Authorization header of deliveries. By default they have none.
	Authorization string `json:"authorization,omitzero"`
	// Active defaults to true.
	Active *bool `json:"active,omitzero"`
}

// A WebhookChange is the body of a request to update a webhook. Nil fields are not
// changed. Activating a webhook clears its DisabledReason.
type WebhookChange struct {
	URL         *string             `json:"url,omitzero"`
	Events      *[]ledger.EventType `json:"events,omitzero"`
	Description *string             `json:"description,omitzero"`
	// Authorization is the value of the Authorization header of deliveries. If it is empty, they have none.
	Authorization *string `json:"authorization,omitzero"`
	Active        *bool   `json:"active,omitzero"`
}

const (
	// MaskedAuthorization stands for the value of an Authorization header, which is not shown.
	MaskedAuthorization = "********"

	maxWebhookURL         = 2048
	maxWebhookDescription = 500
	maxAuthorization      = 4096
)

// Check returns a field error for the first invalid field. It sets Events to the
// default if it is nil, and writes the host of URL in ASCII.
func (n *NewWebhook) Check() error {
	if n.Events == nil {
		n.Events = ledger.DefaultEventTypes()
	}
	return WebhookChange{
		URL: &n.URL, Events: &n.Events, Description: &n.Description, Authorization: &n.Authorization,
	}.Check()
}

// Check returns a field error for the first invalid field. It writes the host of URL in ASCII.
func (c WebhookChange) Check() error {
	if c.URL != nil {
		if err := checkWebhookURL(c.URL); err != nil {
			return err
		}
	}
	if c.Events != nil {
		if err := checkWebhookEvents(*c.Events); err != nil {
			return err
		}
	}

	if c.Description != nil {
		if d := *c.Description; utf8.RuneCountInString(d) > maxWebhookDescription ||
			strings.ContainsFunc(d, unicode.IsControl) {
			return ledger.FieldErrorf(ledger.CodeInvalidField, "description",
				"use one line of at most %d characters", maxWebhookDescription)
		}
	}
	if c.Authorization != nil {
		return checkAuthorization(*c.Authorization)
	}
	return nil
}

// checkAuthorization checks the value of an Authorization header, which may be empty. The errors do not contain it.
func checkAuthorization(header string) error {
	var problem string
	switch {
	case len(header) > maxAuthorization:
		problem = fmt.Sprintf("too long: at most %d bytes", maxAuthorization)
	case strings.ContainsFunc(header, notPrintable), strings.TrimSpace(header) != header:
		problem = "use printable ASCII characters without a space at the start or end, such as Bearer TOKEN"
	case header == MaskedAuthorization:
		problem = "this stands for the value, which is not shown: leave the field out to keep it"
	case strings.HasPrefix(strings.ToLower(header), "authorization:"):
		problem = "leave out the name of the header: give only its value, such as Bearer TOKEN"
	default:
		return nil
	}
	return ledger.FieldErrorf(ledger.CodeInvalidField, "authorization", "%s", problem)
}

func notPrintable(r rune) bool { return r < ' ' || r > '~' }

// checkWebhookURL checks a URL, and writes its host in ASCII. It checks the host that is written,
// since an international name may become an address, or have no letters at all.
func checkWebhookURL(given *string) error {
	ascii, hostErr := text.ASCIIHost(*given)
	u, err := url.Parse(ascii)

	var problem string
	switch {
	case ascii == "":
		problem = "required (use e.g. https://ci.example.com/ledger)"
	case len(ascii) > maxWebhookURL:
		problem = "too long: at most 2048 bytes"
	case err != nil:
		problem = "not a URL (use e.g. https://ci.example.com/ledger)"
	case u.Scheme != "https" && u.Scheme != "http":
		problem = "use http or https"
	case hostErr != nil:
		problem = "the host is not a valid international domain name"
	case u.Hostname() == "":
		problem = "the host is missing"
	case text.HasEmptyLabel(u.Hostname()):
		problem = "remove the dot at the start of the host, or one of two dots in a row"
	case !text.IsPort(u.Port()):
		problem = "the port is out of range (use 1 to 65535)"
	case u.User != nil:
		problem = "remove the user name and password: receivers verify the signature instead"
	case u.Fragment != "":
		problem = "remove the fragment (#…): it would not be sent"
	default:
		*given = ascii
		return nil
	}
	return ledger.FieldErrorf(ledger.CodeInvalidField, "url", "%s", problem)
}

func checkWebhookEvents(types []ledger.EventType) error {
	if len(types) == 0 {
		return ledger.FieldErrorf(ledger.CodeInvalidField, "events",
			"use at least one of %s (to stop deliveries, deactivate the webhook)", ledger.EventTypeNames("and"))
	}
	for i, t := range types {
		if _, err := ledger.ParseEventType(string(t)); err != nil {
			return ledger.FieldErrorf(ledger.CodeInvalidField, "events", "%v", err)
		}
		if slices.Contains(types[:i], t) {
			return ledger.FieldErrorf(ledger.CodeInvalidField, "events", "%s occurs twice", t)
		}
	}
	return nil
}

// webhookSecretPrefix starts every signing secret, as specified by Standard Webhooks.
const webhookSecretPrefix = "whsec_"

// NewWebhookSecret returns a new signing secret: "whsec_" and 32 random bytes in
// base64.
func NewWebhookSecret() string {
	var random [32]byte
	rand.Read(random[:])
	return webhookSecretPrefix + base64.StdEncoding.EncodeToString(random[:])
}

// WebhookKey returns the key that a signing secret has after its prefix. ok is false if the secret has no
// key, or does not have the form of NewWebhookSecret.
func WebhookKey(secret string) (key []byte, ok bool) {
	encoded, ok := strings.CutPrefix(secret, webhookSecretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	return key, ok && err == nil && len(key) > 0
}

// A Rotation is the body of a request to rotate a signing secret.
type Rotation struct {
	// Overlap is how long deliveries are also signed with the old secret. The default is
	// DefaultOverlap.
	Overlap *ledger.Duration `json:"overlap,omitzero"`
}

// DefaultOverlap is how long deliveries are also signed with the old secret after a
// rotation, by default.
const DefaultOverlap = ledger.Duration(24 * 3600 * 1e9)

const (
	day        = 24 * time.Hour
	maxOverlap = 30 * day
)

// Check returns a field error if the overlap is out of range, and sets the default if
// it is nil. An overlap of zero ends the old secret immediately.
func (r *Rotation) Check() error {
	if r.Overlap == nil {
		r.Overlap = new(DefaultOverlap)
	}
	if o := r.Overlap.Std(); o < 0 || o > maxOverlap {
		return ledger.FieldErrorf(ledger.CodeInvalidField, "overlap",
			"too long: at most %dd (0s ends the old secret immediately)", maxOverlap/day)
	}
	return nil
}

// A Replay is the body of a request to queue the events since a time again.
type Replay struct {
	Since ledger.Time `json:"since"`
}

// Check returns a field error if Since is missing or later than now.
func (r Replay) Check(now ledger.Time) error {
	switch {
	case r.Since == 0:
		return ledger.FieldErrorf(ledger.CodeInvalidField, "since", "required (use e.g. 2026-11-20T09:00:00Z)")
	case r.Since > now:
		return ledger.FieldErrorf(ledger.CodeInvalidField, "since", "%s is in the future (now: %s)", r.Since, now)
	}
	return nil
}

// A Replayed is the result of a replay.
type Replayed struct {
	// Queued counts the deliveries that became pending.
	Queued int64 `json:"queued"`
}

// A DeliveryStatus is the status of a delivery.
type DeliveryStatus string

// The statuses of a delivery.
const (
	DeliveryPending   DeliveryStatus = "pending"   // an attempt or a retry is to come
	DeliverySucceeded DeliveryStatus = "succeeded" // the receiver responded with 2xx
	DeliveryFailed    DeliveryStatus = "failed"    // the last retry failed
)

// ParseDeliveryStatus parses the name of a delivery status.
func ParseDeliveryStatus(name string) (DeliveryStatus, error) {
	switch s := DeliveryStatus(name); s {
	case DeliveryPending, DeliverySucceeded, DeliveryFailed:
		return s, nil
	}
	return "", fmt.Errorf("%q is not a delivery status (use pending, succeeded or failed)", text.Clip(name))
}

// A Delivery is the sending of one event to one webhook.
type Delivery struct {
	ID      string           `json:"id"`
	Webhook string           `json:"webhook"`
	Event   string           `json:"event"`
	Type    ledger.EventType `json:"type"`
	Status  DeliveryStatus   `json:"status"`
	// Attempts counts the finished attempts.
	Attempts  int         `json:"attempts"`
	CreatedAt ledger.Time `json:"created_at"`
	// NextAttemptAt is when the next attempt is due. It is zero during an attempt and
	// while the webhook is inactive.
	NextAttemptAt ledger.Time `json:"next_attempt_at,omitzero"`
	// LastStatus is the HTTP status of the last response; 0 if there was none.
	LastStatus int `json:"last_status,omitzero"`
	// LastError is why the last attempt failed; empty if it succeeded.
	LastError string `json:"last_error,omitzero"`
}

// A DeliveryRecord is a delivery with its body and all its attempts, oldest first.
type DeliveryRecord struct {
	Delivery `json:",embed"`
	// Body is the body of every attempt: the bytes stored for the event.
	Body json.RawMessage `json:"body"`
	// History holds the attempts, oldest first.
	History []Attempt `json:"history"`
}

// An Attempt is one request of a delivery and its outcome.
type Attempt struct {
	Number     int         `json:"number"` // from 1
	At         ledger.Time `json:"at"`
	DurationMS int64       `json:"duration_ms"`
	// Error is why the attempt failed; empty if it succeeded.
	Error    string          `json:"error,omitzero"`
	Request  AttemptRequest  `json:"request"`
	Response AttemptResponse `json:"response,omitzero"`
}

// An AttemptRequest is the URL and the headers of a request.
type AttemptRequest struct {
	URL     string              `json:"url"`
	Headers map[string][]string `json:"headers"`
}

// An AttemptResponse is the receiver's response; the zero value if there was none.
type AttemptResponse struct {
	Status  int                 `json:"status"`
	Headers map[string][]string `json:"headers,omitempty"`
	// Body is the first 16 KiB of the body, with invalid UTF-8 replaced.
	Body string `json:"body,omitzero"`
	// Truncated reports whether the body was longer.
	Truncated bool `json:"truncated,omitzero"`
}

// The types below pass between the store and the dispatcher of deliveries.

// An Endpoint holds the URL of a webhook and the secrets with which its deliveries are made.
type Endpoint struct {
	Webhook string // the webhook's id
	URL     string
	Secret  string
	// PreviousSecret also signs until PreviousUntil; it is empty otherwise.
	PreviousSecret string
	// Authorization is the value of the Authorization header, or empty.
	Authorization string
	PreviousUntil ledger.Time
}

// A DueDelivery is a delivery that is due, leased to one dispatcher until Lease.
type DueDelivery struct {
	ID    string // dlv_…
	Event string // evt_…
	Type  ledger.EventType
	Body  []byte
	// Attempts counts all earlier attempts. Tries counts those since the delivery was
	// queued or last redelivered, and determines the delay of the next retry.
	Attempts int
	Tries    int
	Lease    ledger.Time
}

// An Outcome is the result of one attempt.
type Outcome struct {
	Webhook  string // the webhook's id
	Delivery string
	Attempt  Attempt
	// Status is the new status of the delivery.
	Status DeliveryStatus
	// RetryAt is when the next attempt is due, if Status is pending.
	RetryAt ledger.Time
	// Disable is why the webhook is to be disabled; empty if it is not.
	Disable string
	// Tries and Lease are copied from the DueDelivery. If they no longer match, the
	// delivery was leased to another dispatcher or redelivered in the meantime.
	Tries int
	Lease ledger.Time
}
