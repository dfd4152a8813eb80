package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/webhook"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="

var signedAt = time.Unix(1763715600, 0)

func TestSign(t *testing.T) {
	body := []byte(`{"id":"evt_1"}`)
	// Computed independently of Sign, as documented.
	h := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(h, "1763715600.%s", body)
	want := "t=1763715600, v1=" + base64.StdEncoding.EncodeToString(h.Sum(nil))
	if got := webhook.Sign(secret, signedAt, body); got != want {
		t.Errorf("Sign = %s\nwant   %s", got, want)
	}
}

func TestVerify(t *testing.T) {
	body, other := []byte(`{"id":"evt_1"}`), outbound.NewWebhookSecret()
	good, old := webhook.Sign(secret, signedAt, body), webhook.Sign(other, signedAt, body)
	stamp, mac, _ := strings.Cut(good, ", ")
	one := func(name, value string) http.Header { return http.Header{name: {value}} }
	for _, c := range []struct {
		what   string
		header http.Header
		body   string
		off    time.Duration
		err    string // "" if it verifies
	}{
		{what: "as sent", header: one("X-ledger-Signature", good)},
		{what: "net/http spelling", header: one("X-Ledger-Signature", good)},
		{what: "HTTP/2 spelling", header: one("x-ledger-signature", good)},
		{what: "five minutes ago", header: one("X-ledger-Signature", good), off: 5 * time.Minute},
		{what: "in five minutes", header: one("X-ledger-Signature", good), off: -5 * time.Minute},
		{what: "signed by the previous secret",
			header: http.Header{"X-Ledger-Signature": {old}, "X-Ledger-Signature-Previous": {good}}},
		{what: "previous signature only", header: one("X-Ledger-Signature-Previous", good)},

		{what: "too old", header: one("X-ledger-Signature", good), off: 301 * time.Second, err: "more than 5m"},
		{what: "from the future", header: one("X-ledger-Signature", good), off: -301 * time.Second, err: "more than 5m"},
		{what: "other body", header: one("X-ledger-Signature", good), body: `{"id":"evt_2"}`, err: "does not match"},
		{what: "other secret", header: one("X-ledger-Signature", old), err: "does not match"},
		{what: "other time", header: one("X-ledger-Signature", "t=1763715601, "+mac), err: "does not match"},
		{what: "same time, written differently", header: one("X-ledger-Signature", "t=01763715600, "+mac),
			err: "does not match"},
		{what: "no header", header: http.Header{}, err: "got 0 headers"},
		{what: "two headers", header: http.Header{"X-Ledger-Signature": {good, good}}, err: "got 2 headers"},
		{what: "two spellings", header: http.Header{"X-Ledger-Signature": {good}, "X-ledger-Signature": {good}},
			err: "got 2 headers"},
		{what: "empty", header: one("X-ledger-Signature", ""), err: "want t="},
		{what: "no space", header: one("X-ledger-Signature", strings.Replace(good, ", ", ",", 1)), err: "want t="},
		{what: "wrong order", header: one("X-ledger-Signature", mac+", "+stamp), err: "want t="},
		{what: "third part", header: one("X-ledger-Signature", good+", v2=abc"), err: "not a base64"},
		{what: "time with a sign", header: one("X-ledger-Signature", "t=+1763715600, "+mac), err: "not a Unix time"},
		{what: "huge time", header: one("X-ledger-Signature", "t=9999999999999999999, "+mac), err: "not a Unix time"},
		{what: "no padding", header: one("X-ledger-Signature", strings.TrimSuffix(good, "=")), err: "not a base64"},
		{what: "hex", header: one("X-ledger-Signature", stamp+", v1="+strings.Repeat("ab", 32)), err: "not a base64"},
	} {
		t.Run(c.what, func(t *testing.T) {
			text := string(body)
			if c.body != "" {
				text = c.body
			}
			err := webhook.Verify(secret, c.header, []byte(text), signedAt.Add(c.off))
			switch {
			case c.err == "" && err != nil:
				t.Errorf("got %v, want nil", err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("got %v, want an error with %q", err, c.err)
			}
		})
	}
	for _, secret := range []string{"", "whsec_"} {
		signed := one("X-ledger-Signature", webhook.Sign(secret, signedAt, body))
		if err := webhook.Verify(secret, signed, body, signedAt); err == nil {
			t.Errorf("Verify accepted the secret %q, with which anyone can sign", secret)
		}
	}
}

// FuzzVerify looks for values that verify but that Sign does not return.
func FuzzVerify(f *testing.F) {
	body := []byte(`{"id":"evt_1"}`)
	good := webhook.Sign(secret, signedAt, body)
	for _, seed := range []string{good, "", "t=, v1=", "t=1763715600, v1=", "t=-1, v1=" + strings.Repeat("A", 43) + "=",
		good + " ", good + "\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		err := webhook.Verify(secret, http.Header{"X-Ledger-Signature": {value}}, body, signedAt)
		if (err == nil) != (value == good) {
			t.Errorf("%q: %v", value, err)
		}
	})
}
