// Package settings compares who has access to an org, and its settings, with its audit events, which
// it replays. The command 'ledgerd check' does so with the rows that the store reads.
package settings

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// The kinds of resources that the package handles differently from others: the first part of audit actions.
const (
	Org     = "org"
	Repo    = "repo"
	Token   = "token"
	Session = "session" // a sign-in, or a session of one or of a token
	Member  = "member"
	Webhook = "webhook"

	exchangeRule = "exchange_rule"
)

// Fields of audit events that say something about them.
const (
	// KindField is the kind of the resource in an event of the action [ledger.AuditDatabaseBaseline].
	KindField = "kind"
	// VersionField is in the event since which the events of an org have all fields.
	VersionField = "fields_version"
	// SecretField is the digest of a secret.
	SecretField = "secret_digest"
)

// A Row is a resource of an org that is in force, such as a token that was not revoked, as a database has it.
type Row struct {
	Kind   string // the first part of its audit actions
	Target string // its ID or name
	Repo   string // the name of its repo; empty if it has none
	Fields []ledger.Field
}

// IsPast reports whether a session or the token of a CI job has expired: its row is deleted in the
// background, without an event. Other tokens that have expired stay.
func (r Row) IsPast(now ledger.Time) bool { return r.values().isPast(r.Kind, now) }

// Has reports whether the row has a field, which may be absent.
func (r Row) Has(field string) bool {
	return slices.ContainsFunc(r.Fields, func(f ledger.Field) bool { return f.Name == field })
}

func (r Row) values() values { return valuesOf(ledger.Changes(nil, r.Fields)) }

// values are the fields of a resource, as JSON. A field that is absent has the value "".
type values map[string]string

// valuesOf returns the fields of a resource after changes.
func valuesOf(changes []ledger.AuditChange) values {
	v := make(values, len(changes)+1)
	for _, c := range changes {
		v[c.Field] = shorten(c.Field, c.After)
	}
	return v
}

// maxValue is the size up to which a value is kept, in bytes.
const maxValue = 100

// shorten returns the value of a field. Of one that is too large it has the beginning, with the digest.
func shorten(field string, value json.RawMessage) string {
	if len(value) <= maxValue || field == "repos" { // these are numbered
		return string(value)
	}
	return fmt.Sprintf("%s (sha256:%x)", text.ClipAt(string(value), maxValue/2), sha256.Sum256(value))
}

// text returns the value of a field that is a text.
func (v values) text(field string) (s string) {
	_ = json.Unmarshal([]byte(v[field]), &s) // an absent one is empty
	return s
}

// expires returns when the resource expires; 0: never.
func (v values) expires() (at ledger.Time) {
	_ = at.UnmarshalText([]byte(v.text("expires_at")))
	return at
}

// isExpired reports whether the resource has expired.
func (v values) isExpired(now ledger.Time) bool {
	end := v.expires()
	return end != 0 && end <= now
}

func (v values) isPast(kind string, now ledger.Time) bool {
	return (kind == Session || kind == Token && v["rule"] != "") && v.isExpired(now)
}

// encode returns the values as one text, which takes less memory.
func (v values) encode() string {
	var b strings.Builder
	for field, value := range v {
		if value != "" {
			b.WriteString(field + "\x00" + value + "\x00")
		}
	}
	return b.String()
}

// decode is the inverse of encode.
func decode(encoded string) values {
	v := make(values)
	for encoded != "" {
		var field string
		field, encoded, _ = strings.Cut(encoded, "\x00")
		v[field], encoded, _ = strings.Cut(encoded, "\x00")
	}
	return v
}
