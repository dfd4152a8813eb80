package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/form"
	"github.com/ledgerd/ledgerd/server/web/page"
	"github.com/ledgerd/ledgerd/server/web/session"
)

// showHome redirects to the visitor's org.
func showHome(v *page.Visit) (*page.Response, error) {
	if v.Session == nil {
		return page.SeeOther("/login"), nil
	}
	return page.SeeOther(page.PathTo("orgs", v.Session.Org)), nil
}

type loginPage struct {
	Form *form.Form
	// Ended reports whether the visitor's session has ended.
	Ended bool
	// Draft is a contract that was sent after the session ended. The page shows it,
	// so that its author can copy it.
	Draft string
}

func showLogin(v *page.Visit) (*page.Response, error) {
	if v.Session != nil {
		return page.SeeOther(localPath(v.Query("next"))), nil
	}
	return v.Page("login", "Sign in",
		loginPage{Form: form.New("next", localPath(v.Query("next"))), Ended: v.Query("ended") != ""}), nil
}

// signIn starts a session with the token of the form.
func (s *Site) signIn(v *page.Visit) (*page.Response, error) {
	f, err := v.Form()
	if err != nil {
		return nil, err
	}
	secret, expires, err := s.api.SignIn(v.Ctx(), strings.TrimSpace(f.Get("token")))
	if page.CodeOf(err) == ledger.CodeUnauthenticated {
		f.Fail("token", err.Error())
		f.Values.Del("token")
		f.Status = http.StatusUnauthorized
		return page.Again(f, v.Page("login", "Sign in", loginPage{Form: f})), nil
	}
	if err != nil {
		return nil, err
	}

	if err := s.endSessions(v); err != nil {
		return nil, err
	}
	resp := page.SeeOther(localPath(f.Get("next")))
	resp.Cookies = append(resp.Cookies, session.Cookie(v.Request, secret, expires))
	return resp, nil
}

func (s *Site) signOut(v *page.Visit) (*page.Response, error) {
	if err := s.endSessions(v); err != nil {
		return nil, err
	}
	resp := page.SeeOther("/login")
	resp.Cookies = session.ExpiredCookies()
	return resp, nil
}

// endSessions ends the sessions of all cookies of the request.
func (s *Site) endSessions(v *page.Visit) error {
	for _, secret := range session.Secrets(v.Request) {
		if err := s.api.SignOut(v.Ctx(), secret); err != nil {
			return err
		}
	}
	return nil
}

// localPath returns next if it is a page of this site, and / otherwise.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.Contains(u.Path, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}
