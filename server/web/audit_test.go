package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

const auditPage = "/orgs/acme/settings/audit"

// The page shows admins what administrators did, newest first, with filters and a download.
func TestAuditPage(t *testing.T) {
	e := newEnv(t)
	e.signIn(e.reader).get(auditPage).want(403)
	e.signIn(e.writer).get(auditPage + "/download").want(403)
	w := e.signIn(e.admin)
	w.get("/orgs/acme/settings/tokens").want(200).has("Audit")
	w.post(tokensPath+"/new", url.Values{"name": {"<ci>"}, "scope": {"write"}, "expires_in": {"30d"}}).want(201)
	_, err := e.host.ChangeRepo(t.Context(), "acme", "api", ledger.RepoChange{WebURL: new("https://git.example/a")})
	must.OK(t, err)
	_, err = e.host.ChangeRepo(t.Context(), "acme", "api", ledger.RepoChange{WebURL: new("https://git.example/b")})
	must.OK(t, err)

	p := w.get(auditPage).want(200).has("Audit", "token.created", "name: <ci>", "admin of acme , web 127.0.0.1",
		"repo.changed api", "web_url: https://git.example/a → to https://git.example/b", "by host").hasNot("ldg_")
	if n := strings.Count(p.text(), "token: all"); n != 1 {
		t.Errorf("the filter offers all actions of tokens %d times", n)
	}
	first := strings.Index(p.text(), "repo.changed api")
	if first < 0 || first > strings.Index(p.text(), "org.created acme") {
		t.Errorf("the oldest action is first: %s", p.text())
	}
	link := attribute(p.elements("a", "class", "button")[0], "href")
	if link != auditPage+"/download" {
		t.Errorf("the download is %s", link)
	}

	w.get(auditPage+"?action=token").want(200).has("name: <ci>", "Clear").hasNot("web_url:")
	w.get(auditPage + "?action=repo.changed&by=host&repo=api&since=2030-11-30").want(200).has("web_url:").hasNot("<ci>")
	w.get(auditPage + "?by=nobody").want(200).has("No matching actions")
	w.get(auditPage + "?action=x").want(422).has("not an administrative action")
	w.get(auditPage + "?since=x").want(422)

	var want strings.Builder
	for body, err := range e.host.Audit(t.Context(), "acme", client.AuditFilter{Action: "repo"}) {
		must.OK(t, err)
		fmt.Fprintf(&want, "%s\n", body)
	}
	file := w.get(auditPage + "/download?action=repo").want(200)
	if file.body != want.String() || file.header.Get("Content-Type") != "application/jsonl" {
		t.Errorf("%s: %s\nwant\n%s", file.header.Get("Content-Type"), file.body, want.String())
	}
}

// The list has pages.
func TestAuditPagination(t *testing.T) {
	e := newEnv(t)
	for n := range 120 {
		_, err := e.host.CreateToken(t.Context(), "acme", ledger.NewToken{Name: fmt.Sprint("n", n), Scope: ledger.Read})
		must.OK(t, err)
	}
	w := e.signIn(e.admin)
	seen := 0
	p := w.get(auditPage + "?action=token").want(200).hasNot("Newest")
	for {
		seen += strings.Count(p.text(), "token.created ")
		next := p.elements("a", "rel", "next")
		if len(next) == 0 {
			break
		}
		p = w.get(attribute(next[0], "href")).want(200).has("Newest")
	}
	if seen < 123 {
		t.Errorf("%d actions on all pages, want 123 or more", seen)
	}
}

// A download has at most 10,000 actions, the newest.
func TestAuditDownloadIsLimited(t *testing.T) {
	e := newEnv(t)
	e.sql(`
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10100)
INSERT INTO events (id, org_id, seq, event_id, type, at, body)
  SELECT 1000 + n, 1, 1000 + n, 'evt_' || n, 'audit', n, CAST('{"id":"evt_' || n || '"}' AS BLOB) FROM numbers;
INSERT INTO audits (org_id, seq, event, kind, action, repo, actor)
  SELECT 1, seq, id, 'token', 'token.created', '', 'host' FROM events WHERE id > 1000;
UPDATE orgs SET next_seq = 20000`)
	file := e.signIn(e.admin).get(auditPage + "/download?by=host").want(200)
	lines := strings.Split(strings.TrimSpace(file.body), "\n")
	if len(lines) != 10_000 || lines[0] != `{"id":"evt_10100"}` {
		t.Errorf("%d actions, the first is %s", len(lines), lines[0])
	}
}
