package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/form"
	"github.com/ledgerd/ledgerd/server/web/session"
)

// The patterns that more than the table of routes speaks of.
const (
	logoutPattern     = "/logout"
	assetPattern      = "/static/{file}"
	orgPattern        = "/orgs/{org}"
	eventsPattern     = orgPattern + "/events"
	activityPattern   = orgPattern + "/activity"
	settingsPattern   = orgPattern + "/settings"
	tokensPattern     = settingsPattern + "/tokens"
	identitiesPattern = settingsPattern + "/identities"
	repoPattern       = orgPattern + "/repos/{repo}"
	commitPattern     = repoPattern + "/commits/{sha}"
	policyPattern     = repoPattern + "/policy"
	radarPattern      = repoPattern + "/radar"
	webhooksPattern   = repoPattern + "/webhooks"
	webhookPattern    = webhooksPattern + "/{id}"
	pingPattern       = webhookPattern + "/ping"
	redeliverPattern  = webhookPattern + "/deliveries/{delivery}/redeliver"
)

// A handler makes the answer to a visit of a page.
type handler func(*visit) (*answer, error)

// A route is one page, or one form that is sent.
type route struct {
	method  string
	pattern string // of http.ServeMux
	// scope is the least that the visitor's token needs; open for none, nor to
	// be signed in. The API asks for it too.
	scope  ledger.Scope
	handle handler
}

const open ledger.Scope = 0

// makesNoPage tells that the answer costs next to nothing to begin with, or
// mostly waits for a receiver, so that nobody waits for their turn.
func (rt route) makesNoPage() bool {
	return slices.Contains([]string{eventsPattern, assetPattern, pingPattern, redeliverPattern}, rt.pattern)
}

// asksNobody tells that it is the same who visits, so that nobody is looked up.
func (rt route) asksNobody() bool {
	return rt.pattern == assetPattern || rt.pattern == logoutPattern
}

// A visit is one request on its way to its handler: the visitor may make it.
type visit struct {
	site  *Site
	route route
	r     *http.Request
	// api answers as the visitor, in the context ctx() alone.
	api *client.Client
	// session is the token that the visitor has signed in with; nil for nobody.
	session *ledger.Token
	// org is that of the session, repo what the path names, if it does.
	org, repo string
	// since is the org's newest event from before the page was made.
	since string
}

// ctx is the request's context, in which the API knows the visitor.
func (v *visit) ctx() context.Context { return v.r.Context() }

// value returns a part of the path by its name in the pattern.
func (v *visit) value(name string) string { return v.r.PathValue(name) }

// query returns a parameter of the URL; empty where there is none.
func (v *visit) query(name string) string { return v.r.URL.Query().Get(name) }

// may reports whether the visitor's token has at least that scope.
func (v *visit) may(scope ledger.Scope) bool { return v.session != nil && v.session.Scope >= scope }

// greet finds out whose session it is, if there is one.
func (v *visit) greet() error {
	secret := session.Secret(v.r)
	if secret == "" {
		return nil
	}
	v.r = v.r.WithContext(v.site.api.WithSession(v.ctx(), secret))
	token, err := v.api.OwnToken(v.ctx())
	if err != nil {
		return err
	}
	v.session = &token
	return nil
}

// An answer is what a handler answers: a page, a redirect, a file or a stream.
// It is written when it is complete.
type answer struct {
	status int // 200 where 0
	// page is the name of the template that data is shown with.
	page, title string
	data        any
	// live is the path of the events after which the page's live parts are
	// fetched again; empty for none.
	live string
	// liveCommit has only the events about that commit count.
	liveCommit string
	// liveSince is the event behind which those come that the page may not show.
	liveSince string
	// wide lets the page be as wide as the window.
	wide bool

	location string // of a redirect
	cookies  []*http.Cookie

	// body is a file, of that media type.
	body      []byte
	mediaType string
	// filename has the file saved under that name and not shown.
	filename  string
	immutable bool // a file that may be kept for ever
	stream    http.HandlerFunc
}

// page answers with templates/NAME.html, which shows data.
func (v *visit) page(name, title string, data any) *answer {
	return &answer{page: name, title: title, data: data}
}

// livePage is page, whose live parts follow the org's events of these types,
// and of the repo if the path names one.
func (v *visit) livePage(name, title string, data any, types ...ledger.EventType) *answer {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	query := url.Values{"types": {strings.Join(names, ",")}}
	if v.repo != "" {
		query.Set("repo", v.repo)
	}
	a := v.page(name, title, data)
	a.live = v.pathOf(orgPattern, "events") + "?" + query.Encode()
	a.liveSince = v.since
	return a
}

// live is for handlers that answer with a livePage and do not call latest first
// themselves.
func live(handle handler) handler {
	return func(v *visit) (*answer, error) {
		if _, err := v.latest(1); err != nil {
			return nil, err
		}
		return handle(v)
	}
}

// latest returns the org's newest events. It notes the first as the one up to
// which the page shows everything, so nothing else of a livePage is read before.
func (v *visit) latest(most int) ([]event, error) {
	bodies, err := v.api.EventsPage(v.ctx(), v.org, client.EventFilter{Types: ledger.EventTypes(), Newest: true},
		client.Query{Limit: most})
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

// The most bytes that a form may have. A policy of 1 MiB has most of its signs
// written as three; who has not signed in sends no more than a token or a name.
const (
	maxForm     = 4 << 20
	maxOpenForm = 64 << 10
)

// form reads the form that was sent.
func (v *visit) form() (*form.Form, error) {
	most := int64(maxForm)
	if v.route.scope == open {
		most = maxOpenForm
	}
	v.r.Body = http.MaxBytesReader(nil, v.r.Body, most)
	if err := v.r.ParseForm(); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, ledger.Errorf(ledger.CodePayloadTooLarge, "form too large: at most %d bytes", most)
		}
		return nil, ledger.Errorf(ledger.CodeInvalidParameter, "invalid form: fields must be URL-encoded")
	}
	return &form.Form{Values: v.r.PostForm}, nil
}

// A formPage shows a form, and nothing else that changes.
type formPage struct{ Form *form.Form }

// again shows the page of a form once more, with what is wrong.
func again(f *form.Form, a *answer) *answer {
	a.status = cmp.Or(f.Status, http.StatusUnprocessableEntity)
	return a
}

// seeOther has the browser get another page, after a form was sent.
func seeOther(path string) *answer {
	return &answer{location: path}
}

// file answers with bytes that are saved under that name.
func file(name, mediaType string, body []byte) *answer {
	return &answer{body: body, mediaType: mediaType, filename: name}
}

// pathTo returns the path of a page, its segments escaped.
func pathTo(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// pathOf fills in the pattern with the visit's org and repo, and returns the
// path of that page or, by more segments, of one below it.
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

// codeOf returns the code of an error, wherever it comes from.
func codeOf(err error) ledger.Code {
	if e, ok := errors.AsType[*ledger.Error](err); ok {
		return e.Code
	}
	return client.CodeOf(err)
}
