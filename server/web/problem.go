package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/server/web/page"
	"github.com/ledgerd/ledgerd/server/web/turns"
)

// A problemPage shows an error.
type problemPage struct {
	Status    int
	Title     string
	Detail    string
	Fields    []ledger.FieldError
	RequestID string
}

// problem returns the page of an error. Visitors who are not signed in are
// redirected to the sign-in, and back afterwards.
func (s *Site) problem(v *page.Visit, err error) *page.Response {
	p := s.explain(v.Writer, v.Request, err)
	if p.Status == http.StatusUnauthorized {
		return s.toLogin(v)
	}
	if p.Status == http.StatusNotFound && v.Repo != "" {
		if _, err := v.API.Repo(v.Ctx(), v.Org, v.Repo); page.CodeOf(err) == ledger.CodeNotFound {
			v.Repo = "" // no tabs for a repo that does not exist
		}
	}
	resp := v.Page("problem", p.Title, p)
	resp.Status = p.Status
	return resp
}

func (s *Site) toLogin(v *page.Visit) *page.Response {
	query, next := url.Values{}, s.pathBack(v)
	if draft := unsaved(v); draft != "" {
		resp := s.loginPage(v, loginPage{Form: page.NewForm("next", next), Ended: true, Draft: draft})
		resp.Status, resp.Cookies = http.StatusUnauthorized, s.cookies.Expired()
		return resp
	}
	if next != "" {
		query.Set("next", next)
	}
	var cookies []*http.Cookie
	if s.cookies.Secret(v.Request) != "" {
		query.Set("ended", "1")
		cookies = s.cookies.Expired()
	}
	resp := page.SeeOther(page.WithQuery(v.Base+loginPattern, query))
	resp.Cookies = cookies
	return resp
}

// unsaved returns the contract of a request of the policy editor. It is empty
// for other requests, and if the form is longer than page.MaxOpenForm.
func unsaved(v *page.Visit) string {
	if v.Request.Method != http.MethodPost || v.Route.Pattern != page.EditPolicyPattern {
		return ""
	}
	if v.ParseForm(page.MaxOpenForm) != nil {
		return ""
	}
	return strings.ReplaceAll(v.Request.PostForm.Get("document"), "\r\n", "\n")
}

// pathBack returns the path to return to after signing in. For a form, it is the
// nearest page at or above its path, or "" without such a page.
func (s *Site) pathBack(v *page.Visit) string {
	if wire.IsRead(v.Request) {
		return v.Request.URL.RequestURI()
	}
	pattern, path := v.Route.Pattern, v.Request.URL.EscapedPath()
	isPage := func(rt page.Route) bool { return rt.Pattern == pattern && rt.Method == http.MethodGet }
	for pattern != "" && !slices.ContainsFunc(s.routes(), isPage) {
		pattern, path = pattern[:strings.LastIndexByte(pattern, '/')], path[:strings.LastIndexByte(path, '/')]
	}
	return path
}

// fail writes the error page of a request that has no visit.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, err error) {
	v := s.visit(page.Route{}, w, r)
	if s.loadSession(v) == nil && v.Session != nil {
		v.Org = v.Session.Org
	}
	p := s.explain(w, r, err)
	resp := v.Page("problem", p.Title, p)
	resp.Status = p.Status
	if err := s.write(v, w, resp); err != nil {
		s.log.ErrorContext(r.Context(), "write error page", "error", err)
		wire.WriteBody(w, r, p.Status, "text/plain; charset=utf-8", []byte(p.Detail+"\n"))
	}
}

// explain returns the page of an error. Internal errors are logged; their page
// has no details.
func (s *Site) explain(w http.ResponseWriter, r *http.Request, err error) problemPage {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return problemPage{e.Status, titleOf(e.Status), e.Problem.Detail, several(e.Problem.Errors), e.Problem.RequestID}
	}
	e, id := wire.Explain(err), ""
	if e.Code == ledger.CodeInternal {
		id = w.Header().Get(wire.HeaderRequestID)
		s.log.ErrorContext(r.Context(), "page failed", "method", r.Method, "path", r.URL.Path, "error", err,
			"remote", r.RemoteAddr, "request", id, wire.CallerOf(r))
	}
	p := problemPage{Status: wire.StatusOf(e), Title: titleOf(wire.StatusOf(e)), Detail: e.Detail,
		Fields: several(e.Fields), RequestID: id}
	if errors.Is(err, turns.ErrBusy) {
		p.Title = "Server busy"
	}
	return p
}

// several returns the errors of fields if there are two or more. A single one is
// in the problem's detail.
func several(fields []ledger.FieldError) []ledger.FieldError {
	if len(fields) < 2 {
		return nil
	}
	return fields
}

func titleOf(status int) string {
	switch status {
	case http.StatusForbidden:
		return "Access denied"
	case http.StatusNotFound:
		return "Page not found"
	case http.StatusConflict, http.StatusPreconditionFailed:
		return "Conflict"
	case http.StatusTooManyRequests:
		return "Too many requests"
	case http.StatusServiceUnavailable:
		return "Service unavailable"
	case http.StatusInternalServerError:
		return "Internal error"
	}
	return "Request failed"
}
