package dispatch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/webhook"
)

// The headers of the Standard Webhooks specification.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerStandard  = "webhook-signature"
)

// signStandard returns one signature for the header webhook-signature. It returns ""
// if the secret does not have the form of Standard Webhooks.
func signStandard(secret, id string, at time.Time, body []byte) string {
	key, ok := outbound.WebhookKey(secret)
	if !ok {
		return ""
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signedHeader returns the headers of an attempt now, with the time wall in its
// signatures.
func signedHeader(to outbound.Endpoint, d outbound.DueDelivery, now, wall ledger.Time) http.Header {
	at := wall.Std()
	h := http.Header{
		"Content-Type":          {"application/json"},
		webhook.HeaderEvent:     {string(d.Type)},
		webhook.HeaderDelivery:  {d.ID},
		webhook.HeaderSignature: {webhook.Sign(to.Secret, at, d.Body)},
		headerID:                {d.Event},
		headerTimestamp:         {strconv.FormatInt(at.Unix(), 10)},
	}

	standard := signStandard(to.Secret, d.Event, at, d.Body)
	if to.PreviousSecret != "" && now < to.PreviousUntil {
		h[webhook.HeaderPrevious] = []string{webhook.Sign(to.PreviousSecret, at, d.Body)}
		standard = strings.TrimSpace(standard + " " + signStandard(to.PreviousSecret, d.Event, at, d.Body))
	}
	if standard != "" {
		h[headerStandard] = []string{standard}
	}
	if to.Authorization != "" {
		h.Set("Authorization", to.Authorization)
	}
	return h
}
