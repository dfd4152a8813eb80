package web

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// The paths of the sign-in, below the base path. The name of a provider follows after withPattern and
// CallbackPath, with a slash.
const (
	loginPattern = "/login"
	withPattern  = loginPattern + "/with"
	joinPattern  = loginPattern + "/join"
	// CallbackPath is the path to which providers send their answers.
	CallbackPath = loginPattern + "/callback"
)

// showHome redirects to the visitor's org.
func showHome(v *page.Visit) (*page.Response, error) {
	if v.Session == nil {
		return page.SeeOther(v.Base + loginPattern), nil
	}
	return page.SeeOther(v.Base + page.PathTo("orgs", v.Session.Org)), nil
}

// SignInPath returns the path, below the base path, of a page that signs a person in with a token, once, on this
// machine. It contains a key, so it is a secret. The channel is closed when it was used.
func (s *Site) SignInPath(token ledger.Token, lifetime time.Duration) (path string, used <-chan struct{}) {
	key, used := s.links.Add(token, lifetime)
	return loginPattern + "?" + url.Values{"link": {key}}.Encode(), used
}

type loginPage struct {
	Form *page.Form
	// Link is the token that a sign-in link signs in with, without its secret; nil without
	// a link.
	Link *ledger.Token
	// Ended reports whether the visitor's session has ended.
	Ended bool
	// Again reports whether the visitor is signed in, and must sign in again.
	Again bool
	// Providers are the links to the providers.
	Providers []providerLink
	// Draft is a contract that was sent after the session ended. The page shows it,
	// so that its author can copy it.
	Draft string
}

// A providerLink begins a sign-in with a provider.
type providerLink struct{ Label, Path string }

// loginPage returns the sign-in page, with the links to the providers. The fields next, org and max_age
// of the form are what the sign-in is for.
func (s *Site) loginPage(v *page.Visit, p loginPage) *page.Response {
	query := url.Values{}
	for _, name := range []string{"next", "org", "max_age"} {
		if value := p.Form.Get(name); value != "" {
			query.Set(name, value)
		}
	}
	for _, provider := range s.providers {
		path := s.base + withPattern + page.PathTo(provider.Name())
		p.Providers = append(p.Providers, providerLink{provider.Label(), page.WithQuery(path, query)})
	}
	return v.Page("login", "Sign in", p)
}

func (s *Site) showLogin(v *page.Visit) (*page.Response, error) {
	if v.Session != nil && v.Query("again") != "" && len(s.providers) > 0 {
		f := page.NewForm("next", s.localPath(v.Query("next")), "org", v.Session.Org, "max_age", "0")
		return s.loginPage(v, loginPage{Form: f, Again: true}), nil
	}
	if v.Session != nil {
		return page.SeeOther(s.localPath(v.Query("next"))), nil
	}
	if key := v.Query("link"); key != "" {
		return s.showLink(v, key)
	}
	f := page.NewForm("next", s.localPath(v.Query("next")))
	return s.loginPage(v, loginPage{Form: f, Ended: v.Query("ended") != ""}), nil
}

// showLink shows whom a sign-in link signs in. Only the form of the page uses the link up, so
// that nothing does that looks at links in advance.
func (s *Site) showLink(v *page.Visit, key string) (*page.Response, error) {
	token, err := s.links.Check(v.Request, key)
	if err != nil {
		return nil, err
	}
	f := page.NewForm("link", key, "next", s.localPath(v.Query("next")))
	return v.Page("login", "Sign in", loginPage{Form: f, Link: &token}), nil
}

// signIn starts a session with the token of the form, or of its sign-in link.
func (s *Site) signIn(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	token := strings.TrimSpace(f.Get("token"))
	if key := f.Get("link"); key != "" {
		linked, err := s.links.Take(v.Request, key)
		if err != nil {
			return nil, err
		}
		token = linked.Secret
	}
	secret, expires, err := s.api.SignIn(v.Ctx(), token)
	if err != nil {
		err = s.api.CountFailure(http.Header{}, v.Request.RemoteAddr, err)
	}
	if page.CodeOf(err) == ledger.CodeUnauthenticated {
		f.Fail("token", err.Error())
		f.Values.Del("token")
		f.Status = http.StatusUnauthorized
		return page.Again(f, s.loginPage(v, loginPage{Form: f})), nil
	}
	if err != nil {
		return nil, err
	}

	return s.begun(v, s.cookies.New(v.Request, secret, expires), f.Get("next"))
}

// begun ends the former sessions of the browser, begins the one with a cookie, and shows the next page.
func (s *Site) begun(v *page.Visit, session *http.Cookie, next string) (*page.Response, error) {
	if err := s.endSessions(v); err != nil {
		return nil, err
	}
	resp := page.SeeOther(s.localPath(next))
	resp.Cookies = append(resp.Cookies, session)
	return resp, nil
}

func (s *Site) signOut(v *page.Visit) (*page.Response, error) {
	if err := s.endSessions(v); err != nil {
		return nil, err
	}
	resp := page.SeeOther(v.Base + loginPattern)
	resp.Cookies = s.cookies.Expired()
	return resp, nil
}

// endSessions ends the sessions of all cookies of the request.
func (s *Site) endSessions(v *page.Visit) error {
	for _, secret := range s.cookies.Secrets(v.Request) {
		if err := s.api.SignOut(v.Ctx(), secret); err != nil {
			return err
		}
	}
	return nil
}

// localPath returns next if it is a page of this site, and the home page otherwise. Other paths
// of the host may belong to other programs.
func (s *Site) localPath(next string) string {
	home := s.base + "/"
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, home) || strings.HasPrefix(next, "//") ||
		strings.Contains(u.Path, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return home
	}
	if !strings.HasPrefix(path.Clean(u.Path)+"/", home) { // dot segments lead out of the base path
		return home
	}
	return next
}
