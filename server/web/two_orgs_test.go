package web_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// requestID matches the ID of a request on the page of a problem.
var requestID = regexp.MustCompile(`Request ID <code>[^<]+`)

// seen returns what a visitor sees of a page, with its headers. The name of the org, which the visitor
// has given, is replaced.
func (p page) seen(org string) string {
	var lines []string
	for name, values := range p.header {
		if name != "Date" && name != "X-Request-Id" && name != "Content-Length" {
			lines = append(lines, fmt.Sprintf("%s: %q", name, values))
		}
	}
	slices.Sort(lines)
	body := requestID.ReplaceAllString(p.body, "")
	return strings.ReplaceAll(fmt.Sprintf("%d\n%s\n\n%s", p.status, strings.Join(lines, "\n"), body), org, "ORG")
}

// No byte of a page differs after another org was created and has recorded. Of the other org, people see
// as little as of one that does not exist.
func TestPagesDoNotDependOnOtherOrgs(t *testing.T) {
	e := newEnv(t)
	example := e.examples()
	visitors := map[string]*browser{"nobody": e.browser(), "a reader": e.signIn(e.reader), "an admin": e.signIn(e.admin)}
	read := func(org string) map[string]string {
		seen := make(map[string]string)
		for _, rt := range routes() {
			if rt.Method != "GET" || rt.Pattern == "/orgs/{org}/events" || strings.Contains(rt.Pattern, "{provider}") {
				continue // streams do not end, and there is no provider
			}
			path := strings.Replace(example(rt.Pattern), "/orgs/acme", "/orgs/"+org, 1)
			for who, w := range visitors {
				seen[who+" at "+rt.Pattern] = w.get(path).seen(org)
			}
		}
		return seen
	}
	read("acme") // the first use of a token is noted
	before, none := read("acme"), read("nobody")

	other := e.otherOrg()
	_, err := e.host.CreateRepo(t.Context(), other, ledger.NewRepo{Name: "api"})
	must.OK(t, err)
	e.token(other, ledger.Read)
	for n := range 20 {
		_, _, err := e.db.Register(t.Context(), other, "api", commitID(n), ledger.Registration{Branch: fmt.Sprint("b", n)})
		must.OK(t, err)
	}
	for what, seen := range read("acme") {
		if seen != before[what] {
			t.Errorf("%s sees\n%s\nnext to another org, and before\n%s", what, seen, before[what])
		}
	}
	for what, seen := range read(other) {
		if strings.Contains(what, "{org}") && seen != none[what] {
			t.Errorf("%s of another org sees\n%s\nand of one that does not exist\n%s", what, seen, none[what])
		}
	}
}
