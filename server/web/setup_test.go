package web_test

import (
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// The setup link creates the first org and its admin token, and signs in. It works
// once.
func TestSetup(t *testing.T) {
	e := newEmptyEnv(t)
	path := e.site.SetupPath()
	w := e.browser()
	w.get("/").redirectsTo("/login")
	p := w.get(path).want(200).has("Name your org")
	key := attribute(p.elements("input", "name", "key")[0], "value")

	w.post("/setup", url.Values{"key": {key}, "name": {"No!<b>"}}).want(422).has("is not an org name")
	p = w.post("/setup", url.Values{"key": {key}, "name": {"acme"}}).want(200)
	p.has("Created org acme", "won't be shown again")
	secret := regexp.MustCompile(`ldg_\w+`).FindString(p.text())
	w.get("/orgs/acme").want(200).has("first admin", "No repos yet", "ledgerd repo create acme/api").hasNot("ldg_")
	e.signIn(secret).get("/orgs/acme").want(200)
	org, err := e.host.Org(t.Context(), "acme")
	must.OK(t, err)
	if org.Name != "acme" {
		t.Errorf("org: %+v", org)
	}

	w.get(path).want(403).has("setup link expired")
	w.post("/setup", url.Values{"key": {key}, "name": {"second"}}).want(403)
	if strings.Contains(e.log.String(), key) || strings.Contains(e.log.String(), secret) {
		t.Errorf("a secret is in the log: %s", e.log)
	}
}

func TestSetupNeedsTheKey(t *testing.T) {
	e := newEmptyEnv(t)
	for _, key := range []string{"", "WRONG", strings.TrimPrefix(e.site.SetupPath(), "/setup?key=") + "A"} {
		query := url.Values{"key": {key}, "name": {"acme"}}
		e.browser().get("/setup?" + query.Encode()).want(403).hasNot("Create org")
		e.browser().post("/setup", query).want(403)
	}
	orgs, err := client.Collect(e.host.Orgs(t.Context()), 0)
	if err != nil || len(orgs) > 0 {
		t.Errorf("orgs: %v, %v", orgs, err)
	}
}

// An org created on the command line closes the link, too.
func TestSetupNeedsEmptyLedger(t *testing.T) {
	e := newEnv(t)
	e.browser().get(e.site.SetupPath()).want(403).has("setup link expired")
}

func TestConcurrentSetup(t *testing.T) {
	e := newEmptyEnv(t)
	key := strings.TrimPrefix(e.site.SetupPath(), "/setup?key=")
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		w := e.browser()
		all.Go(func() { w.post("/setup", url.Values{"key": {key}, "name": {name}}) })
	}
	all.Wait()
	orgs := must.Get(client.Collect(e.host.Orgs(t.Context()), 0))(t)
	if len(orgs) != 1 {
		t.Errorf("%d orgs, want 1", len(orgs))
	}
	tokens := must.Get(client.Collect(e.host.Tokens(t.Context(), orgs[0].Name), 0))(t)
	if len(tokens) != 1 || tokens[0].Scope != ledger.Admin {
		t.Errorf("tokens: %+v", tokens)
	}
}
