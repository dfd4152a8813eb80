// Package page is what the handlers of pages share: the visit that they answer, the
// response that they return, their routes, the paths between them, and submitted forms.
package page

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/budget"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

// A Handler returns the response to a request.
type Handler func(*Visit) (*Response, error)

// A Route is a page, or the target of a form.
type Route struct {
	Method  string
	Pattern string // of http.ServeMux
	// Scope is the scope that the visitor's token needs; Open if the visitor need
	// not be signed in. The API checks it too.
	Scope  ledger.Scope
	Handle Handler

	// Live reports whether the page can be a LivePage.
	Live bool
	// SkipsLimiter reports whether requests do not wait for the limiter, because the
	// response is cheap or mostly waits for a receiver.
	SkipsLimiter bool
	// IgnoresSession reports whether the response does not depend on the visitor, so
	// that the session is not looked up.
	IgnoresSession bool
}

// Open is the scope of routes that need no session.
const Open ledger.Scope = 0

// Get returns the route of a page.
func Get(pattern string, scope ledger.Scope, handle Handler) Route {
	return Route{Method: http.MethodGet, Pattern: pattern, Scope: scope, Handle: handle}
}

// Post returns the route of a form's target.
func Post(pattern string, scope ledger.Scope, handle Handler) Route {
	return Route{Method: http.MethodPost, Pattern: pattern, Scope: scope, Handle: handle}
}

// Live returns the route of a handler that can return a LivePage. Latest is called
// before the handler.
func Live(pattern string, scope ledger.Scope, handle Handler) Route {
	rt := Get(pattern, scope, func(v *Visit) (*Response, error) {
		if _, err := v.Latest(1); err != nil {
			return nil, err
		}
		return handle(v)
	})
	rt.Live = true
	return rt
}

// A Visit is a request with its visitor.
type Visit struct {
	Route   Route
	Request *http.Request
	Writer  http.ResponseWriter // only for reading the form
	// Memory is what the form and the response take.
	Memory *budget.Lease
	// API has the visitor's permissions, but only with the context Ctx().
	API *client.Client
	// Session is the visitor's token; nil if the visitor is not signed in.
	Session *ledger.Token
	// Anonymous reports whether the page must not show whose session it is.
	Anonymous bool
	// Base is the base path of the server, without a slash at its end. The request's URL begins
	// with it, and so must all URLs of pages, forms and files: PathOf and RepoPath add it.
	Base string
	// RPID is the domain of passkeys. If it is empty, members cannot use passkeys.
	RPID string
	// Org is the session's org. Repo is the repo in the path, if any.
	Org, Repo string
	// Clock returns the current time.
	Clock func() time.Time
	// since is the ID of the org's newest event before the page was rendered.
	since string
}

// Now returns the current time.
func (v *Visit) Now() ledger.Time { return ledger.TimeOf(v.Clock()) }

// Ctx returns the request's context, which has the session for the API.
func (v *Visit) Ctx() context.Context { return v.Request.Context() }

// Value returns the path segment with that name in the pattern.
func (v *Visit) Value(name string) string { return v.Request.PathValue(name) }

// Query returns a query parameter, or "" if it is missing.
func (v *Visit) Query(name string) string { return v.Request.URL.Query().Get(name) }

// May reports whether the visitor's token has the scope, or a higher one.
func (v *Visit) May(scope ledger.Scope) bool { return v.Session != nil && v.Session.Scope >= scope }

// Page returns the page templates/NAME.html with its data.
func (v *Visit) Page(name, title string, data any) *Response {
	return &Response{Page: name, Title: title, Data: data}
}

// Then redirects to another page, whose path is that of PathOf, unless there is an error.
func (v *Visit) Then(err error, pattern string, more ...string) (*Response, error) {
	if err != nil {
		return nil, err
	}
	return SeeOther(v.PathOf(pattern, more...)), nil
}

