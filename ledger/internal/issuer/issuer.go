// Package issuer parses the URLs of OpenID Connect issuers.
package issuer

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Parse parses the URL of an issuer, the claim iss. It has at most max bytes, a host, and neither a query nor a
// fragment (OpenID Connect Core 1.0, 2). Its scheme is https or http: the caller decides if http is allowed.
func Parse(s string, max int) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case len(s) > max:
		return nil, fmt.Errorf("too long: at most %d bytes", max)
	case err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(s, "?# "):
		return nil, errors.New("not the URL of an issuer (use the value of the claim iss, such as https://login.example.com)")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("use https or http")
	}
	return u, nil
}
