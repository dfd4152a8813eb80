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

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	maxBody       = 16 << 10 // of an answer's body that is kept
	maxKeptHeader = 8 << 10  // of its header
	maxLocation   = 200
	maxError      = 500
)

// A response is an answer as far as it is kept.
type response struct {
	ledger.AttemptResponse
	location, retryAfter string
}

// readResponse reads the beginning of an answer, and gives up the connection
// if there is more. Whatever happens to the body, the status counts.
func readResponse(r *http.Response) response {
	defer r.Body.Close()
	out := response{location: r.Header.Get("Location"), retryAfter: r.Header.Get("Retry-After")}
	out.Status = r.StatusCode
	out.Headers = keepHeader(r.Header)
	if r.StatusCode == http.StatusSwitchingProtocols {
		return out // what follows is no body
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	out.Truncated = err != nil || len(body) > maxBody
	out.Body = clip(string(body), maxBody, out.Truncated)
	return out
}

// keepHeader returns as many of an answer's headers as there is room for.
func keepHeader(header http.Header) map[string][]string {
	kept, room := map[string][]string{}, maxKeptHeader
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			value = strings.ToValidUTF8(value, "\uFFFD")
			if room -= len(name) + len(value); room < 0 {
				return kept
			}
			kept[name] = append(kept[name], value)
		}
	}
	return kept
}

// clip returns valid UTF-8 of at most n bytes. A text that was cut may end in
// half a character, which goes.
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

// clean makes an error's text, which the other side may have had a hand in,
// fit to be kept: one line, not too long.
func clean(text string) string {
	return clip(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text), maxError, false)
}

// judge tells what a status means for a delivery, and why it failed, if so.
func judge(status int, location string) (result, string) {
	answered := strings.TrimSpace(fmt.Sprintf("the receiver answered %d %s", status, http.StatusText(status)))
	switch {
	case status >= 200 && status < 300:
		return resultSuccess, ""
	case status >= 300 && status < 400 && location != "":
		return resultRedirect, clean(answered + ": redirects are not followed; this one points to " + target(location))
	case status >= 300 && status < 400:
		return resultRedirect, answered + ": redirects are not followed"
	case status == http.StatusGone:
		return resultGone, answered
	case status >= 500:
		return resultServerError, answered
	}
	return resultClientError, answered
}

// target tells where a redirect points, without what may be a secret: path,
// query, user and password.
func target(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return "what is no URL"
	}
	if u.Host == "" {
		return "the same host"
	}
	where := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	if len(where) > maxLocation {
		where = clip(where, maxLocation, true) + "…"
	}
	return where
}
