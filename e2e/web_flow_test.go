package e2e_test

import (
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

// An admin does everything in the browser, from the setup link to the sign-out,
// with and without the pages' script.
func TestWebFromSetupToSignOut(t *testing.T) {
	testenv.Need(t, "bash", "chromium", "curl")
	t.Parallel()
	b := newBrowser(t)
	for _, script := range []bool{true, false} {
		t.Run(map[bool]string{true: "with script", false: "without script"}[script], func(t *testing.T) {
			t.Parallel()
			o := newEmptyLedger(t)
			o.env = append(o.env, "LEDGERD_WEBHOOKS_ALLOWED_NETWORKS=127.0.0.0/8,::1/128")
			o.start()

			s := &story{t: t, org: o, browser: b, script: script}
			s.admin = s.visitor()
			s.setUp()
			o.ledgerd("repo", "create", "acme/api")
			o.ledgerd("identity", "add", "--org", "acme", "--key", o.keyFile+".pub", "--dn", "cn=ci,ou=build,o=acme")
			s.createToken()
			s.createWebhook()
			s.editPolicy()
			s.watchCommit()
			s.revokeToken()
			s.signOut()
			s.admin.checkConsole(t)
		})
	}
}

// A story is an org whose admin uses the web interface. Its methods are steps.
type story struct {
	*org
	t       *testing.T
	browser *browser
	script  bool // whether pages may run their script
	admin   *visitor
	token   string // created by the admin
}

// visitor opens a tab, in which scripts run only if the story has them.
func (s *story) visitor() *visitor {
	v := s.browser.visitor(s.t, s.url)
	if !s.script {
		v.disableScript()
	}
	return v
}

// setUp follows the setup link and creates the first org and its admin token.
func (s *story) setUp() {
	link := regexp.MustCompile(`http://\S+/setup\?key=\S+`)
	waitFor(s.t, "the setup link", 10*time.Second, func() bool { return link.MatchString(s.log.String()) })
	path := strings.TrimPrefix(link.FindString(s.log.String()), s.url)
	v := s.admin
	v.open(path)
	v.fill("Org name", "Not a name!")
	v.press("Create org")
	v.sees("Nothing was saved", "Name your org")
	v.fill("Org name", "acme")
	v.press("Create org")
	v.sees("Created org acme", "it won't be shown again")
	secret := v.secret()
	v.press("I've saved it, continue")
	v.sees("No repos yet", "ledgerd repo create acme/api")

	other := s.visitor()
	other.open(path)
	other.sees("setup link expired")
	other.signIn(secret)
	other.sees("No repos yet")
	if read := other.read(); strings.Contains(read, secret) {
		s.t.Error("the admin token is shown again")
	}
	other.checkConsole(s.t)
}

// createToken creates a token and uses it with the curl command on the page.
func (s *story) createToken() {
	v := s.admin
	v.press("Settings")
	v.sees("first admin", "you")
	v.press("New token")
	v.fill("Name", strings.Repeat("x", 500))
	v.press("Create token")
	v.sees("Nothing was saved")
	v.fill("Name", "deploy bot")
	v.tick("write")
	v.press("Create token")
	v.sees("Created token deploy bot", "Scope write")
	s.token = v.secret()

	line := v.read()
	line = line[strings.Index(line, "curl -H"):]
	line = line[:strings.Index(line, "/repos'")+len("/repos'")]
	if out, err := exec.Command("bash", "-c", line+" -sS --fail").CombinedOutput(); err != nil ||
		!strings.Contains(string(out), `"name":"api"`) {
		s.t.Errorf("%s: %v\n%s", line, err, out)
	}

	v.press("I've saved it, continue")
	v.sees("deploy bot", "write")
	if strings.Contains(evaluate[string](v, "document.documentElement.outerHTML"), s.token) {
		s.t.Error("the token is shown again")
	}
}

// createWebhook creates a webhook, pings it and redelivers the ping.
func (s *story) createWebhook() {
	received := make(chan http.Header, 100)
	url := serve(s.t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		received <- r.Header
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "thank you")
	})
	nextPing := func() (delivery string) {
		select {
		case h := <-received:
			return h.Get("X-Ledger-Delivery")
		case <-time.After(20 * time.Second):
			s.t.Fatal("no ping for 20 s")
		}
		return ""
	}

	v := s.admin
	v.press("Repos")
	v.press("api")
	v.press("Webhooks")
	v.sees("No webhooks yet")
	v.press("New webhook")
	v.fill("URL", "http://10.1.2.3/ledger")
	v.press("Create webhook")
	v.sees("webhooks.allowed_networks") // the error under the field
	v.fill("URL", url+"/ledger")
	v.tick("radar") // clears it
	v.fill("Description", "the build farm")
	v.press("Create webhook")
	v.sees("Webhook created")
	if secret := v.secret(); !strings.HasPrefix(secret, "whsec_") {
		s.t.Errorf("the secret is %q, want the prefix whsec_", secret)
	}
	v.press("I've saved it, continue")
	v.sees("attestation, state, policy", "the build farm", "No deliveries yet")

	v.press("Ping")
	delivery := nextPing()
	s.reloadUntil("202")
	if !strings.HasSuffix(v.path(), "/deliveries/"+delivery) {
		v.press("api")
		v.press("Webhooks")
		v.press(url)
		v.press(delivery[:12])
	}
	v.sees("thank you", "POST "+url+"/ledger", `"type": "ping"`)
	v.press("Redeliver")
	if got := nextPing(); got != delivery {
		s.t.Errorf("redelivered %s, want %s", got, delivery)
	}
	s.reloadUntil("Attempts 2")
}

