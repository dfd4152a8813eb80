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
)

// From the link that serve prints on an empty database to the sign-out, as an
// admin does it all in the browser, with the script of the pages and without.
func TestWebFromTheFirstLinkToTheSignOut(t *testing.T) {
	need(t, "bash", "chromium", "curl")
	t.Parallel()
	b := newBrowser(t)
	for _, script := range []bool{true, false} {
		t.Run(map[bool]string{true: "with script", false: "without script"}[script], func(t *testing.T) {
			t.Parallel()
			o := newEmptyLedger(t)
			o.env = []string{"LEDGERD_WEBHOOKS_ALLOWED_NETWORKS=127.0.0.0/8,::1/128"}
			o.start()
			s := &story{t: t, org: o, browser: b, script: script}
			s.admin = s.visitor()
			s.setsUp()
			o.ledgerd("repo", "create", "acme/api")
			o.ledgerd("identity", "add", "--org", "acme", "--key", o.keyFile+".pub", "--dn", "cn=ci,ou=build,o=acme")
			s.makesToken()
			s.makesWebhook()
			s.editsPolicy()
			s.watchesCommit()
			s.revokesToken()
			s.signsOut()
			s.admin.calm(t)
		})
	}
}

// A story is what happens to an org and its admin.
type story struct {
	*org
	t       *testing.T
	browser *browser
	script  bool // that of the pages runs
	admin   *visitor
	token   string // that the admin has made
}

func (s *story) visitor() *visitor {
	v := s.browser.visitor(s.t, s.url)
	if !s.script {
		v.withoutScript()
	}
	return v
}

// setsUp follows the link to the first org and its admin token.
func (s *story) setsUp() {
	link := regexp.MustCompile(`http://\S+/setup\?key=\S+`)
	waitFor(s.t, "the link", 10*time.Second, func() bool { return link.MatchString(s.log.String()) })
	path := strings.TrimPrefix(link.FindString(s.log.String()), s.url)
	v := s.admin
	v.open(path)
	v.fill("Org name", "Not a name!")
	v.press("Create org")
	v.sees("Nothing was saved", "Name your org")
	v.fill("Org name", "acme")
	v.press("Create org")
	v.sees("acme is ready", "it won't be shown again")
	secret := v.secret()
	v.press("I've saved it, continue")
	v.sees("No repos yet", "ledgerd repo create acme/api")

	other := s.visitor()
	other.open(path)
	other.sees("setup link expired")
	other.signIn(secret)
	other.sees("No repos yet")
	if read := other.read(); strings.Contains(read, secret) {
		s.t.Error("the admin token is shown once more")
	}
	other.calm(s.t)
}

// makesToken makes a token, which curl then uses.
func (s *story) makesToken() {
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
	v.sees("deploy bot is ready", "Scope write")
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
		s.t.Error("the token is shown once more")
	}
}

