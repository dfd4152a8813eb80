package server

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestAuditFilters(t *testing.T) {
	b := newBackend(t)
	before := len(b.audited(""))
	b.clock.advance(time.Hour)
	since := b.clock.time().String()
	b.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	token := decode[ledger.Token](b.post("/v1/orgs/acme/tokens", `{"name":"x","scope":"admin"}`).want(201))
	b.send(request{method: "PATCH", path: "/v1/orgs/acme/repos/api", token: token.Secret,
		body: `{"web_url":"https://git.example/x"}`}).want(200)

	for query, want := range map[string]int{
		"": before + 3, "&since=" + since: 3, "&action=repo": 3, "&action=repo.changed": 1, "&action=policy": 0,
		"&by=" + token.ID: 1, "&by=host": before, "&by=nobody": 0, "&repo=api": 2, "&repo=none": 0,
		"&action=repo&repo=web&since=" + since: 1,
	} {
		if got := b.audited(query); len(got) != want {
			t.Errorf("%s: %d actions, want %d: %s", query, len(got), want, got)
		}
	}
	newest := decode[ledger.Page[ledger.AuditEvent]](
		b.send(request{method: "GET", path: auditPath + "?limit=1", token: b.admin}).want(200))
	if e := newest.Data[0]; e.Action != ledger.AuditRepoChanged || e.By.Token != token.ID || newest.NextCursor == "" {
		t.Errorf("the newest is %+v", e)
	}
	for query, field := range map[string]string{
		"?action=create": "action", "?since=x": "since", "?order=x": "order", "?limit=501": "limit",
	} {
		b.send(request{method: "GET", path: auditPath + query, token: b.admin}).
			wantFields(400, ledger.CodeInvalidParameter, field)
	}
}
