package client

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// An Error is an error response.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Problem is the response's body. If the response is not from ledgerd but, for
	// example, from a proxy, only Status, Title and Detail are set.
	Problem ledger.Problem
}

// Error returns the problem's detail and its messages about fields.
func (e *Error) Error() string {
	p := e.Problem
	return (&ledger.Error{Code: p.Code, Detail: p.Detail, Fields: p.Errors}).Error()
}

// CodeOf returns the code of the problem in err's chain. It is empty if err is not
// an error response of a ledgerd server.
func CodeOf(err error) ledger.Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Problem.Code
	}
	return ""
}

func newError(resp *http.Response, body []byte) *Error {
	e := &Error{Status: resp.StatusCode}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if mediaType == "application/problem+json" &&
		ledger.DecodeOpen(body, &e.Problem) == nil && e.Problem.Detail != "" {
		return e
	}
	e.Problem = ledger.Problem{
		Title:  http.StatusText(e.Status),
		Status: e.Status,
		Detail: foreignDetail(resp, body),
	}
	return e
}

// foreignDetail describes an error response that is not from ledgerd.
func foreignDetail(resp *http.Response, body []byte) string {
	detail := fmt.Sprintf("the server returned %s", resp.Status)
	if location := resp.Header.Get("Location"); location != "" {
		return detail + ", see " + location
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "<") {
		return detail
	}
	return detail + ": " + strings.ToValidUTF8(line[:min(len(line), 200)], "")
}
