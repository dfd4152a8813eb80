package dispatch

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/ledger/outbound"
)

const (
	maxStoredBody   = 16 << 10 // bytes of a response's body that are stored
	maxStoredHeader = 8 << 10  // bytes of its headers that are stored
	maxLocation     = 200
	maxError        = 500
)

// A response is a receiver's response as far as it is stored.
type response struct {
	outbound.AttemptResponse
	location, retryAfter string
}

// readResponse reads the beginning of a response, and closes the connection if there
// is more. The status counts even if the body cannot be read.
func readResponse(r *http.Response) response {
	defer r.Body.Close()
	out := response{location: r.Header.Get("Location"), retryAfter: r.Header.Get("Retry-After")}
	out.Status = r.StatusCode
	out.Headers = clipHeader(r.Header)
	if r.StatusCode == http.StatusSwitchingProtocols {
		return out // the rest is not a body
	}

	body, err := io.ReadAll(io.LimitReader(r.Body, maxStoredBody+1))
	out.Truncated = err != nil || len(body) > maxStoredBody
	out.Body = clip(string(body), maxStoredBody, out.Truncated)
	return out
}

// mask hides the value of the Authorization header in a response that repeats it, and the part after its scheme.
// Shorter texts than the mask are no secrets, and the response would grow.
func (r *response) mask(authorization string) {
	_, credentials, _ := strings.Cut(authorization, " ")
	var pairs []string
	for _, text := range []string{authorization, credentials} {
		if len(text) >= len(outbound.MaskedAuthorization) {
			pairs = append(pairs, text, outbound.MaskedAuthorization)
		}
	}
	masked := strings.NewReplacer(pairs...)
	r.Body, r.location = masked.Replace(r.Body), masked.Replace(r.location)
	for _, values := range r.Headers {
		for i := range values {
			values[i] = masked.Replace(values[i])
		}
	}
}

// clipHeader returns the first maxStoredHeader bytes of headers, in name order.
func clipHeader(header http.Header) map[string][]string {
	clipped, room := map[string][]string{}, maxStoredHeader
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			value = strings.ToValidUTF8(value, "\uFFFD")
			if room -= len(name) + len(value); room < 0 {
				return clipped
			}
			clipped[name] = append(clipped[name], value)
		}
	}
	return clipped
}

// clip returns text as valid UTF-8 of at most n bytes. If text was cut, by the caller
// or by clip, an incomplete last character is dropped.
func clip(text string, n int, cut bool) string {
	if len(text) > n {
		text, cut = text[:n], true
	}
	if cut {
		for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
			if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
				if !utf8.FullRuneInString(last) {
					text = text[:len(text)-i]
				}
				break
			}
		}
	}
	valid := strings.ToValidUTF8(text, "\uFFFD")
	if len(valid) > n {
		return clip(valid, n, true)
	}
	return valid
}

// clean returns an error message, which the receiver may have influenced, as one line
// of at most maxError bytes.
func clean(text string) string {
	return clip(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text), maxError, false)
}

// classify returns the result of an attempt by the status of its response and, if it
// failed, an error message.
func classify(status int, location string) (result, string) {
	message := strings.TrimSpace(fmt.Sprintf("the receiver returned %d %s", status, http.StatusText(status)))
	switch {
	case status >= 200 && status < 300:
		return resultSuccess, ""
	case status >= 300 && status < 400 && location != "":
		return resultRedirect, clean(message + ": redirects are not followed; this one points to " + target(location))
	case status >= 300 && status < 400:
		return resultRedirect, message + ": redirects are not followed"
	case status == http.StatusGone:
		return resultGone, message
	case status >= 500:
		return resultServerError, message
	}
	return resultClientError, message
}

// target returns the scheme and host to which a redirect points. It omits the parts
// that may be secret: user, password, path and query.
func target(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return "an invalid URL"
	}
	if u.Host == "" {
		return "the same host"
	}
	origin := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	if len(origin) > maxLocation {
		origin = clip(origin, maxLocation, true) + "…"
	}
	return origin
}
