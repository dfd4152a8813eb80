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
	"github.com/ledgerd/ledgerd/server/web/form"
	"github.com/ledgerd/ledgerd/server/web/limiter"
	"github.com/ledgerd/ledgerd/server/web/session"
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
func (v *visit) problem(err error) *response {
	p := v.site.explain(v.r, err)
	if p.Status == http.StatusUnauthorized {
		return v.toLogin()
	}
	if p.Status == http.StatusNotFound && v.repo != "" {
		if _, err := v.api.Repo(v.ctx(), v.org, v.repo); codeOf(err) == ledger.CodeNotFound {
			v.repo = "" // no tabs for a repo that does not exist
		}
	}
	resp := v.page("problem", p.Title, p)
	resp.status = p.Status
	return resp
}

func (v *visit) toLogin() *response {
	query, next := url.Values{}, v.pathBack()
	if draft := v.unsaved(); draft != "" {
		resp := v.page("login", "Sign in", loginPage{Form: form.New("next", next), Ended: true, Draft: draft})
		resp.status, resp.cookies = http.StatusUnauthorized, session.ExpiredCookies()
		return resp
	}
	if next != "" {
		query.Set("next", next)
	}
	resp := seeOther("/login")
	if session.Secret(v.r) != "" {
		query.Set("ended", "1")
		resp.cookies = session.ExpiredCookies()
	}
	if len(query) > 0 {
		resp.location += "?" + query.Encode()
	}
	return resp
}

// unsaved returns the contract of a request of the policy editor. It is empty
// for other requests, and if the form is longer than maxOpenForm.
func (v *visit) unsaved() string {
	if v.r.Method != http.MethodPost || v.route.pattern != policyPattern+"/edit" {
		return ""
	}
	if v.parseForm(maxOpenForm) != nil {
		return ""
	}
	return strings.ReplaceAll(v.r.PostForm.Get("document"), "\r\n", "\n")
}

// pathBack returns the path to return to after signing in. For a form, it is the
// nearest page at or above its path, or "" without such a page.
func (v *visit) pathBack() string {
	if wire.IsRead(v.r) {
		return v.r.URL.RequestURI()
	}
	pattern, path := v.route.pattern, v.r.URL.EscapedPath()
	for pattern != "" &&
		!slices.ContainsFunc(routes(), func(rt route) bool { return rt.pattern == pattern && rt.method == http.MethodGet }) {
		pattern, path = pattern[:strings.LastIndexByte(pattern, '/')], path[:strings.LastIndexByte(path, '/')]
	}
	return path
}

// fail writes the error page of a request that has no visit.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, err error) {
	v := &visit{site: s, w: w, r: r, memory: s.api.Memory("", r), api: s.client}
	if v.loadSession() == nil && v.session != nil {
		v.org = v.session.Org
	}
	p := s.explain(r, err)
	resp := v.page("problem", p.Title, p)
	resp.status = p.Status
	if err := v.write(w, resp); err != nil {
		s.log.ErrorContext(r.Context(), "write error page", "error", err)
		wire.WriteBody(w, r, p.Status, "text/plain; charset=utf-8", []byte(p.Detail+"\n"))
	}
}

// explain returns the page of an error. Internal errors are logged; their page
// has no details.
func (s *Site) explain(r *http.Request, err error) problemPage {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return problemPage{e.Status, titleOf(e.Status), e.Problem.Detail, several(e.Problem.Errors), e.Problem.RequestID}
	}
	e := wire.Explain(err)
	if e.Code == ledger.CodeInternal {
		s.log.ErrorContext(r.Context(), "page failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	p := problemPage{Status: wire.StatusOf(e), Title: titleOf(wire.StatusOf(e)), Detail: e.Detail,
		Fields: several(e.Fields)}
	if errors.Is(err, limiter.ErrBusy) {
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
