package service

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// Even at debug level, the log has no secret. Its lines name the token and the org.
func TestLogHasNoSecret(t *testing.T) {
	log := new(testenv.Buffer)
	s := config.Default()
	s.Listen, s.Database = "127.0.0.1:0", config.Database(filepath.Join(t.TempDir(), "ledger.db"))
	s.Webhooks.AllowedNetworks = config.Networks{netip.MustParsePrefix("127.0.0.0/8")}
	lines := slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})
	v, err := Start(t.Context(), s, &Log{Logger: slog.New(lines)})
	must.OK(t, err)
	answered := make(chan struct{}, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the receiver's stack trace", http.StatusInternalServerError)
		select {
		case answered <- struct{}{}:
		default:
		}
	}))
	defer receiver.Close()
	token, secrets := useSecrets(t, v, receiver.URL)
	<-answered
	if err := v.Stop(0, time.Second); err != nil {
		t.Error(err)
	}

	for what, secret := range secrets {
		if secret == "" {
			t.Errorf("%s is empty: the test checks nothing", what)
		} else if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %s", what)
		}
	}
	who := `"token":"` + token + `","org":"acme"}`
	for _, path := range []string{"/v1/orgs/acme/repos", "/orgs/acme"} {
		if !hasLine(log.String(), `"path":"`+path+`"`, `"request":"`, who) {
			t.Errorf("no line has the path %s, a request id and %s:\n%s", path, who, log)
		}
	}
	if !hasLine(log.String(), `"path":"/setup"`, `"request":"`) {
		t.Errorf("the request of /setup is not logged:\n%s", log)
	}
}

// hasLine reports whether a line of a text contains all parts.
func hasLine(text string, parts ...string) bool {
	for line := range strings.Lines(text) {
		missing := false
		for _, part := range parts {
			missing = missing || !strings.Contains(line, part)
		}
		if !missing {
			return true
		}
	}
	return false
}

// useSecrets sends every kind of secret to a server, whose webhook has a receiver. It returns the
// id of the token that it used and the secrets by what they are.
func useSecrets(t *testing.T, v *Instance, receiver string) (token string, secrets map[string]string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	check := func(err error) {
		t.Helper()
		must.OK(t, err)
	}
	setup, err := url.Parse(v.SetupURL())
	check(err)
	page(t, setup.String())
	host, err := v.Host()
	check(err)
	_, err = host.CreateOrg(ctx, ledger.NewOrg{Name: "acme"})
	check(err)
	admin, err := host.CreateToken(ctx, "acme", ledger.NewToken{Name: "ada", Scope: ledger.Admin})
	check(err)

	c, err := client.New(v.URL, client.Options{Token: admin.Secret})
	check(err)
	_, err = c.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "api"})
	check(err)
	_, _ = c.CreateWebhook(ctx, "acme", "api", outbound.NewWebhook{URL: "https://ada:hunter2@example.com/"})
	hook, err := c.CreateWebhook(ctx, "acme", "api", outbound.NewWebhook{URL: receiver + "/in?key=opensesame"})
	check(err)
	rotated, err := c.RotateWebhook(ctx, "acme", "api", hook.ID, 0)
	check(err)
	_, err = c.PingWebhook(ctx, "acme", "api", hook.ID)
	check(err)
	page(t, v.URL+"/v1/orgs/acme?token="+admin.Secret)
	link, _ := v.site.SignInPath(admin, time.Minute)
	page(t, v.URL+link)

	return admin.ID, map[string]string{
		"the API token": admin.Secret, "the session": signIn(t, v.URL, admin.Secret),
		"the setup key": setup.Query().Get("key"),
		"a sign-in key": strings.TrimPrefix(link, "/login?link="),
		"a password":    "hunter2", "what a receiver answers": "stack trace", "a key in a URL": "opensesame",
		"a webhook's secret": hook.Secret, "the new secret of a webhook": rotated.Secret,
	}
}

// signIn signs in with a token, shows a page, and returns the secret of the session.
func signIn(t *testing.T, base, token string) string {
	t.Helper()
	jar := must.Get(cookiejar.New(nil))(t)

	browser := &http.Client{Jar: jar}
	response, err := browser.PostForm(base+"/login", url.Values{"token": {token}, "next": {"/orgs/acme"}})
	must.OK(t, err)
	must.OK(t, response.Body.Close())

	at := must.Get(url.Parse(base))(t)
	if cookies := jar.Cookies(at); len(cookies) == 1 {
		return cookies[0].Value
	}
	return ""
}
