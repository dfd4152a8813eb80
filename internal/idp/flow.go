package idp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// FlowLife is how long a person has to sign in at the provider.
const FlowLife = 10 * time.Minute

// skew is how much the clocks of servers and of a provider may differ.
const skew = time.Minute

// MaxFlow is the maximum length of an encoded Flow in bytes. Browsers accept cookies of 4,096 bytes.
const MaxFlow = 3500

// A Request says what a sign-in is for.
type Request struct {
	// Next is the page to show afterwards, and Org the org to sign in to. Both may be empty.
	Next string `json:"next,omitempty"`
	Org  string `json:"org,omitempty"`
	// MaxAge is the maximum age in seconds of the person's authentication by the provider. If it is
	// 0, the provider must ask for it again; if it is nil, any age will do.
	MaxAge *int `json:"max_age,omitempty"`
}

// A Flow is a sign-in that has begun. The browser keeps it in a cookie. The state, the nonce and the
// verifier of PKCE are derived from its key and its other fields, so they fit no other flow. The
// state and the nonce, which are in URLs, do not reveal the key.
type Flow struct {
	Provider string      `json:"provider"`
	Key      []byte      `json:"key"` // random
	Begun    ledger.Time `json:"begun"`
	Request
}

// keySize is the size of a key in bytes.
const keySize = 32

// newFlow returns a new flow of a provider.
func newFlow(provider string, r Request, now ledger.Time) Flow {
	key := make([]byte, keySize)
	rand.Read(key)
	return Flow{Provider: provider, Key: key, Begun: now, Request: r}
}

// Encode returns the text form of the flow, for a cookie. It is a secret.
func (f Flow) Encode() string { return base64.RawURLEncoding.EncodeToString(f.document()) }

func (f Flow) document() []byte {
	document, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("encode a sign-in: %v", err)) // it has texts and numbers only
	}
	return document
}

// ParseFlow parses the text form of a flow.
func ParseFlow(text string) (f Flow, err error) {
	if text == "" {
		return f, refuse("the sign-in did not begin in this browser, or more than %d minutes ago",
			FlowLife/time.Minute)
	}
	document, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = ledger.DecodeOpen(document, &f)
	}
	if err != nil || len(text) > MaxFlow || len(f.Key) != keySize {
		return Flow{}, refuse("the cookie of the sign-in is damaged")
	}
	return f, nil
}

// derive returns 256 bits for a purpose, as text.
func (f Flow) derive(purpose string) string {
	mac := hmac.New(sha256.New, f.Key)
	mac.Write([]byte(purpose + "\x00"))
	mac.Write(f.document())
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (f Flow) state() string    { return f.derive("state") }
func (f Flow) nonce() string    { return f.derive("nonce") }
func (f Flow) verifier() string { return f.derive("verifier") }

// StateHash returns the SHA-256 of the state, by which the ledger knows that it was used.
func (f Flow) StateHash() [sha256.Size]byte { return sha256.Sum256([]byte(f.state())) }

// check returns an error unless a provider has sent the answer, for the flow.
func (f Flow) check(provider string, answer url.Values, now ledger.Time) error {
	state := answer["state"]
	switch age := now.Sub(f.Begun); {
	case f.Provider != provider:
		return refuse("the sign-in began with another provider")
	case age < -skew || age >= FlowLife: // the clocks of servers may differ
		return refuse("the sign-in began more than %d minutes ago", FlowLife/time.Minute)
	case len(state) != 1 || subtle.ConstantTimeCompare([]byte(state[0]), []byte(f.state())) != 1:
		return refuse("the answer belongs to another sign-in, perhaps in another tab")
	}
	return nil
}

// refuse returns an error with CodeUnauthenticated, which counts as a failed sign-in.
func refuse(format string, args ...any) error {
	return ledger.Errorf(ledger.CodeUnauthenticated, format+": start again", args...)
}
