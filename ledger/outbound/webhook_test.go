package outbound

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

func TestWebhookURLs(t *testing.T) {
	for _, url := range []string{
		"https://ci.example.com/ledger", "http://ci.example.com", "HTTPS://ci.example.com:8443/a?token=b",
		"https://[2001:db8::1]:443/", "https://ci.example.com./ledger", "https://[::ffff:203.0.113.7]/",
		"https://10.0.0.1/hook", "https://ci.example.com/" + strings.Repeat("a", 2025),
	} {
		n := NewWebhook{URL: url}
		if err := n.Check(); err != nil {
			t.Errorf("%.60s: %v", url, err)
		}
		if !slices.Equal(n.Events, []ledger.EventType{ledger.EventAttestation, ledger.EventState, ledger.EventPolicy}) {
			t.Errorf("default events: got %s", n.Events)
		}
	}

	for _, url := range []string{
		"", "ci.example.com", "/ledger", "ftp://ci.example.com", "https://", "https://:443", "https:ci.example.com",
		"https://127.0.0.1..../", "https://127.0.0.1..:80", "https://ci..example.com", "https://.example.com", "https://./",
		"https://ci.example.com../", "https://..", "https://ci.example.com:99999", "https://ci.example.com:0",
		"https://ci.example.com:http", "https://ada:pw@ci.example.com", "https://token@ci.example.com",
		"https://ci.example.com/#top", "https://ci example.com",
		"https://ci.example.com/\n", "https://ci.example.com/" + strings.Repeat("a", 2026),
	} {
		err := (&NewWebhook{URL: url}).Check()
		ledgertest.WantField(t, err, "url")
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("the error contains the password: %v", err)
		}
	}
}

func TestWebhookHostsAreStoredInASCII(t *testing.T) {
	for given, want := range map[string]string{
		"https://bücher.example/ledger":                    "https://xn--bcher-kva.example/ledger",
		"https://BÜCHER.example:8443/a%2Fb?token=é":        "https://xn--bcher-kva.example:8443/a%2Fb?token=é",
		"https://b%C3%BCcher.example":                      "https://xn--bcher-kva.example",
		"https://straße.example./":                         "https://xn--strae-oqa.example./",
		"http://例え.テスト/":                                   "http://xn--r8jz45g.xn--zckzah/",
		"http://１２７.0.0.1/":                                "http://127.0.0.1/", // which the guard refuses
		"https://ci。example.com/":                          "https://ci.example.com/",
		"https://xn--bcher-kva.example/ü":                  "https://xn--bcher-kva.example/ü",
		"https://Ci.Example.com/" + strings.Repeat("a", 9): "https://Ci.Example.com/" + strings.Repeat("a", 9),
	} {
		n := NewWebhook{URL: given}
		if err := n.Check(); err != nil || n.URL != want {
			t.Errorf("%s: got %s, %v, want %s", given, n.URL, err, want)
		}
		c := WebhookChange{URL: &given}
		if err := c.Check(); err != nil || *c.URL != want {
			t.Errorf("a change to %s: got %s, %v, want %s", given, *c.URL, err, want)
		}
	}
	for _, given := range []string{
		"https://bü cher.example", "https://-bücher.example", "https://[fe80::1%25ü]/", "https://ü\u202e.example",
		"https://bücher..example", "https://127.0.0.1。。/", "https://ci。。example.com",
		"https://。example.com", "https://。/",
		"https://\u00ad/", "https://\u00ad:80/", "https://\u200b.example", "https://ci.\u00ad.example", "https://xn--\u00ad",
		"https://ada@bücher.example", "https://bücher.example:0", "ftp://bücher.example", "https://bücher.example/#top",
		"https://bücher.example/" + strings.Repeat("a", 2048-len("https://bücher.example/")),
	} {
		n := NewWebhook{URL: given}
		ledgertest.WantField(t, n.Check(), "url")
		if n.URL != given {
			t.Errorf("%s: the refused URL became %s", given, n.URL)
		}
	}
}

