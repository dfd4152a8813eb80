package web_test

import (
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/internal/idp/idptest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/server/web"
	"github.com/ledgerd/ledgerd/store"
)

// A signInEnv is an env with the providers okta and gitlab, below a base path, which can be empty. The
// group dev of okta has the role contributor in acme.
type signInEnv struct {
	*env
	base         string
	public       string // the URL to which providers send people back
	okta, gitlab *idptest.Provider
}

func newSignInEnv(t *testing.T) *signInEnv {
	t.Helper()
	return newSignInEnvWith(t, server.Config{})
}

// newSignInEnvWith returns a signInEnv with settings.
func newSignInEnvWith(t *testing.T, c server.Config) *signInEnv {
	t.Helper()
	return newSignInEnvAt(t, "", c)
}

// newSignInEnvAt is like newSignInEnvWith, behind a proxy with an origin; by default without one.
func newSignInEnvAt(t *testing.T, origin string, c server.Config) *signInEnv {
	t.Helper()
	base := c.Base
	e := &signInEnv{env: newEnv(t), base: base, okta: idptest.New(t), gitlab: idptest.New(t)}
	e.okta.Now, e.gitlab.Now = e.clock.now, e.clock.now
	configs, err := idp.Read(strings.NewReader(e.okta.YAML("okta", "Okta") + e.gitlab.YAML("gitlab", "GitLab")))
	must.OK(t, err)
	maps.Copy(e.providers, idp.Orgs(configs))
	roots := e.okta.Roots()
	roots.AddCert(e.gitlab.Certificate())

	logger := slog.New(slog.NewTextHandler(e.log, nil))
	network := httptest.NewUnstartedServer(nil)
	e.url = "http://" + network.Listener.Addr().String() + base
	if e.public = e.url; origin != "" {
		e.public = origin + base
	}
	c.Store, c.Now, c.Logger = e.db, e.clock.now, logger
	e.api = server.New(c)
	t.Cleanup(e.api.EndStreams)
	e.site, err = web.New(web.Config{API: e.api, Logger: logger, Now: e.clock.now, Base: base,
		Providers: idp.New(configs, idp.Options{CallbackURL: e.public + web.CallbackPath, RootCAs: roots, Logger: logger,
			Now: e.clock.now})})
	must.OK(t, err)
	network.Config.Handler = e.site.Handler()
	network.Start()
	t.Cleanup(network.Close)

	e.admit("acme", e.okta.URL, "dev", member.Contributor)
	e.okta.SignInAs(person("ann", "dev"))
	e.gitlab.SignInAs(person("ann", "dev"))
	return e
}

// admit creates a rule that admits a group of an issuer to an org.
func (e *signInEnv) admit(org, issuer, group string, role member.Role) {
	e.t.Helper()
	_, err := e.db.CreateMemberRule(e.t.Context(), org, member.NewRule{Issuer: issuer, Claim: "groups", Value: group,
		Role: role, DN: "cn={sub},ou=people-dev,o=" + org})
	must.OK(e.t, err)
}

func (e *signInEnv) createOrg(name string) {
	e.t.Helper()
	_, err := e.host.CreateOrg(e.t.Context(), ledger.NewOrg{Name: name})
	must.OK(e.t, err)
}

func person(sub string, groups ...string) idptest.Person {
	return idptest.Person{Claims: map[string]any{"sub": sub, "groups": groups}}
}

// begin begins a sign-in, and returns the path to which the provider sends the browser back.
func (e *signInEnv) begin(w *browser, path string) string {
	e.t.Helper()
	location := w.get(path).want(303).header.Get("Location")
	return e.visit(location)
}

// visit signs in at a provider.
func (e *signInEnv) visit(location string) string {
	e.t.Helper()
	p := e.okta
	if strings.HasPrefix(location, e.gitlab.URL) {
		p = e.gitlab
	}
	client := p.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Get(location)
	must.OK(e.t, err)
	defer resp.Body.Close()
	path, ok := strings.CutPrefix(resp.Header.Get("Location"), e.public)
	if !ok {
		e.t.Fatalf("the provider redirects from %s to %q", location, resp.Header.Get("Location"))
	}
	return path
}

// signInAt signs in, and returns the last response.
func (e *signInEnv) signInAt(w *browser, path string) page {
	e.t.Helper()
	return w.get(e.begin(w, path))
}

// changed returns a path with other parameters; an empty one is removed.
func changed(t *testing.T, path string, parameters ...string) string {
	t.Helper()
	u := must.Get(url.Parse(path))(t)
	query := u.Query()
	for i := 0; i < len(parameters); i += 2 {
		query.Set(parameters[i], parameters[i+1])
		if parameters[i+1] == "" {
			query.Del(parameters[i])
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// wantRefused checks that a page is the sign-in page with an error, and starts no session.
func (e *signInEnv) wantRefused(w *browser, p page, status int, texts ...string) page {
	e.t.Helper()
	p.want(status).has(append(texts, "Sign in with Okta", "API token")...)
	checkHTML(e.t.(*testing.T), "refused", p)
	for _, cookie := range p.header.Values("Set-Cookie") {
		if strings.HasPrefix(cookie, "ledgerd=") || !strings.Contains(cookie, "Max-Age=0") {
			e.t.Errorf("%s: the response sets a cookie: %s", p.what, cookie)
		}
	}
	w.get("/orgs/acme").want(303)
	return p
}

// authTime returns the time of the only sign-in.
func (e *signInEnv) authTime() ledger.Time {
	e.t.Helper()
	list, err := e.db.SignIns(e.t.Context(), "acme", "", store.Query{Limit: 10})
	must.OK(e.t, err)
	if len(list.Data) != 1 {
		e.t.Fatalf("the sign-ins are %+v", list.Data)
	}
	return list.Data[0].AuthTime
}
