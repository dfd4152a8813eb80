package web

import (
	"net/http"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// showHome leads to the org of who is signed in.
func showHome(v *visit) (*answer, error) {
	if v.session == nil {
		return seeOther("/login"), nil
	}
	return seeOther(pathTo("orgs", v.session.Org)), nil
}

type loginPage struct {
	Form *form
	// Ended tells that there was a session, which is over.
	Ended bool
	// Kept is a contract that was sent when the session was over. It is shown,
	// for whoever has written it to take along.
	Kept string
}

func showLogin(v *visit) (*answer, error) {
	if v.session != nil {
		return seeOther(localPath(v.query("next"))), nil
	}
	return v.page("login", "Sign in", loginPage{Form: newForm("next", localPath(v.query("next"))), Ended: v.query("ended") != ""}), nil
}

// signIn begins a session with the token that was given.
func signIn(v *visit) (*answer, error) {
	f, err := v.form()
	if err != nil {
		return nil, err
	}
	secret, expires, err := v.site.api.SignIn(v.ctx(), strings.TrimSpace(f.Get("token")))
	if codeOf(err) == ledger.CodeUnauthenticated {
		f.fail("token", err.Error())
		f.Values.Del("token")
		f.status = http.StatusUnauthorized
		return f.again(v.page("login", "Sign in", loginPage{Form: f})), nil
	}
	if err != nil {
		return nil, err
	}
	if err := v.endSessions(); err != nil {
		return nil, err
	}
	a := seeOther(localPath(f.Get("next")))
	a.cookies = append(a.cookies, sessionCookie(v.r, secret, expires))
	return a, nil
}

func signOut(v *visit) (*answer, error) {
	if err := v.endSessions(); err != nil {
		return nil, err
	}
	a := seeOther("/login")
	a.cookies = endedCookies()
	return a, nil
}

// endSessions ends those of all cookies that the browser has sent.
func (v *visit) endSessions() error {
	for _, name := range []string{secureCookie, plainCookie} {
		if secret := cookie(v.r, name); secret != "" {
			if err := v.site.api.SignOut(v.ctx(), secret); err != nil {
				return err
			}
		}
	}
	return nil
}
