package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/form"
	"github.com/ledgerd/ledgerd/server/web/session"
)

// showHome redirects to the visitor's org.
func showHome(v *visit) (*response, error) {
	if v.session == nil {
		return seeOther("/login"), nil
	}
	return seeOther(pathTo("orgs", v.session.Org)), nil
}

type loginPage struct {
	Form *form.Form
	// Ended reports whether the visitor's session has ended.
	Ended bool
	// Draft is a contract that was sent after the session ended. The page shows it,
	// so that its author can copy it.
	Draft string
}

func showLogin(v *visit) (*response, error) {
	if v.session != nil {
		return seeOther(localPath(v.query("next"))), nil
	}
	return v.page("login", "Sign in",
		loginPage{Form: form.New("next", localPath(v.query("next"))), Ended: v.query("ended") != ""}), nil
}

// signIn starts a session with the token of the form.
func signIn(v *visit) (*response, error) {
	f, err := v.form()
	if err != nil {
		return nil, err
	}
	secret, expires, err := v.site.api.SignIn(v.ctx(), strings.TrimSpace(f.Get("token")))
	if codeOf(err) == ledger.CodeUnauthenticated {
		f.Fail("token", err.Error())
		f.Values.Del("token")
		f.Status = http.StatusUnauthorized
		return again(f, v.page("login", "Sign in", loginPage{Form: f})), nil
	}
	if err != nil {
		return nil, err
	}

	if err := v.endSessions(); err != nil {
		return nil, err
	}
	resp := seeOther(localPath(f.Get("next")))
	resp.cookies = append(resp.cookies, session.Cookie(v.r, secret, expires))
	return resp, nil
}

func signOut(v *visit) (*response, error) {
	if err := v.endSessions(); err != nil {
		return nil, err
	}
	resp := seeOther("/login")
	resp.cookies = session.ExpiredCookies()
	return resp, nil
}

// endSessions ends the sessions of all cookies of the request.
func (v *visit) endSessions() error {
	for _, secret := range session.Secrets(v.r) {
		if err := v.site.api.SignOut(v.ctx(), secret); err != nil {
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
