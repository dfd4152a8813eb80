package e2e_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/idp/idptest"
)

// TestSignInWithProvider signs a person in to the real binary with a provider whose certificate is in
// SSL_CERT_FILE. The provider is down when the server starts.
func TestSignInWithProvider(t *testing.T) {
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

// withProvider has the server accept a provider.
func (o *org) withProvider(name string, p *idptest.Provider) {
	o.t.Helper()
	providers, roots := filepath.Join(o.folder, "providers.yaml"), filepath.Join(o.folder, "roots.pem")
	check(o.t, os.WriteFile(providers, []byte(p.YAML(name, "Okta")), 0o600))
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	check(o.t, os.WriteFile(roots, certificate, 0o600))
	o.env = append(o.env, "LEDGERD_SIGN_IN_PROVIDERS="+providers, "LEDGERD_BASE_URL="+o.url, "SSL_CERT_FILE="+roots)
}

// createRule creates a rule of members.
func (o *org) createRule(rule string) {
	o.t.Helper()
	admin := o.ledgerd("token", "create", "--org", "acme", "--name", "admin", "--scope", "admin")
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, o.url+"/v1/orgs/acme/member-rules",
		strings.NewReader(rule))
	check(o.t, err)
	request.Header.Set("Authorization", "Bearer "+admin)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	check(o.t, err)
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusCreated {
		o.t.Fatalf("create the rule: %s %s", response.Status, body)
	}
}

// A personBrowser is a browser that follows redirects, also to the provider.
type personBrowser struct {
	t      *testing.T
	client *http.Client
}

func newPerson(t *testing.T, p *idptest.Provider) *personBrowser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	check(t, err)
	client := p.Client()
	client.Jar = jar
	return &personBrowser{t, client}
}

// get returns the page at the end of all redirects.
func (b *personBrowser) get(url string) (status int, body string) {
	b.t.Helper()
	response, err := b.client.Get(url)
	check(b.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(b.t, err)
	return response.StatusCode, string(text)
}
