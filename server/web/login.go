package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/form"
	"github.com/ledgerd/ledgerd/server/web/session"
)

// showHome leads to the org of who is signed in.
func showHome(v *visit) (*answer, error) {
	if v.session == nil {
		return seeOther("/login"), nil
	}
	return seeOther(pathTo("orgs", v.session.Org)), nil
}

type loginPage struct {
	Form *form.Form
	// Ended tells that there was a session, which is over.
	Ended bool
	// Draft is a contract that was sent when the session was over. It is shown,
	// for whoever has written it to take along.
	Draft string
}

func showLogin(v *visit) (*answer, error) {
	if v.session != nil {
		return seeOther(localPath(v.query("next"))), nil
	}
	return v.page("login", "Sign in",
		loginPage{Form: form.New("next", localPath(v.query("next"))), Ended: v.query("ended") != ""}), nil
}

// signIn begins a session with the token that was given.
func signIn(v *visit) (*answer, error) {
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
	a := seeOther(localPath(f.Get("next")))
	a.cookies = append(a.cookies, session.Cookie(v.r, secret, expires))
	return a, nil
}

func signOut(v *visit) (*answer, error) {
	if err := v.endSessions(); err != nil {
		return nil, err
	}
	a := seeOther("/login")
	a.cookies = session.EndedCookies()
	return a, nil
}

// endSessions ends those of all cookies that the browser has sent.
func (v *visit) endSessions() error {
	for _, secret := range session.Secrets(v.r) {
		if err := v.site.api.SignOut(v.ctx(), secret); err != nil {
			return err
		}
	}
	return nil
}

// localPath returns where to go after signing in: only ever a page of this site.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.Contains(u.Path, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}
