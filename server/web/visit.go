package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/budget"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/server/web/form"
	"github.com/ledgerd/ledgerd/server/web/session"
)

// Patterns that are used outside routes, too.
const (
	logoutPattern         = "/logout"
	assetPattern          = "/static/{file}"
	orgPattern            = "/orgs/{org}"
	eventsPattern         = orgPattern + "/events"
	activityPattern       = orgPattern + "/activity"
	settingsPattern       = orgPattern + "/settings"
	orgViolationsPattern  = orgPattern + "/violations"
	environmentsPattern   = orgPattern + "/environments"
	artifactsPattern      = orgPattern + "/artifacts"
	artifactPattern       = artifactsPattern + "/{digest}"
	tokensPattern         = settingsPattern + "/tokens"
	identitiesPattern     = settingsPattern + "/identities"
	repoPattern           = orgPattern + "/repos/{repo}"
	commitPattern         = repoPattern + "/commits/{sha}"
	policyPattern         = repoPattern + "/policy"
	versionsPattern       = policyPattern + "/versions"
	repoViolationsPattern = repoPattern + "/violations"
	radarPattern          = repoPattern + "/radar"
	webhooksPattern       = repoPattern + "/webhooks"
	webhookPattern        = webhooksPattern + "/{id}"
	pingPattern           = webhookPattern + "/ping"
	redeliverPattern      = webhookPattern + "/deliveries/{delivery}/redeliver"
)

// A handler returns the response to a request.
type handler func(*visit) (*response, error)

// A route is a page, or the target of a form.
type route struct {
	method  string
	pattern string // of http.ServeMux
	// scope is the scope that the visitor's token needs; open if the visitor need
	// not be signed in. The API checks it too.
	scope  ledger.Scope
	handle handler
}

// open is the scope of routes that need no session.
const open ledger.Scope = 0

// skipsLimiter reports whether requests do not wait for the limiter, because the
// response is cheap or mostly waits for a receiver.
func (rt route) skipsLimiter() bool {
	return slices.Contains([]string{eventsPattern, assetPattern, pingPattern, redeliverPattern}, rt.pattern)
}

// ignoresSession reports whether the response does not depend on the visitor, so
// that the session is not looked up.
func (rt route) ignoresSession() bool {
	return rt.pattern == assetPattern || rt.pattern == logoutPattern
}

// refreshHeader is a header of requests in which the script fetches a live page again.
// It uses only the live parts of the response.
const refreshHeader = "X-Ledger-Refresh"

// isLive reports whether the page of the route can be live.
func (rt route) isLive() bool {
	return rt.method == http.MethodGet && slices.Contains([]string{orgPattern, activityPattern, repoPattern, commitPattern,
		policyPattern, versionsPattern, radarPattern, orgViolationsPattern, repoViolationsPattern, environmentsPattern,
		artifactPattern},
		rt.pattern)
}

// A visit is a request with its visitor.
type visit struct {
	site  *Site
	route route
	w     http.ResponseWriter // only for reading the form
	r     *http.Request
	// memory is what the form and the response take.
	memory *budget.Lease
	// api has the visitor's permissions, but only with the context ctx().
	api *client.Client
	// session is the visitor's token; nil if the visitor is not signed in.
	session *ledger.Token
	// isAnonymous reports whether the page must not show whose session it is.
	isAnonymous bool
	// org is the session's org. repo is the repo in the path, if any.
	org, repo string
	// since is the ID of the org's newest event before the page was rendered.
	since string
}

// ctx returns the request's context, which has the session for the API.
func (v *visit) ctx() context.Context { return v.r.Context() }

// value returns the path segment with that name in the pattern.
func (v *visit) value(name string) string { return v.r.PathValue(name) }

// query returns a query parameter, or "" if it is missing.
func (v *visit) query(name string) string { return v.r.URL.Query().Get(name) }

// may reports whether the visitor's token has the scope, or a higher one.
func (v *visit) may(scope ledger.Scope) bool { return v.session != nil && v.session.Scope >= scope }

// isRefresh reports whether the request refreshes a live page.
func (v *visit) isRefresh() bool {
	return v.route.isLive() && v.r.Method == http.MethodGet && v.r.Header.Get(refreshHeader) != ""
}

// anonymous returns a visit with the same permissions that renders pages without the
// visitor's name.
func (v *visit) anonymous(ctx context.Context) *visit {
	return &visit{site: v.site, route: v.route, r: v.r.WithContext(ctx), api: v.api, org: v.org, repo: v.repo,
		isAnonymous: true, session: &ledger.Token{Org: v.session.Org, Scope: v.session.Scope}}
}

// loadSession looks up the session of the request, if it has one.
func (v *visit) loadSession() error {
	secret := session.Secret(v.r)
	if secret == "" {
		return nil
	}
	v.r = v.r.WithContext(v.site.api.WithSession(v.ctx(), secret))
	token, err := v.api.OwnToken(v.ctx())
	if err != nil {
		return err
	}
	v.session, v.memory = &token, v.site.api.Memory(token.ID, v.r)
	return nil
}

