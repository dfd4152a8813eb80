package ledger

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Webhook is a URL to which the events of one repo are posted.
type Webhook struct {
	ID          string      `json:"id"`
	Org         string      `json:"org"`
	Repo        string      `json:"repo"`
	URL         string      `json:"url"`
	Events      []EventType `json:"events"`
	Active      bool        `json:"active"`
	Description string      `json:"description"`
	CreatedAt   Time        `json:"created_at"`
	// DisabledReason tells why ledgerd has made the webhook inactive by itself.
	DisabledReason string `json:"disabled_reason,omitzero"`
	DisabledAt     Time   `json:"disabled_at,omitzero"`
	// FailingSince is when the first attempt failed after the last success.
	FailingSince Time `json:"failing_since,omitzero"`
	// PreviousSecretUntil is how long the secret before this one signs too.
	PreviousSecretUntil Time `json:"previous_secret_until,omitzero"`
	// Secret is what deliveries are signed with; present only in the answer that made it.
	Secret string `json:"secret,omitzero"`
}

// A NewWebhook asks for a webhook.
type NewWebhook struct {
	URL string `json:"url"`
	// Events are the types that are sent; DefaultWebhookEvents where nil.
	Events      []EventType `json:"events,omitzero"`
	Description string      `json:"description,omitzero"`
	// Active is true where it is left out.
	Active *bool `json:"active,omitzero"`
}

// A WebhookChange changes what it names of a webhook. Making one active takes
// DisabledReason away.
type WebhookChange struct {
	URL         *string      `json:"url,omitzero"`
	Events      *[]EventType `json:"events,omitzero"`
	Description *string      `json:"description,omitzero"`
	Active      *bool        `json:"active,omitzero"`
}

// DefaultWebhookEvents returns the types that a webhook gets unless it names
// others: all but radar.
func DefaultWebhookEvents() []EventType {
	return []EventType{EventAttestation, EventState, EventPolicy}
}

const (
	maxWebhookURL         = 2048
	maxWebhookDescription = 500
)

// Check reports what cannot be about a webhook that is asked for, and fills in
// the events that it leaves out.
func (n *NewWebhook) Check() error {
	if n.Events == nil {
		n.Events = DefaultWebhookEvents()
	}
	return WebhookChange{URL: &n.URL, Events: &n.Events, Description: &n.Description}.Check()
}

// Check reports what cannot be about a change.
func (c WebhookChange) Check() error {
	if c.URL != nil {
		if err := checkWebhookURL(*c.URL); err != nil {
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
			return FieldErrorf(CodeInvalidField, "description", "use one line of at most %d characters", maxWebhookDescription)
		}
	}
	return nil
}

func checkWebhookURL(text string) error {
	u, err := url.Parse(text)
	var problem string
	switch {
	case text == "":
		problem = "required (use e.g. https://ci.example.com/ledger)"
	case len(text) > maxWebhookURL:
		problem = "too long: at most 2048 bytes"
	case err != nil:
		problem = "not a URL (use e.g. https://ci.example.com/ledger)"
	case u.Scheme != "https" && u.Scheme != "http":
		problem = "use http or https"
	case u.Hostname() == "":
		problem = "the host is missing"
	case !isPort(u.Port()):
		problem = "the port is out of range (use 1 to 65535)"
	case u.User != nil:
		problem = "remove the user name and password: receivers verify the signature instead"
	case u.Fragment != "":
		problem = "remove the fragment (#…): it would not be sent"
	default:
		return nil
	}
	return FieldErrorf(CodeInvalidField, "url", "%s", problem)
}

// isPort reports whether text names a port, or leaves it to the scheme.
func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && port > 0
}

func checkWebhookEvents(types []EventType) error {
	if len(types) == 0 {
		return FieldErrorf(CodeInvalidField, "events", "use at least one of attestation, state, policy and radar "+
			"(to stop deliveries, deactivate the webhook)")
	}
	for i, t := range types {
		if _, err := ParseEventType(string(t)); err != nil {
			return FieldErrorf(CodeInvalidField, "events", "%v", err)
		}
		if slices.Contains(types[:i], t) {
			return FieldErrorf(CodeInvalidField, "events", "%s occurs twice", t)
		}
	}
	return nil
}

// webhookSecretPrefix begins every signing secret, as Standard Webhooks has it.
const webhookSecretPrefix = "whsec_"

// NewWebhookSecret makes a signing secret: "whsec_" and the base64 of 32
// random bytes.
func NewWebhookSecret() string {
	var random [32]byte
	rand.Read(random[:])
	return webhookSecretPrefix + base64.StdEncoding.EncodeToString(random[:])
}

// A Rotation asks for a new signing secret.
type Rotation struct {
	// Overlap is how long the old secret signs too; DefaultOverlap where nil.
	Overlap *Duration `json:"overlap,omitzero"`
}

// DefaultOverlap is how long a secret goes on signing after its rotation,
// unless the rotation says otherwise.
const DefaultOverlap = Duration(24 * 3600 * 1e9)

const maxOverlap = 30 * day

// Check reports an overlap that cannot be, and fills in one that is left out.
// None at all ends the old secret at once.
func (r *Rotation) Check() error {
	if r.Overlap == nil {
		r.Overlap = new(DefaultOverlap)
	}
	if o := r.Overlap.Std(); o < 0 || o > maxOverlap {
		return FieldErrorf(CodeInvalidField, "overlap",
			"too long: at most %dd (0s ends the old secret immediately)", maxOverlap/day)
	}
	return nil
}

// A Replay asks for the events that a webhook has missed.
type Replay struct {
	Since Time `json:"since"`
}