// makesWebhook makes a webhook, pings it, and sends the ping once more.
func (s *story) makesWebhook() {
	got := make(chan http.Header, 100)
	url := serve(s.t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		got <- r.Header
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "thank you")
	})
	arrives := func() (delivery string) {
		select {
		case h := <-got:
			return h.Get("X-Ledger-Delivery")
		case <-time.After(20 * time.Second):
			s.t.Fatal("no ping came for 20 s")
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
	v.sees("webhooks.allowed_networks") // beside the field
	v.fill("URL", url+"/ledger")
	v.tick("radar") // off
	v.fill("Description", "the build farm")
	v.press("Create webhook")
	v.sees("Webhook created")
	if secret := v.secret(); !strings.HasPrefix(secret, "whsec_") {
		s.t.Errorf("the secret is %q", secret)
	}
	v.press("I've saved it, continue")
	v.sees("attestation, state, policy", "the build farm", "No deliveries yet")
	v.press("Ping")
	delivery := arrives()
	s.becomes("202")
	if !strings.HasSuffix(v.path(), "/deliveries/"+delivery) {
		v.press("api")
		v.press("Webhooks")
		v.press(url)
		v.press(delivery[:12])
	}
	v.sees("thank you", "POST "+url+"/ledger", `"type": "ping"`)
	v.press("Redeliver")
	if again := arrives(); again != delivery {
		s.t.Errorf("%s was sent, want %s again", again, delivery)
	}
	s.becomes("Attempts 2")
}

// becomes waits until the page, fetched again and again, has a text.
func (s *story) becomes(text string) {
	s.t.Helper()
	waitFor(s.t, text, 10*time.Second, func() bool {
		s.admin.open(s.admin.path())
		return strings.Contains(s.admin.read(), text)
	})
}

// editsPolicy edits the policy with a mistake, mends it, tries it out and saves it.
func (s *story) editsPolicy() {
	sha := strings.Repeat("0c", 20)
	s.ledgerd("attest", "acme/api", "--commit", sha, "--predicate", "test:go", "--status", "pass", "--key", s.keyFile)
	v := s.admin
	v.press("Policy")
	v.press("Edit")
	document := v.value("Policy (JSON)")
	mistaken := strings.Replace(document, `"threshold": 1`, `"threshold": 1000`, 1)
	if mistaken == document {
		s.t.Fatalf("no threshold in %s", document)
	}
	line := 1 + strings.Count(document[:strings.Index(document, `"threshold": 1`)], "\n")
	v.fill("Policy (JSON)", mistaken)
	v.press("Save")
	v.sees("1 error. Nothing was saved.", "requirements[0].threshold")
	if at := regexp.MustCompile(`Line (\d+) requirements`).FindStringSubmatch(v.read()); at == nil ||
		at[1] != strconv.Itoa(line) {
		s.t.Errorf("the mistake in line %d is told as %v", line, at)
	}
	if kept := v.value("Policy (JSON)"); kept != mistaken {
		s.t.Errorf("what was typed has become %s", kept)
	}
	v.fill("Policy (JSON)", strings.Replace(document, `"threshold": 1`, `"threshold": 2`, 1))
	v.press("Preview")
	v.sees("1 commit checked, 1 would change state", "Changed lines")
	v.press("Save")
	v.sees("Saved version 2")
	if at := v.path(); s.script && strings.Contains(at, "saved") {
		s.t.Errorf("loading %s again would tell again that it is saved", at)
	}
	v.press("History")
	v.sees("Version 2", "Version 1")
}

// watchesCommit has a commit's page open while an attestation arrives.
func (s *story) watchesCommit() {
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
		s.t.Errorf("loaded anew: %v", reloaded)
	}
}

// revokesToken revokes the token that somebody has signed in with.
func (s *story) revokesToken() {
	bot := s.visitor()
	bot.signIn(s.token)
	bot.press("api")
	if read := bot.read(); strings.Contains(read, "Webhooks") {
		s.t.Errorf("what only admins may do is offered to others: %s", read)
	}
	bot.open("/orgs/acme/settings/tokens")
	bot.sees("403")
	bot.open("/orgs/acme/repos/api/policy")

	v := s.admin
	v.press("Settings")
	v.unfold("Revoke deploy bot")
	v.press("Revoke token")
	v.sees("revoked")

	bot.press("Commits")
	bot.sees("Your session has ended")
	bot.fill("API token", s.token)
	bot.press("Sign in")
	if at := bot.path(); !strings.HasPrefix(at, "/login") {
		s.t.Errorf("the revoked token signs in, to %s", at)
	}
	bot.calm(s.t)
}

// signsOut leaves, and is out.
func (s *story) signsOut() {
	v := s.admin
	at := v.path()
	v.press("Sign out")
	v.sees("Sign in")
	v.open(at)
	v.sees("Sign in")
	if read := v.read(); strings.Contains(read, "first admin") {
		s.t.Errorf("still signed in: %s", read)
	}
}
