// Package webhook signs webhook deliveries, and verifies them in receivers written in
// Go. The package webhook/dispatch sends them.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// The headers of a delivery. Over HTTP/1.1 they are sent with exactly this spelling,
// which http.Header.Set would change.
const (
	HeaderSignature = "X-ledger-Signature"
	// HeaderPrevious is the signature by the previous secret, during the overlap
	// period of a rotation.
	HeaderPrevious = "X-ledger-Signature-Previous"
	HeaderEvent    = "X-ledger-Event"    // the event's type
	HeaderDelivery = "X-ledger-Delivery" // the delivery's id
)

// tolerance is how much the time of a signature may differ from the receiver's clock.
const tolerance = 5 * time.Minute

// Sign returns the value of the header X-ledger-Signature for a body that is sent at
// the given time.
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ", v1=" + mac([]byte(secret), t, body)
}

// Verify returns nil if the secret signed the body within five minutes of now,
// according to one of the signature headers. body must be the raw bytes that were
// received, not JSON that was parsed and encoded again.
func Verify(secret string, header http.Header, body []byte, now time.Time) error {
	if strings.TrimPrefix(secret, "whsec_") == "" {
		return errors.New("the secret to verify with is empty")
	}
	err := verifyOne(secret, HeaderSignature, header, body, now)
	if err != nil && len(values(header, HeaderPrevious)) > 0 &&
		verifyOne(secret, HeaderPrevious, header, body, now) == nil {
		return nil
	}
	return err
}

func verifyOne(secret, name string, header http.Header, body []byte, now time.Time) error {
	signatures := values(header, name)
	if len(signatures) != 1 {
		return fmt.Errorf("%s: got %d headers, want 1", name, len(signatures))
	}
	t, signature, err := parseSignature(signatures[0])
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}

	if !hmac.Equal([]byte(signature), []byte(mac([]byte(secret), t, body))) {
		return fmt.Errorf("%s does not match: wrong secret or modified body", name)
	}
	unix, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: t is out of range", name)
	}
	if off := now.Unix() - unix; off > int64(tolerance/time.Second) || off < -int64(tolerance/time.Second) {
		return fmt.Errorf("%s: t differs from now by %d s, more than %s (check the clock)", name, off,
			ledger.Duration(tolerance))
	}
	return nil
}

// values returns the values of a header in any spelling: servers that use net/http
// change it.
func values(header http.Header, name string) (all []string) {
	for key, values := range header {
		if strings.EqualFold(key, name) {
			all = append(all, values...)
		}
	}
	return all
}

// maxUnixDigits is the maximum length of a Unix time that fits 64 bits.
const maxUnixDigits = 18

// parseSignature parses "t=<unix seconds>, v1=<base64>".
func parseSignature(value string) (t, v1 string, err error) {
	t, v1, ok := strings.Cut(value, ", ")
	t, hasT := strings.CutPrefix(t, "t=")
	v1, hasV1 := strings.CutPrefix(v1, "v1=")
	if !ok || !hasT || !hasV1 {
		return "", "", errors.New("want t=<unix seconds>, v1=<signature>")
	}
	if t == "" || len(t) > maxUnixDigits || strings.Trim(t, "0123456789") != "" {
		return "", "", errors.New("t is not a Unix time in seconds")
	}
	if sum, err := base64.StdEncoding.DecodeString(v1); err != nil || len(sum) != sha256.Size {
		return "", "", errors.New("v1 is not a base64 HMAC-SHA256")
	}
	return t, v1, nil
}

// mac returns the HMAC-SHA256 of a prefix, a period and the body, as base64.
func mac(key []byte, prefix string, body []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(prefix))
	h.Write([]byte{'.'})
	h.Write(body)
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}