// Check reports a moment that cannot be, at the given time.
func (r Replay) Check(now Time) error {
	switch {
	case r.Since == 0:
		return FieldErrorf(CodeInvalidField, "since", "required (use e.g. 2026-11-20T09:00:00Z)")
	case r.Since > now:
		return FieldErrorf(CodeInvalidField, "since", "%s is in the future (now: %s)", r.Since, now)
	}
	return nil
}

// A Replayed tells what a replay brought about.
type Replayed struct {
	// Queued counts the deliveries that wait now and did not before.
	Queued int64 `json:"queued"`
}

// EventPing is the type of a test delivery. It is not an event of the ledger: the
// history and the stream do not contain it, and no webhook can name it.
const EventPing EventType = "ping"

// A PingEvent is the body of a ping.
type PingEvent struct {
	ID        string    `json:"id"`
	Type      EventType `json:"type"` // set by Render
	Org       string    `json:"org"`
	Repo      string    `json:"repo"`
	Webhook   string    `json:"webhook"`
	Timestamp Time      `json:"timestamp"`
}

// EventType returns EventPing.
func (PingEvent) EventType() EventType { return EventPing }

func (e PingEvent) typed() Event { e.Type = e.EventType(); return e }

// A DeliveryStatus tells how far a delivery has come.
type DeliveryStatus string

// The statuses of a delivery.
const (
	DeliveryPending   DeliveryStatus = "pending"   // it will be tried, or tried again
	DeliverySucceeded DeliveryStatus = "succeeded" // the receiver answered 2xx
	DeliveryFailed    DeliveryStatus = "failed"    // the last retry failed
)

// ParseDeliveryStatus reads the name of a status.
func ParseDeliveryStatus(name string) (DeliveryStatus, error) {
	switch s := DeliveryStatus(name); s {
	case DeliveryPending, DeliverySucceeded, DeliveryFailed:
		return s, nil
	}
	return "", fmt.Errorf("%q is not a delivery status (use pending, succeeded or failed)", text.Clip(name))
}

// A Delivery is the sending of one event to one webhook.
type Delivery struct {
	ID      string         `json:"id"`
	Webhook string         `json:"webhook"`
	Event   string         `json:"event"`
	Type    EventType      `json:"type"`
	Status  DeliveryStatus `json:"status"`
	// Attempts counts those that have ended.
	Attempts  int  `json:"attempts"`
	CreatedAt Time `json:"created_at"`
	// NextAttemptAt is when it is tried next, while it waits for that: not while
	// an attempt is under way, nor while the webhook is inactive.
	NextAttemptAt Time `json:"next_attempt_at,omitzero"`
	// LastStatus is the HTTP status of the last attempt's answer; 0 where there was none.
	LastStatus int `json:"last_status,omitzero"`
	// LastError tells why the last attempt failed; empty where it succeeded.
	LastError string `json:"last_error,omitzero"`
}

// A DeliveryRecord is a delivery with the body that it sends and all its
// attempts, oldest first.
type DeliveryRecord struct {
	Delivery `json:",embed"`
	// Body is what every attempt sends: the bytes stored for the event.
	Body json.RawMessage `json:"body"`
	// History holds the attempts.
	History []Attempt `json:"history"`
}

// An Attempt is one request of a delivery and what came of it.
type Attempt struct {
	Number     int   `json:"number"` // from 1
	At         Time  `json:"at"`
	DurationMS int64 `json:"duration_ms"`
	// Error tells why it failed; empty where it succeeded.
	Error    string          `json:"error,omitzero"`
	Request  AttemptRequest  `json:"request"`
	Response AttemptResponse `json:"response,omitzero"`
}

// An AttemptRequest is the head of what was sent.
type AttemptRequest struct {
	URL     string              `json:"url"`
	Headers map[string][]string `json:"headers"`
}

// An AttemptResponse is what the receiver answered; the zero value where it
// did not.
type AttemptResponse struct {
	Status  int                 `json:"status"`
	Headers map[string][]string `json:"headers,omitempty"`
	// Body is the beginning of the answer, at most 16 KiB of it, with what is
	// not UTF-8 replaced.
	Body string `json:"body,omitzero"`
	// Truncated says that there was more.
	Truncated bool `json:"truncated,omitzero"`
}

// The types below are what the store hands to whoever sends deliveries, and
// gets back.

// An Endpoint is where the deliveries of a webhook go, and what signs them.
type Endpoint struct {
	Webhook string // its id
	URL     string
	Secret  string
	// PreviousSecret signs too, until PreviousUntil; empty where there is none.
	PreviousSecret string
	PreviousUntil  Time
}

// A DueDelivery is a delivery that its holder has to try until Lease ends: up
// to then nobody else will.
type DueDelivery struct {
	ID    string // dlv_…
	Event string // evt_…
	Type  EventType
	Body  []byte
	// Attempts counts those before this one, Tries those since it was queued
	// or last redelivered: they say how long to wait for the next.
	Attempts int
	Tries    int
	Lease    Time
}

// An Outcome is what came of one attempt.
type Outcome struct {
	Webhook  string // the webhook's id
	Delivery string
	Attempt  Attempt
	// Status is what the delivery has become.
	Status DeliveryStatus
	// RetryAt is when it is tried again, if it is pending.
	RetryAt Time
	// Disable is why the webhook becomes inactive; empty where it does not.
	Disable string
	// Tries and Lease are those of the DueDelivery that was tried. Somebody else
	// may have got the delivery since, or asked for it anew.
	Tries int
	Lease Time
}