func TestAuthorizationOfWebhooks(t *testing.T) {
	for value, valid := range map[string]bool{
		"": true, "Bearer abc": true, "Basic YTpi": true, "key-without-a-scheme": true,
		"Bearer " + strings.Repeat("a", 4089): true, `Digest username="ci", realm="gateway"`: true,
		"Bearer " + strings.Repeat("a", 4090): false, " Bearer abc": false, "Bearer abc ": false, " ": false,
		"Bearer a\r\nHost: x": false, "Bearer a\x00": false, "Bearer é": false, "Bearer a\tb": false,
		"Authorization: Bearer abc": false, "authorization:abc": false, MaskedAuthorization: false,
	} {
		url := "https://ci.example.com"
		for _, err := range []error{
			(&NewWebhook{URL: url, Authorization: value}).Check(), WebhookChange{Authorization: &value}.Check(),
		} {
			if valid && err != nil {
				t.Errorf("%.40q: %v", value, err)
			} else if !valid {
				ledgertest.WantField(t, err, "authorization")
			}
			if err != nil && strings.Contains(err.Error(), "abc") {
				t.Errorf("the error contains the value: %v", err)
			}
		}
	}
}

func TestWebhookKey(t *testing.T) {
	for secret, want := range map[string]bool{
		NewWebhookSecret(): true, "whsec_AAAA": true,
		"": false, "whsec_": false, "whsec_!!!!": false, "whsec_A": false, "AAAA": false, "WHSEC_AAAA": false,
		"whsec_AAAA ": false, "whsec_====": false,
	} {
		if _, ok := WebhookKey(secret); ok != want {
			t.Errorf("%q: %t, want %t", secret, ok, want)
		}
	}
}

func TestWebhookChecks(t *testing.T) {
	for field, change := range map[string][]WebhookChange{
		"events": {
			{Events: &[]ledger.EventType{}}, {Events: &[]ledger.EventType{"attestations"}},
			{Events: &[]ledger.EventType{ledger.EventPing}},
			{Events: &[]ledger.EventType{ledger.EventState, ledger.EventRadar, ledger.EventState}},
			{Events: &[]ledger.EventType{""}},
		},
		"description": {{Description: new(strings.Repeat("é", 501))}, {Description: new("two\nlines")}},
	} {
		for _, c := range change {
			ledgertest.WantField(t, c.Check(), field)
		}
	}
	for _, c := range []WebhookChange{
		{}, {Active: new(false)}, {Events: &[]ledger.EventType{ledger.EventRadar}}, {Description: new("")},
		{Description: new(strings.Repeat("é", 500))},
	} {
		if err := c.Check(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestRotationCheck(t *testing.T) {
	for name, test := range map[string]struct {
		given *ledger.Duration
		want  time.Duration
	}{
		"default":     {nil, 24 * time.Hour},
		"zero":        {new(ledger.Duration(0)), 0},
		"the longest": {new(ledger.Duration(30 * day)), 30 * day},
	} {
		r := Rotation{test.given}
		if err := r.Check(); err != nil || r.Overlap.Std() != test.want {
			t.Errorf("%s: %s, %v, want %s", name, r.Overlap, err, test.want)
		}
	}
	for _, overlap := range []time.Duration{30*day + time.Millisecond, -time.Second} {
		ledgertest.WantField(t, (&Rotation{new(ledger.Duration(overlap))}).Check(), "overlap")
	}
}

func TestReplayCheck(t *testing.T) {
	const now = ledger.Time(1_800_000_000_000)
	for _, since := range []ledger.Time{1, now - 1, now} {
		if err := (Replay{since}).Check(now); err != nil {
			t.Errorf("%s: %v", since, err)
		}
	}
	for _, since := range []ledger.Time{0, now + 1} {
		ledgertest.WantField(t, Replay{since}.Check(now), "since")
	}
}

func TestNewWebhookSecret(t *testing.T) {
	one, other := NewWebhookSecret(), NewWebhookSecret()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(one, "whsec_"))
	if err != nil || len(key) != 32 || !strings.HasPrefix(one, "whsec_") || one == other {
		t.Errorf("got %q and %q, want whsec_ and the base64 of 32 random bytes", one, other)
	}
}

func TestParseDeliveryStatus(t *testing.T) {
	for _, s := range []DeliveryStatus{DeliveryPending, DeliverySucceeded, DeliveryFailed} {
		if got, err := ParseDeliveryStatus(string(s)); got != s || err != nil {
			t.Errorf("%s parses as %q, %v", s, got, err)
		}
	}
	if _, err := ParseDeliveryStatus("Failed"); err == nil ||
		!strings.Contains(err.Error(), "pending, succeeded or failed") {
		t.Errorf("Failed: %v", err)
	}
}
