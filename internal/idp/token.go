package idp

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
)

const (
	maxToken     = 64 << 10 // bytes of an ID token
	maxClaims    = 200
	maxValues    = 2000 // texts of all claims
	maxValue     = 1024 // bytes of a text
	maxSubject   = 255  // bytes, also of a name and an e-mail address
	lastDateTime = 253402300799
)

// claims are the claims of an ID token (OpenID Connect Core 1.0, 2) that limit for whom and when it
// is valid. Names of claims are case-sensitive and unique.
type claims struct {
	Issuer          string       `json:"iss"`
	Subject         string       `json:"sub"`
	Audience        audience     `json:"aud"`
	AuthorizedParty *string      `json:"azp"`
	Expires         *numericDate `json:"exp"`
	NotBefore       *numericDate `json:"nbf"`
	IssuedAt        *numericDate `json:"iat"`
	AuthTime        *numericDate `json:"auth_time"`
	Nonce           string       `json:"nonce"`
	Name            any          `json:"name"`
	Email           any          `json:"email"`
	EmailVerified   any          `json:"email_verified"`
}

// An audience is a text or a list of texts.
type audience []string

// UnmarshalJSON implements [json.Unmarshaler].
func (a *audience) UnmarshalJSON(raw []byte) error {
	values, ok := textsOf(raw)
	if !ok {
		return errors.New("aud is neither a text nor a list of texts")
	}
	*a = values
	return nil
}

// A numericDate is a time in seconds since 1970 (RFC 7519, 2).
type numericDate float64

// time returns the time. Times after the year 9999 become the end of that year.
func (d numericDate) time() ledger.Time {
	return ledger.Time(max(0, min(d, lastDateTime)) * 1000)
}

// parseAccount returns the account of a payload whose signature was verified, if it is that of an ID
// token for the flow. Its errors say what is wrong with the token.
func parseAccount(payload []byte, client Config, f Flow, now ledger.Time) (a member.Account, err error) {
	var c claims
	if err := ledger.DecodeOpen(payload, &c); err != nil {
		return a, fmt.Errorf("its claims: %w", err)
	}
	if err := c.check(client, f.nonce(), now); err != nil {
		return a, err
	}
	authTime, err := c.authTime(f, now)
	if err != nil {
		return a, err
	}

	a = member.Account{Issuer: client.Issuer, Subject: c.Subject, AuthTime: authTime, Name: printable(c.Name)}
	if c.EmailVerified == true {
		a.Email = printable(c.Email)
	}
	a.Claims, err = readClaims(payload)
	if c.EmailVerified != true {
		delete(a.Claims, "email")
	}
	return a, err
}

// check returns an error if the claims are not those of an ID token for a client, at the time now.
func (c claims) check(client Config, nonce string, now ledger.Time) error {
	switch {
	case c.Issuer != client.Issuer: // go-oidc makes an exception for Google
		return fmt.Errorf("its issuer is %.200q", c.Issuer)
	case c.Subject == "" || printable(c.Subject) == "":
		return fmt.Errorf("its subject is empty, or has more than %d bytes or control characters", maxSubject)
	case !slices.Contains(c.Audience, client.ClientID):
		return fmt.Errorf("it is for %.200q", c.Audience)
	case len(c.Audience) > 1 && c.AuthorizedParty == nil:
		return errors.New("it is for several clients, and azp does not say for which")
	case c.AuthorizedParty != nil && *c.AuthorizedParty != client.ClientID:
		return fmt.Errorf("its azp is %.200q", *c.AuthorizedParty)
	case subtle.ConstantTimeCompare([]byte(c.Nonce), []byte(nonce)) != 1:
		return errors.New("its nonce is that of another sign-in")
	}

	switch {
	case c.Expires == nil || c.IssuedAt == nil:
		return errors.New("it lacks exp or iat")
	case c.Expires.time() <= now:
		return fmt.Errorf("it expired at %s (now: %s)", c.Expires.time(), now)
	case c.NotBefore != nil && c.NotBefore.time() > now.Add(skew):
		return fmt.Errorf("it is not valid before %s (now: %s)", c.NotBefore.time(), now)
	case c.IssuedAt.time() > now.Add(skew):
		return fmt.Errorf("it was issued in the future, at %s (now: %s)", c.IssuedAt.time(), now)
	case c.IssuedAt.time() < now.Add(-FlowLife-skew):
		return fmt.Errorf("it was issued before the sign-in, at %s (now: %s)", c.IssuedAt.time(), now)
	}
	return nil
}

// authTime returns when the provider authenticated the person; 0 if the token does not say so. It is
// an error if that is too long ago for the flow.
func (c claims) authTime(f Flow, now ledger.Time) (ledger.Time, error) {
	if c.AuthTime == nil {
		if f.MaxAge != nil {
			return 0, errors.New("it lacks auth_time, which max_age asks for")
		}
		return 0, nil
	}
	at := c.AuthTime.time()
	if at > now.Add(skew) {
		return 0, fmt.Errorf("its auth_time is in the future, %s (now: %s)", at, now)
	}
	if f.MaxAge != nil && at < f.Begun.Add(-time.Duration(*f.MaxAge)*time.Second-skew) {
		return 0, fmt.Errorf("its auth_time is %s, although max_age was %d s at %s", at, *f.MaxAge, f.Begun)
	}
	return min(at, now), nil
}

// readClaims returns the texts of the claims that are a text, a boolean, a number or a list of texts.
func readClaims(payload []byte) (map[string][]string, error) {
	var all map[string]json.RawMessage
	if err := ledger.DecodeOpen(payload, &all); err != nil {
		return nil, fmt.Errorf("its claims: %w", err)
	}
	if len(all) > maxClaims {
		return nil, fmt.Errorf("it has more than %d claims", maxClaims)
	}

	texts, total := make(map[string][]string), 0
	for name, raw := range all {
		values, ok := textsOf(raw)
		if !ok {
			continue
		}
		values = slices.DeleteFunc(values, func(v string) bool { return len(v) > maxValue })
		if total += len(values); total > maxValues {
			return nil, fmt.Errorf("its claims have more than %d texts: have the provider send fewer groups", maxValues)
		}
		texts[name] = values
	}
	return texts, nil
}

// textsOf returns the texts of a value: that of a text, a boolean or a number, or those of a list of
// texts. It reports false for other values.
func textsOf(raw json.RawMessage) ([]string, bool) {
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil, false
	}

	switch v := value.(type) {
	case string:
		return []string{v}, true
	case bool, json.Number:
		return []string{fmt.Sprint(v)}, true
	case []any:
		values := make([]string, 0, len(v))
		for _, item := range v {
			text, ok := item.(string)
			if !ok {
				return nil, false
			}
			values = append(values, text)
		}
		return values, true
	}
	return nil, false
}

// printable returns a value if it is a short printable text, and otherwise an empty one.
func printable(value any) string {
	text, _ := value.(string)
	if len(text) > maxSubject || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return text
}
