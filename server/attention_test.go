package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

const attentionPath = "/v1/orgs/acme/attention"

// attention lists what needs attention, as admins see it: "kind severity what: reason".
func (b *backend) attention(query string) (list []string, counts string) {
	b.t.Helper()
	l := decode[attention.List](b.send(request{method: "GET", path: attentionPath + query, token: b.admin}).want(200))
	for _, i := range l.Data {
		what := i.Subject
		if i.Commit != "" {
			what = i.Commit[36:]
		}
		list = append(list, fmt.Sprintf("%s %s %s: %s", i.Kind, i.Severity, what, i.Reason))
	}
	for _, c := range l.Counts {
		if c.Count > 0 || c.More {
			counts += fmt.Sprintf(" %s %d", c.Kind, c.Count)
			if c.More {
				counts += "+"
			}
		}
	}
	return list, strings.TrimSpace(counts)
}

func (b *backend) wantAttention(query string, want ...string) {
	b.t.Helper()
	if got, _ := b.attention(query); !slices.Equal(got, want) {
		b.t.Errorf("needs attention:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// on registers a commit on a branch, on top of a base.
func (b *backend) on(n int, branch string, base int) {
	b.t.Helper()
	body := fmt.Sprintf(`{"branch":%q,"author":{"name":"Ada"},"message":"commit %d"`, branch, n)
	if base > 0 {
		body += fmt.Sprintf(`,"base":%q,"contained":[%q]`, commitID(base), commitID(base))
	}
	status := http.StatusCreated
	if resp := b.register(commitID(n), body+"}"); resp.status != http.StatusOK {
		resp.want(status)
	}
}

func TestAttentionOfCommits(t *testing.T) {
	b := newBackend(t)
	b.wantAttention("")
	ci := b.signer("cn=ci" + rest)
	run := 0
	attest := func(n int, predicate string, status ledger.Status) {
		t.Helper()
		run++
		b.clock.advance(time.Second)
		b.attest(ci.statement(t, commitID(n), predicate, status, run)).want(201)
	}
	failed := func(n int, predicate string) string {
		return fmt.Sprintf("failed high %s: %s failed (cn=ci%s)", commitID(n)[36:], predicate, rest)
	}

	// A commit without a branch, which CI attested without registering it.
	attest(1, "test:go", ledger.Fail)
	b.wantAttention("", failed(1, "test:go"))
	attest(1, "test:go", ledger.Pass)
	waits := func(n int) string {
		return fmt.Sprintf("review low %s: review:*: 0 of 1 signatures", commitID(n)[36:])
	}
	got, counts := b.attention("")
	if len(got) != 1 || !strings.HasPrefix(got[0], waits(1)) || counts != "review 1" {
		t.Errorf("%q %s", got, counts)
	}

	// On a branch, the failure matters until a later commit has evidence.
	b.on(2, "feature", 0)
	attest(2, "test:go", ledger.Errored)
	b.on(3, "feature", 0)
	if got, counts := b.attention("?kind=failed"); len(got) != 1 || counts != "failed 1 review 1" {
		t.Errorf("a later commit without evidence: %q %s", got, counts)
	}
	attest(3, "test:js", ledger.Fail)
	b.wantAttention("?kind=failed", failed(3, "test:js"))
	attest(3, "test:js", ledger.Pass)
	b.wantAttention("?kind=failed")

	// The mainline's commits land, and still matter. Other branches are done.
	b.on(4, "main", 0)
	attest(4, "test:go", ledger.Fail)
	b.on(5, "topic", 0)
	attest(5, "test:go", ledger.Fail)
	b.on(6, "other", 4)
	b.on(7, "another", 5)
	for n, want := range map[int]bool{4: false, 5: false, 6: true} {
		if got := b.commit(commitID(n)).InFlight; got != want {
			t.Errorf("commit %d: in flight %t, want %t", n, got, want)
		}
	}
	b.wantAttention("?kind=failed", failed(4, "test:go"))

	// A withdrawn commit is done, and after 30 days every commit is.
	b.on(8, "abandoned", 0)
	attest(8, "lint:go", ledger.Fail) // blocks nothing
	attest(8, "test:go", ledger.Fail)
	b.wantAttention("?kind=failed", failed(8, "test:go"), failed(4, "test:go"))
	b.post(commitPath(commitID(8))+"/withdraw", "").want(200)
	b.wantAttention("?kind=failed", failed(4, "test:go"))
	b.wantAttention("?kind=failed&repo=api", failed(4, "test:go"))
	b.clock.advance(30*24*time.Hour + time.Minute)
	b.wantAttention("?kind=failed")
	b.wantAttention("?kind=review")
}

func TestAttentionOfDeployments(t *testing.T) {
	d := newDeployer(t)
	d.record(1, d.ci, "test:go", ledger.Pass)
	d.record(1, d.stranger, "deploy:prod", ledger.Pass)
	got, counts := d.attention("")
	if len(got) != 2 || got[0] != "violation critical 0001: deploy:prod recorded in ATTESTED" ||
		counts != "violation 1 review 1" {
		t.Errorf("%q %s", got, counts)
	}

	// A deployed commit needs nothing, a failed rollback target does.
	d.promote(1)
	d.record(1, d.cd, "deploy:prod", ledger.Pass)
	d.wantAttention("")
	d.record(1, d.cd, "deploy:prod", ledger.Fail)
	d.wantAttention("", "failed high 0001: deploy:prod failed (cn=cd"+rest+")")
}

func TestAttentionOfConflicts(t *testing.T) {
	b := newBackend(t)
	for n, branch := range []string{"one", "two", "three"} {
		b.clock.advance(time.Second)
		b.put(commitPath(commitID(n+1)), fmt.Sprintf(`{"branch":%q,"author":{"name":%q},"changes":[{"path":"a.go",`+
			`"status":"A","mode":"100644","blob":"%040x"}]}`, branch, branch, n+1)).want(201)
	}
	b.wantAttention("", "conflict medium 0003: conflicts with one and 1 more", "conflict medium 0002: conflicts with one")
	b.putPolicy(`*`, `{"requirements":[{"state":"ATTESTED","predicate":"test:*"}],`+
		`"radar":{"enabled":true,"block":"HIGH"}}`)
	b.post(commitPath(commitID(1))+"/withdraw", "").want(200)
	b.wantAttention("?kind=conflict", "conflict high 0003: conflicts with two")

	got := decode[ledger.Overview](b.get("/v1/orgs/acme/overview").want(200)).Data[0]
	if got.Conflicts != 1 || got.Failing != 0 || got.Blocked != 0 {
		t.Errorf("overview %+v", got)
	}
}

func TestAttentionOfResources(t *testing.T) {
	b := newBackend(t)
	created := b.post("/v1/orgs/acme/repos/api/webhooks", `{"url":"https://ci.example.com/x"}`).want(201)
	hook := decode[outbound.Webhook](created)
	b.wantAttention("")
	b.patch("/v1/orgs/acme/repos/api/webhooks/"+hook.ID, `{"active":false}`).want(200)
	b.wantAttention("", "webhook low https://ci.example.com/x: inactive: an admin turned it off")

	expires := b.clock.time().Add(6 * 24 * time.Hour)
	b.post("/v1/orgs/acme/tokens", fmt.Sprintf(`{"name":"soon","scope":"read","expires_at":%q}`, expires)).want(201)
	later := b.clock.time().Add(60 * 24 * time.Hour)
	b.post("/v1/orgs/acme/tokens", fmt.Sprintf(`{"name":"later","scope":"read","expires_at":%q}`, later)).want(201)
	b.wantAttention("?kind=expiring", "expiring low soon: token expires")
	if _, counts := b.attention("?kind=expiring&repo=api"); counts != "webhook 1" {
		t.Errorf("of the repo: %s", counts)
	}
	b.clock.advance(5*24*time.Hour + time.Minute)
	b.wantAttention("?kind=expiring", "expiring medium soon: token expires")

	// Others than admins see neither.
	l := decode[attention.List](b.send(request{method: "GET", path: attentionPath, token: b.reader}).want(200))
	if len(l.Data) != 0 || slices.ContainsFunc(l.Counts, func(c attention.Count) bool {
		return c.Kind == attention.Webhook || c.Count > 0
	}) {
		t.Errorf("a reader sees %+v", l)
	}
}

// The pages of the list have each item once, and the counts are of all pages.
func TestAttentionPages(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci" + rest)
	for n := range 7 {
		b.clock.advance(time.Duration(n%2) * time.Second)
		b.attest(ci.statement(t, commitID(n), "test:go", []ledger.Status{ledger.Pass, ledger.Fail}[n%2], 1)).want(201)
	}
	seen := make(map[string]bool)

	path, pages := attentionPath+"?limit=2", 0
	for path != "" {
		resp := b.get(path).want(200)
		l := decode[attention.List](resp)
		for _, i := range l.Data {
			if seen[i.Commit] {
				t.Errorf("%s is on two pages", i.Commit)
			}
			if want := attention.Failed; len(seen) < 3 && i.Kind != want {
				t.Errorf("item %d is a %s", len(seen), i.Kind)
			}
			seen[i.Commit] = true
		}

		if c := l.Counts[2]; c.Count != 3 || l.Counts[3].Count != 4 {
			t.Errorf("counts %+v", l.Counts)
		}
		path, pages = "", pages+1
		if l.NextCursor != "" {
			path = attentionPath + "?limit=2&cursor=" + l.NextCursor
		}
	}
	if len(seen) != 7 || pages != 4 {
		t.Errorf("%d items on %d pages", len(seen), pages)
	}
	b.get(attentionPath+"?kind=x").wantFields(400, ledger.CodeInvalidParameter, "kind")
	b.get(attentionPath+"?repo=none").wantProblem(404, ledger.CodeNotFound)
	b.get(attentionPath+"?cursor=MQ").wantProblem(400, ledger.CodeInvalidCursor)
}

func TestOverview(t *testing.T) {
	d := newDeployer(t)
	for _, name := range []string{"zulu", "Mike_1", "alpha"} {
		d.clock.advance(time.Minute)
		d.post("/v1/orgs/acme/repos", fmt.Sprintf(`{"name":%q}`, name)).want(201)
	}
	d.promote(1)
	d.record(1, d.cd, "deploy:prod", ledger.Pass)
	d.record(2, d.ci, "test:go", ledger.Fail)
	d.on(3, "feature", 0)
	d.record(3, d.ci, "test:go", ledger.Pass)

	list := func(query string) (names []string) {
		t.Helper()
		for path := "/v1/orgs/acme/overview?limit=3" + query; path != ""; {
			v := decode[ledger.Overview](d.get(path).want(200))
			for _, r := range v.Data {
				names = append(names, r.Name)
			}
			if path = ""; v.NextCursor != "" {
				path = "/v1/orgs/acme/overview?limit=3" + query + "&cursor=" + v.NextCursor
			}
		}
		return names
	}
	for query, want := range map[string]string{
		"":                           "[alpha api Mike_1 zulu]",
		"&reverse=true":              "[zulu Mike_1 api alpha]",
		"&sort=failing":              "[api alpha Mike_1 zulu]",
		"&sort=failing&reverse=true": "[zulu Mike_1 alpha api]",
		"&sort=production":           "[api alpha Mike_1 zulu]",
		"&sort=blocked":              "[api alpha Mike_1 zulu]",
		"&sort=violations":           "[alpha api Mike_1 zulu]",
		"&sort=conflicts":            "[alpha api Mike_1 zulu]",
		"&sort=activity":             "[api alpha Mike_1 zulu]",
		"&name=A":                    "[alpha api]",
		"&name=_":                    "[Mike_1]",
		"&name=%25":                  "[]",
		"&name=a&sort=activity":      "[api alpha]",
	} {
		if got := fmt.Sprint(list(query)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}

	v := decode[ledger.Overview](d.get("/v1/orgs/acme/overview?sort=failing").want(200))
	r := v.Data[0]
	if r.Failing != 1 || r.Blocked != 1 || r.Conflicts != 0 || r.LastActivityAt == 0 || r.Production == nil ||
		r.Production.Commit != commitID(1) || r.Production.Environment != "prod" || v.Sorted != 4 || v.SortedMore {
		t.Errorf("%+v of %d", r, v.Sorted)
	}
	d.get("/v1/orgs/acme/overview?sort=x").wantFields(400, ledger.CodeInvalidParameter, "sort")
	d.get("/v1/orgs/acme/overview?cursor=MS45OTk").wantProblem(400, ledger.CodeInvalidCursor)
}