// reloadUntil reloads the page until it shows a text.
func (s *story) reloadUntil(text string) {
	s.t.Helper()
	waitFor(s.t, text, 10*time.Second, func() bool {
		s.admin.open(s.admin.path())
		return strings.Contains(s.admin.read(), text)
	})
}

// editPolicy saves an invalid policy, corrects it, previews it and saves it.
func (s *story) editPolicy() {
	sha := strings.Repeat("0c", 20)
	s.ledgerd("attest", "acme/api", "--commit", sha, "--predicate", "test:go", "--status", "pass", "--key", s.keyFile)
	v := s.admin
	v.press("Policy")
	v.press("Edit")
	document := v.value("Policy (YAML)")
	invalid := strings.Replace(document, `threshold: 1`, `threshold: 1000`, 1)
	if invalid == document {
		s.t.Fatalf("no threshold in %s", document)
	}
	line := 1 + strings.Count(document[:strings.Index(document, `threshold: 1`)], "\n")

	v.fill("Policy (YAML)", invalid)
	v.press("Save")
	v.sees("1 error. Nothing was saved.", "requirements[0].threshold")
	if match := regexp.MustCompile(`Line (\d+) requirements`).FindStringSubmatch(v.read()); match == nil ||
		match[1] != strconv.Itoa(line) {
		s.t.Errorf("the page shows the error at %v, want line %d", match, line)
	}
	if got := v.value("Policy (YAML)"); got != invalid {
		s.t.Errorf("the form lost the input: it shows %s", got)
	}

	v.fill("Policy (YAML)", strings.Replace(document, `threshold: 1`, `threshold: 2`, 1))
	v.press("Preview")
	v.sees("1 commit checked, 1 would change state", "Changed lines")
	v.press("Save")
	v.sees("Saved version 2")
	if path := v.path(); s.script && strings.Contains(path, "saved") {
		s.t.Errorf("reloading %s would say again that the policy is saved", path)
	}
	v.press("History")
	v.sees("Version 2", "Version 1")
}

// watchCommit keeps a commit's page open while an attestation is recorded.
func (s *story) watchCommit() {
	sha := strings.Repeat("c0", 20)
	s.ledgerd("attest", "acme/api", "--commit", sha, "--predicate", "lint:go", "--status", "pass", "--key", s.keyFile)
	v := s.admin
	v.open("/orgs/acme/repos/api/commits/" + sha)
	v.sees("Validating", "lint:go")
	if s.script {
		v.sees("ledgerd live")
	}
	loaded := evaluate[float64](v, "performance.timeOrigin")
	s.ledgerd("attest", "acme/api", "--commit", sha, "--predicate", "test:e2e", "--status", "fail", "--key", s.keyFile)
	if !s.script {
		v.open(v.path())
	}
	v.sees("test:e2e", "fail")
	if reloaded := evaluate[float64](v, "performance.timeOrigin") != loaded; reloaded == s.script {
		s.t.Errorf("the page was reloaded: %v, want %v", reloaded, !s.script)
	}
}

// revokeToken revokes a token that a session was signed in with.
func (s *story) revokeToken() {
	bot := s.visitor()
	bot.signIn(s.token)
	bot.press("api")
	if read := bot.read(); strings.Contains(read, "Webhooks") {
		s.t.Errorf("the page offers an admin's action with a write token: %s", read)
	}
	bot.open("/orgs/acme/settings/tokens")
	bot.sees("403")
	bot.open("/orgs/acme/repos/api/policy")

	v := s.admin
	v.press("acme")
	v.press("Settings")
	v.unfold("Revoke deploy bot")
	v.press("Revoke token")
	v.sees("revoked")

	bot.press("Commits")
	bot.sees("Your session has ended")
	bot.fill("API token", s.token)
	bot.press("Sign in")
	if path := bot.path(); !strings.HasPrefix(path, "/login") {
		s.t.Errorf("the revoked token signed in and opened %s", path)
	}
	bot.checkConsole(s.t)
}

// signOut signs out and checks that the session has ended.
func (s *story) signOut() {
	v := s.admin
	path := v.path()
	v.press("Sign out")
	v.sees("Sign in")
	v.open(path)
	v.sees("Sign in")
	if read := v.read(); strings.Contains(read, "first admin") {
		s.t.Errorf("still signed in: %s", read)
	}
}