// LivePage returns a page whose live parts refresh after events of these types. If the
// path has a repo, only its events count. The route must be Live.
func (v *Visit) LivePage(name, title string, data any, types ...ledger.EventType) *Response {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	query := url.Values{"types": {strings.Join(names, ",")}}
	if v.Repo != "" {
		query.Set("repo", v.Repo)
	}
	resp := v.Page(name, title, data)
	resp.Live = WithQuery(v.PathOf(EventsPattern), query)
	resp.LiveSince = v.since
	return resp
}

// Latest returns the org's newest events, and notes the first of them for LivePage. A
// handler of a live page calls it before reading anything else, so that the page shows
// everything up to that event.
func (v *Visit) Latest(limit int) ([]Event, error) {
	f := client.EventFilter{Types: ledger.EventTypesFor(ledger.Read), NewestFirst: true}
	bodies, err := v.API.EventsPage(v.Ctx(), v.Org, f, client.Query{Limit: limit})
	if err != nil {
		return nil, err
	}
	events, err := ReadEvents(bodies.Data)
	if err != nil {
		return nil, err
	}
	v.since = client.Earliest
	if len(events) > 0 {
		v.since = events[0].ID
	}
	return events, nil
}

// Maximum sizes of a form in bytes. URL encoding can triple the size of a policy,
// which can have 1 MiB. Forms of open routes have only a token or a name.
const (
	maxForm = 4 << 20
	// MaxOpenForm is the maximum size of a form of an open route.
	MaxOpenForm = 64 << 10
)

// Form returns the form of the request, which ReadForm has read.
func (v *Visit) Form() *Form { return &Form{Values: v.Request.PostForm} }

// ReadForm reads the form of the request.
func (v *Visit) ReadForm() error {
	limit := int64(maxForm)
	if v.Route.Scope == Open {
		limit = MaxOpenForm
	}
	err := v.ParseForm(limit)
	if errors.Is(err, wire.ErrTooLarge) {
		return ledger.Errorf(ledger.CodePayloadTooLarge, "form too large: at most %d bytes", limit)
	}
	return err
}

// ParseForm reads a form of at most limit bytes into the request's PostForm.
func (v *Visit) ParseForm(limit int64) error {
	body, err := wire.ReadBody(v.Writer, v.Request, limit, v.Memory)
	if err != nil {
		return err
	}
	parsed := v.Request.WithContext(v.Ctx())
	parsed.Body = io.NopCloser(bytes.NewReader(body))
	if err := parsed.ParseForm(); err != nil {
		return ledger.Errorf(ledger.CodeInvalidParameter, "invalid form: fields must be URL-encoded")
	}
	v.Request.Form, v.Request.PostForm = parsed.Form, parsed.PostForm
	return nil
}

// PathOf returns the path of a pattern for the visit's org and repo, with more
// segments appended.
func (v *Visit) PathOf(pattern string, more ...string) string {
	return v.Base + strings.NewReplacer("{org}", url.PathEscape(v.Org), "{repo}",
		url.PathEscape(v.Repo)).Replace(pattern) + PathTo(more...)
}

// RepoPath returns the path of a repo of the visit's org, with more segments appended.
func (v *Visit) RepoPath(repo string, more ...string) string {
	return v.Base + PathTo("orgs", v.Org, "repos", repo) + PathTo(more...)
}

// PathWith returns the path of this page with one more query parameter.
func (v *Visit) PathWith(name, value string) string {
	query := v.Request.URL.Query()
	query.Set(name, value)
	return WithQuery(v.Request.URL.EscapedPath(), query)
}

// NextPage returns the path of the next page of a list; empty on the last page.
func (v *Visit) NextPage(cursor string) string {
	if cursor == "" {
		return ""
	}
	return v.PathWith("cursor", cursor)
}

// CodeOf returns the code of an error, from the API or from the pages.
func CodeOf(err error) ledger.Code {
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		return e.Code
	}
	return client.CodeOf(err)
}
