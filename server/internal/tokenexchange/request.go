// Package tokenexchange exchanges tokens of OpenID Connect issuers for API tokens (RFC 8693).
package tokenexchange

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
)

// Form is the media type of a request.
const Form = "application/x-www-form-urlencoded"

// MaxRequest is the maximum size of a request in bytes. A token may be escaped.
const MaxRequest = 2 * exchange.MaxToken

// A request is a parsed request for an exchange.
type request struct {
	token string
	scope ledger.Scope // 0: that of the rule
}

// parseRequest parses a form. As RFC 6749 says, fields without a value are absent, and unknown ones
// are ignored.
func parseRequest(body []byte, audience string) (r request, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return r, ledger.Errorf(ledger.CodeInvalidExchange, "the body is not a form: send %s", Form)
	}
	for _, values := range form {
		if len(values) > 1 && values[0] != "" && !slices.Equal(values, form["audience"]) &&
			!slices.Equal(values, form["resource"]) {
			return r, ledger.Errorf(ledger.CodeInvalidExchange, "a field of the form is given more than once")
		}
	}

	if grant := form.Get("grant_type"); grant != exchange.GrantType {
		return r, ledger.Errorf(ledger.CodeUnsupportedGrantType, "grant_type is %.100q: use %s", grant, exchange.GrantType)
	}
	if err := checkTypes(form); err != nil {
		return r, err
	}
	for _, target := range append(form["audience"], form["resource"]...) {
		if target != "" && target != audience {
			return r, ledger.Errorf(ledger.CodeInvalidTarget, "the target is %.200q: leave it out, or use %s", target, audience)
		}
	}
	if scope := form.Get("scope"); scope != "" {
		if r.scope, err = ledger.ParseScope(scope); err != nil {
			return r, ledger.Errorf(ledger.CodeInvalidScope, "%v", err)
		}
	}
	r.token = form.Get("subject_token")
	return r, nil
}

// checkTypes checks which tokens a form has and asks for.
func checkTypes(form url.Values) error {
	switch subject, requested := form.Get("subject_token_type"), form.Get("requested_token_type"); {
	case form.Get("subject_token") == "":
		return ledger.Errorf(ledger.CodeInvalidExchange, "subject_token is required: the token of the issuer")
	case subject != exchange.TypeJWT && subject != exchange.TypeIDToken:
		return ledger.Errorf(ledger.CodeInvalidExchange, "subject_token_type is %.100q: use %s or %s", subject,
			exchange.TypeIDToken, exchange.TypeJWT)
	case requested != "" && requested != exchange.TypeAccessToken:
		return ledger.Errorf(ledger.CodeInvalidExchange, "requested_token_type is %.100q: leave it out, or use %s", requested,
			exchange.TypeAccessToken)
	case form.Get("actor_token") != "":
		return ledger.Errorf(ledger.CodeInvalidExchange, "actor_token is not supported: leave it out")
	}
	return nil
}

// IsRefusal reports whether an error says that the token of an issuer was not accepted.
func IsRefusal(err error) bool {
	return hasCode(err, ledger.CodeInvalidToken, ledger.CodeWrongAudience, ledger.CodeTokenExpired,
		ledger.CodeTokenNotYetValid, ledger.CodeTokenUsed, ledger.CodeNoMatchingRule)
}

// hasCode reports whether an error has one of the codes.
func hasCode(err error, codes ...ledger.Code) bool {
	e, ok := errors.AsType[*ledger.Error](err)
	return ok && slices.Contains(codes, e.Code)
}

// A Failure is the error of an exchange, which clients of OAuth understand.
type Failure struct{ error }

// Failed returns the error of an exchange.
func Failed(err error) error { return Failure{err} }

// Unwrap returns the error.
func (f Failure) Unwrap() error { return f.error }

// Describe adds the members of RFC 6749 to the problem of a failed exchange.
func Describe(p ledger.Problem) ledger.Problem {
	switch p.Code {
	case ledger.CodeUnsupportedGrantType, ledger.CodeInvalidTarget, ledger.CodeInvalidScope:
		p.Error = string(p.Code)
	default:
		p.Error = "invalid_request"
	}

	switch {
	case p.Status >= http.StatusInternalServerError && p.Status != http.StatusServiceUnavailable:
		p.Error = "server_error"
	case p.Status >= http.StatusInternalServerError || p.Status == http.StatusTooManyRequests:
		p.Error = "temporarily_unavailable"
	}
	p.ErrorDescription = strings.Map(describable, p.Detail)
	return p
}

// describable returns a character that an error_description may have in place of r.
func describable(r rune) rune {
	switch {
	case r == '"':
		return '\''
	case r < ' ' || r > '~' || r == '\\':
		return '?'
	}
	return r
}
