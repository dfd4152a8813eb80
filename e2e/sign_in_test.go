package e2e_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/idp/idptest"
	"github.com/ledgerd/ledgerd/internal/must"
)

// TestSignInWithProvider signs a person in to the real binary with a provider whose certificate is in
// SSL_CERT_FILE. The provider is down when the server starts.
func TestSignInWithProvider(t *testing.T) {
	t.Parallel()
	o, provider := newOrg(t), idptest.New(t)
	provider.SignInAs(idptest.Person{Claims: map[string]any{"sub": "00u1", "groups": []string{"dev"}}})
	provider.Replace(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	o.withProvider("okta", provider)
	o.start()
	o.createRule(`{"issuer": "` + provider.URL + `", "claim": "groups", "value": "dev", "role": "reader",
		"dn": "cn={sub},ou=people-dev,o=acme"}`)
	b := newPerson(t, provider)
	if status, body := b.get(o.url + "/login/with/okta"); status != 503 || !strings.Contains(body, "cannot be used now") {
		t.Fatalf("while the provider is down: %d %s", status, body)
	}

	provider.Replace(nil)
	deadline := time.Now().Add(time.Minute)
	status, body := b.get(o.url + "/login/with/okta?next=/orgs/acme")
	for status == 503 && time.Now().Before(deadline) { // it is asked again after 5 seconds
		time.Sleep(200 * time.Millisecond)
		status, body = b.get(o.url + "/login/with/okta?next=/orgs/acme")
	}
	if status != 200 || !strings.Contains(body, "00u1") || !strings.Contains(body, "Sign out") {
		t.Errorf("after the sign-in: %d %s", status, body)
	}

	// Another person, whom no rule admits, gets no session.
	provider.SignInAs(idptest.Person{Claims: map[string]any{"sub": "00u2", "groups": []string{"sales"}}})
	other := newPerson(t, provider)
	if status, body := other.get(o.url + "/login/with/okta"); status != 401 || !strings.Contains(body, "00u2") {
		t.Errorf("another person: %d %s", status, body)
	}
	if _, body := other.get(o.url + "/orgs/acme"); !strings.Contains(body, "Sign in with Okta") {
		t.Errorf("another person sees %s", body)
	}
	if log := o.log.String(); strings.Contains(log, idptest.ClientSecret) {
		t.Errorf("the log has the client secret: %s", log)
	}
}

// TestOrgsOfAProvider signs in a member of acme while the admin of another org writes a rule that all
// accounts of the provider fulfil, and after the host has changed which orgs may use the provider.
func TestOrgsOfAProvider(t *testing.T) {
	t.Parallel()
	o, provider := newOrg(t), idptest.New(t)
	provider.SignInAs(idptest.Person{Claims: map[string]any{"sub": "00u1", "groups": []string{"dev", "everyone"}}})
	for _, name := range []string{"globex", "umbrella"} {
		o.ledgerd("org", "create", name)
	}
	o.withProvider("okta", provider, "acme", "globex")
	o.start()
	rule := func(org, claim, value string) string {
		return `{"issuer": "` + provider.URL + `", "claim": "` + claim + `", "value": "` + value + `", "role": "reader",
			"dn": "cn={sub},ou=people-dev,o=` + org + `"}`
	}
	o.createRule(rule("acme", "groups", "dev"))
	ann := newPerson(t, provider)
	if status, body := ann.get(o.url + "/login/with/okta?next=/orgs/acme"); status != 200 ||
		!strings.Contains(body, "Sign out") {
		t.Fatalf("the first sign-in: %d %s", status, body)
	}

	for org, claims := range map[string][2]string{"globex": {"aud", idptest.ClientID}, "umbrella": {"groups",
		"everyone"}} {
		if status, body := o.createRuleIn(org, rule(org, claims[0], claims[1])); status != 422 {
			t.Errorf("a rule on %s in %s: %d %s", claims[0], org, status, body)
		}
	}
	if status, body := o.createRuleIn("globex", rule("globex", "groups", "everyone")); status != 201 {
		t.Fatalf("a rule in globex: %d %s", status, body)
	}
	eve := newPerson(t, provider) // ann, in another browser
	status, body := eve.get(o.url + "/login/with/okta?org=globex")
	if status != 200 || !strings.Contains(body, "Join globex") {
		t.Fatalf("a sign-in to globex: %d %s", status, body)
	}
	if list := o.ledgerd("member", "list", "--org", "globex"); strings.Contains(list, "00u1") {
		t.Errorf("before she has joined, globex has %s", list)
	}
	_, key, _ := strings.Cut(body, `name="key" value="`)
	key, _, _ = strings.Cut(key, `"`)
	if status, body = eve.post(o.url+"/login/join", url.Values{"key": {key}, "org": {"globex"}}); status != 200 ||
		!strings.Contains(body, "Sign out") {
		t.Errorf("after she has joined: %d %s", status, body)
	}
	if list := o.ledgerd("member", "list", "--org", "globex"); !strings.Contains(list, "00u1") {
		t.Errorf("after she has joined, globex has %s", list)
	}

	// The host no longer names acme: its sign-ins end.
	o.kill()
	o.withProvider("okta", provider, "globex")
	o.start()
	if _, body := ann.get(o.url + "/orgs/acme"); !strings.Contains(body, "Sign in with Okta") {
		t.Errorf("acme shows %s", body)
	}
	if status, body := ann.get(o.url + "/login/with/okta?org=acme"); status != 401 {
		t.Errorf("a sign-in to acme: %d %s", status, body)
	}
	if _, body := eve.get(o.url + "/orgs/globex"); !strings.Contains(body, "Sign out") {
		t.Errorf("globex shows %s", body)
	}
}

// withProvider has the server accept a provider for orgs; by default for all.
func (o *org) withProvider(name string, p *idptest.Provider, orgs ...string) {
	o.t.Helper()
	providers, roots := filepath.Join(o.folder, "providers.yaml"), filepath.Join(o.folder, "roots.pem")
	must.OK(o.t, os.WriteFile(providers, []byte(p.YAML(name, "Okta", orgs...)), 0o600))
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	must.OK(o.t, os.WriteFile(roots, certificate, 0o600))
	o.env = append(o.env, "LEDGERD_SIGN_IN_PROVIDERS="+providers, "LEDGERD_BASE_URL="+o.url, "SSL_CERT_FILE="+roots)
}

// createRule creates a rule of members.
func (o *org) createRule(rule string) {
	o.t.Helper()
	if status, body := o.createRuleIn("acme", rule); status != http.StatusCreated {
		o.t.Fatalf("create the rule: %d %s", status, body)
	}
}

// createRuleIn asks the server to create a rule of members in an org, as its admin.
func (o *org) createRuleIn(org, rule string) (status int, body string) {
	o.t.Helper()
	admin := o.ledgerd("token", "create", "--org", org, "--name", "admin", "--scope", "admin")
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, o.url+"/v1/orgs/"+org+"/member-rules",
		strings.NewReader(rule))
	must.OK(o.t, err)
	request.Header.Set("Authorization", "Bearer "+admin)
	request.Header.Set("Content-Type", "application/json")
	return pageOf(o.t)(http.DefaultClient.Do(request))
}

// A personBrowser is a browser that follows redirects, also to the provider.
type personBrowser struct {
	t      *testing.T
	client *http.Client
}

func newPerson(t *testing.T, p *idptest.Provider) *personBrowser {
	t.Helper()
	jar := must.Get(cookiejar.New(nil))(t)
	client := p.Client()
	client.Jar = jar
	return &personBrowser{t, client}
}

// get returns the page at the end of all redirects.
func (b *personBrowser) get(url string) (status int, body string) {
	b.t.Helper()
	return pageOf(b.t)(b.client.Get(url))
}

// post sends a form, and returns the page at the end of all redirects.
func (b *personBrowser) post(address string, form url.Values) (status int, body string) {
	b.t.Helper()
	return pageOf(b.t)(b.client.PostForm(address, form))
}

// pageOf returns a function that reads a response.
func pageOf(t *testing.T) func(*http.Response, error) (status int, body string) {
	return func(response *http.Response, err error) (int, string) {
		t.Helper()
		must.OK(t, err)
		defer response.Body.Close()
		text := must.Get(io.ReadAll(response.Body))(t)
		return response.StatusCode, string(text)
	}
}
