// Package webhook signs webhook deliveries, and verifies them for receivers written in
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

// The headers of a delivery. Their spelling is that of the contract, which
// http.Header.Set would change: over HTTP/1.1 they are sent as they stand here.
const (
	HeaderSignature = "X-ledger-Signature"
	// HeaderPrevious is there while the secret before this one signs too.
	HeaderPrevious = "X-ledger-Signature-Previous"
	HeaderEvent    = "X-ledger-Event"    // the event's type
	HeaderDelivery = "X-ledger-Delivery" // the delivery's id
)

// tolerance is how far the time of a signature may lie from the receiver's.
const tolerance = 5 * time.Minute

// Sign returns the value of X-ledger-Signature for a body sent at a time.
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ", v1=" + mac([]byte(secret), t, body)
}

// Verify returns nil if one of the header's signatures was made with the
// secret, for these very bytes, and within five minutes of now. The body has
// to be what came over the wire, before anything has parsed it.
func Verify(secret string, header http.Header, body []byte, now time.Time) error {
	if secret == "" {
		return errors.New("there is no secret to verify the signature with")
	}
	err := verifyOne(secret, HeaderSignature, header, body, now)
	if err != nil && len(values(header, HeaderPrevious)) > 0 &&
		verifyOne(secret, HeaderPrevious, header, body, now) == nil {
		return nil
	}
	return err
}

func verifyOne(secret, name string, header http.Header, body []byte, now time.Time) error {
	found := values(header, name)
	if len(found) != 1 {
		return fmt.Errorf("the request has %d headers %s, not one", len(found), name)
	}
	t, signature, err := parseSignature(found[0])
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !hmac.Equal([]byte(signature), []byte(mac([]byte(secret), t, body))) {
		return fmt.Errorf("%s does not fit secret and body", name)
	}
	unix, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: t is not a time", name)
	}
	if off := now.Unix() - unix; off > int64(tolerance/time.Second) || off < -int64(tolerance/time.Second) {
		return fmt.Errorf("%s was made %d s from now: more than %s off", name, off, ledger.Duration(tolerance))
	}
	return nil
}

// values returns the values of a header however its name is spelt: servers
// that use net/http spell it their own way.
func values(header http.Header, name string) (all []string) {
	for key, values := range header {
		if strings.EqualFold(key, name) {
			all = append(all, values...)
		}
	}
	return all
}

// maxUnixDigits keeps times within what 64 bits hold.
const maxUnixDigits = 18

// parseSignature reads "t=<unix seconds>, v1=<base64>".
func parseSignature(value string) (t, v1 string, err error) {
	t, v1, ok := strings.Cut(value, ", ")
	t, hasT := strings.CutPrefix(t, "t=")
	v1, hasV1 := strings.CutPrefix(v1, "v1=")
	if !ok || !hasT || !hasV1 {
		return "", "", errors.New("it has not the form t=<unix seconds>, v1=<signature>")
	}
	if t == "" || len(t) > maxUnixDigits || strings.Trim(t, "0123456789") != "" {
		return "", "", errors.New("t is not a number of seconds")
	}
	if sum, err := base64.StdEncoding.DecodeString(v1); err != nil || len(sum) != sha256.Size {
		return "", "", errors.New("v1 is not the base64 of an HMAC-SHA256")
	}
	return t, v1, nil
}

// mac returns the base64 HMAC-SHA256 of a prefix, a period, and the body.
func mac(key []byte, prefix string, body []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(prefix))
	h.Write([]byte{'.'})
	h.Write(body)
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}