// A response is the result of a handler: a page, a redirect, a file or a stream.
// It is written once it is complete.
type response struct {
	status int // 0 for 200
	// page is the name of the template that shows data.
	page, title string
	data        any
	// live is the path of the event stream that refreshes the page's live parts;
	// empty for none.
	live string
	// liveCommit limits the refreshes to events about the commit; empty for all.
	liveCommit string
	// liveSince is the ID of the last event that the page certainly shows.
	liveSince string
	// wide makes the page as wide as the window.
	wide bool

	location string // target of a redirect
	cookies  []*http.Cookie

	// body is the content of a file or of a rendered page.
	body      []byte
	mediaType string
	// filename makes the browser save the file under that name.
	filename  string
	immutable bool // browsers can cache the file forever
	stream    http.HandlerFunc
}

// page returns the page templates/NAME.html with its data.
func (v *visit) page(name, title string, data any) *response {
	return &response{page: name, title: title, data: data}
}

// livePage returns a page whose live parts refresh after events of these types. If the
// path has a repo, only its events count.
func (v *visit) livePage(name, title string, data any, types ...ledger.EventType) *response {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	query := url.Values{"types": {strings.Join(names, ",")}}
	if v.repo != "" {
		query.Set("repo", v.repo)
	}
	resp := v.page(name, title, data)
	resp.live = v.pathOf(orgPattern, "events") + "?" + query.Encode()
	resp.liveSince = v.since
	return resp
}

// live wraps handlers that return a livePage, unless they start with a call of
// latest themselves.
func live(handle handler) handler {
	return func(v *visit) (*response, error) {
		if _, err := v.latest(1); err != nil {
			return nil, err
		}
		return handle(v)
	}
}

// latest returns the org's newest events, and sets since to the ID of the first. A
// handler of a livePage calls it before reading anything else, so that the page shows
// everything up to that event.
func (v *visit) latest(limit int) ([]event, error) {
	bodies, err := v.api.EventsPage(v.ctx(), v.org, client.EventFilter{Types: ledger.EventTypes(), NewestFirst: true},
		client.Query{Limit: limit})
	if err != nil {
		return nil, err
	}
	events, err := readEvents(bodies.Data)
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
	maxForm     = 4 << 20
	maxOpenForm = 64 << 10
)

// form parses the form of the request.
func (v *visit) form() (*form.Form, error) {
	limit := int64(maxForm)
	if v.route.scope == open {
		limit = maxOpenForm
	}
	err := v.parseForm(limit)
	if errors.Is(err, wire.ErrTooLarge) {
		return nil, ledger.Errorf(ledger.CodePayloadTooLarge, "form too large: at most %d bytes", limit)
	}
	return &form.Form{Values: v.r.PostForm}, err
}

// parseForm reads a form of at most limit bytes into the request's PostForm.
func (v *visit) parseForm(limit int64) error {
	body, err := wire.ReadBody(v.w, v.r, limit, v.memory)
	if err != nil {
		return err
	}
	parsed := v.r.WithContext(v.ctx())
	parsed.Body = io.NopCloser(bytes.NewReader(body))
	if err := parsed.ParseForm(); err != nil {
		return ledger.Errorf(ledger.CodeInvalidParameter, "invalid form: fields must be URL-encoded")
	}
	v.r.Form, v.r.PostForm = parsed.Form, parsed.PostForm
	return nil
}

// A formPage shows only a form.
type formPage struct{ Form *form.Form }

// again returns the page of a form with its errors.
func again(f *form.Form, resp *response) *response {
	resp.status = cmp.Or(f.Status, http.StatusUnprocessableEntity)
	return resp
}

// seeOther redirects to another page (303).
func seeOther(path string) *response {
	return &response{location: path}
}

// file returns a download with that file name.
func file(name, mediaType string, body []byte) *response {
	return &response{body: body, mediaType: mediaType, filename: name}
}

// pathTo returns the path with these segments, escaped.
func pathTo(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// pathOf returns the path of a pattern for the visit's org and repo, with more
// segments appended.
func (v *visit) pathOf(pattern string, more ...string) string {
	return strings.NewReplacer("{org}", url.PathEscape(v.org), "{repo}",
		url.PathEscape(v.repo)).Replace(pattern) + pathTo(more...)
}

// pathWith returns the path of this page with one more query parameter.
func (v *visit) pathWith(name, value string) string {
	query := v.r.URL.Query()
	query.Set(name, value)
	return v.r.URL.EscapedPath() + "?" + query.Encode()
}

// codeOf returns the code of an error, from the API or from this package.
func codeOf(err error) ledger.Code {
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		return e.Code
	}
	return client.CodeOf(err)
}

// maxListPages is the maximum number of pages of the API that a web page reads of one list.
const maxListPages = 5

// filled returns a page of q.Limit records. The API examines only some thousand rows for
// a page, so the page can be short although there are more records. Then filled goes on to
// the next ones, up to maxListPages. NextCursor continues the list.
func filled[T any](q client.Query, read func(client.Query) (ledger.Page[T], error)) (ledger.Page[T], error) {
	list, err := read(q)
	limit := q.Limit
	for n := 1; err == nil && n < maxListPages && list.NextCursor != "" && len(list.Data) < limit; n++ {
		q.Limit, q.Cursor = limit-len(list.Data), list.NextCursor
		var more ledger.Page[T]
		more, err = read(q)
		list.Data, list.NextCursor = append(list.Data, more.Data...), more.NextCursor
	}
	return list, err
}

// nextPage returns the path of the next page of a list; empty on the last page.
func nextPage(v *visit, cursor string) string {
	if cursor == "" {
		return ""
	}
	return v.pathWith("cursor", cursor)
}
