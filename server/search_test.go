package server

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/insights"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/search"
)

// find returns what a search finds, with a token.
func (b *backend) find(token, query, more string) search.Result {
	b.t.Helper()
	path := "/v1/orgs/acme/search?q=" + url.QueryEscape(query) + more
	return decode[search.Result](b.send(request{method: "GET", path: path, token: token}).want(200))
}

// titles returns the types and titles of hits.
func titles(r search.Result) (list []string) {
	for _, h := range r.Data {
		list = append(list, string(h.Type)+" "+h.Title)
	}
	return list
}

// A searchable is a backend with records of each type.
type searchable struct {
	*deployer
	record ledger.AttestationRecord
	hook   outbound.Webhook
}

func newSearchable(t *testing.T) *searchable {
	s := &searchable{deployer: newDeployer(t)}
	s.host("POST", "/v1/orgs/acme/repos", `{"name":"Web-Login"}`).want(201)
	s.host("POST", "/v1/orgs", `{"name":"other"}`).want(201)
	s.host("POST", "/v1/orgs/other/repos", `{"name":"login"}`).want(201)
	other := s.token("other", "write")
	s.send(request{method: "PUT", path: "/v1/orgs/other/repos/login/commits/" + commitID(9), token: other,
		body: `{"branch":"login","message":"login","author":{"name":"Ann","email":"ann@example.com"}}`}).want(201)

	for n, body := range []string{
		`{"branch":"main","message":"Initial commit","author":{"name":"Ann","email":"ann@example.com"}}`,
		`{"branch":"feature/login","message":"Add the LOGIN form\n\nbody","author":{"name":"Bob","email":"bob@example.com"}}`,
		`{"branch":"feature/login","message":"Straße: catalogin","author":{"name":"Ann","email":"ann@example.com"}}`,
	} {
		s.put(commitPath(commitID(n)), body).want(201)
	}
	s.record = s.deployer.record(1, s.ci, "test:login", ledger.Pass)
	hook := s.post("/v1/orgs/acme/repos/api/webhooks", `{"url":"https://ci.example/login"}`).want(201)
	s.hook = decode[outbound.Webhook](hook)
	return s
}

func TestSearch(t *testing.T) {
	s := newSearchable(t)
	id := func(h search.Hit) string { return h.ID + h.Commit + h.Repo }
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"login", []string{
			"commit Add the LOGIN form", "commit Straße: catalogin", "branch feature/login", "repo Web-Login",
			"predicate test:login",
		}},
		{"LOGIN form", []string{"commit Add the LOGIN form"}},
		{"bob login", []string{"commit Add the LOGIN form"}},
		{"strasse", []string{"commit Straße: catalogin"}},
		{"ann", []string{"commit Straße: catalogin", "commit Initial commit"}},
		{"ann@example.com", []string{"commit Straße: catalogin", "commit Initial commit"}},
		{"feature/login", []string{"branch feature/login"}},
		{"api", []string{"repo api"}},
		{"test:login", []string{"predicate test:login"}},
		{"cn=ci", []string{"signer ci"}},
		{"ci", []string{"signer ci"}},
		{commitID(1), []string{"commit Add the LOGIN form"}},
		{strings.ToUpper(commitID(1)), []string{"commit Add the LOGIN form"}},
		{commitID(1)[:39], []string{"commit Straße: catalogin", "commit Add the LOGIN form", "commit Initial commit"}},
		{s.record.ID, []string{"attestation test:login"}},
		{s.record.Event, []string{"event attestation"}},
		{s.record.PayloadDigest, []string{"attestation test:login"}},
		{s.record.PayloadDigest[:14], []string{"attestation test:login"}},
		{strings.TrimPrefix(s.record.PayloadDigest, "sha256:"), []string{"attestation test:login"}},
		{s.ci.id, []string{"identity cn=ci,ou=x,o=acme"}},
		{"%", nil}, {"_", nil}, {"*", nil}, {"'; DROP TABLE commits; --", nil}, {"nothing", nil},
		{"whk_01M80KN46FEEQMHDDMW3XG40BH", nil}, {commitID(7), nil},
	} {
		r := s.find(s.reader, test.query, "")
		if got := titles(r); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.query, got, test.want)
		}
		if r.Stopped != "" || r.NextCursor != "" {
			t.Errorf("%q: stopped: %q, %q", test.query, r.Stopped, r.NextCursor)
		}
	}

	hit := s.find(s.reader, s.record.ID, "").Data[0]
	if id(hit) != s.record.ID+commitID(1)+"api" || hit.Detail != "pass by cn=ci,ou=x,o=acme" ||
		hit.At != s.record.RecordedAt {
		t.Errorf("%+v", hit)
	}
	if hit := s.find(s.reader, "feature/login", "").Data[0]; hit.Commit != commitID(2) || hit.State == nil ||
		*hit.State != ledger.Draft {
		t.Errorf("%+v, want the newest commit of the branch", hit)
	}
	for _, name := range []string{"test:login", "cn=ci"} {
		if hit := s.find(s.reader, name, "").Data[0]; hit.Repo != "api" || hit.At != s.record.RecordedAt {
			t.Errorf("%+v, want the repo in which it was attested last", hit)
		}
	}
	if hit := s.find(s.reader, s.record.Event, "").Data[0]; id(hit) != s.record.Event+commitID(1)+"api" {
		t.Errorf("%+v", hit)
	}
}

// Webhooks are found only by admins, since their URLs may be secrets.
func TestSearchForAWebhook(t *testing.T) {
	s := newSearchable(t)
	if got := titles(s.find(s.reader, s.hook.ID, "")); got != nil {
		t.Errorf("a reader finds %q", got)
	}
	r := s.find(s.admin, s.hook.ID, "")
	if got := titles(r); !slices.Equal(got, []string{"webhook https://ci.example/login"}) || r.Data[0].Repo != "api" {
		t.Errorf("an admin finds %+v", r.Data)
	}
}

func TestSearchRefuses(t *testing.T) {
	b := newBackend(t)
	for query, field := range map[string]string{
		"":                               "q",
		"?q=":                            "q",
		"?q=%20":                         "q",
		"?q=a%00b":                       "q",
		"?q=%FF":                         "q",
		"?q=" + strings.Repeat("x", 201): "q",
		"?q=a&limit=0":                   "limit",
		"?q=a&limit=101":                 "limit",
	} {
		b.get("/v1/orgs/acme/search"+query).wantFields(400, ledger.CodeInvalidParameter, field)
	}
	for _, query := range []string{
		"a&cursor=x", "a&cursor=MS4x", "sha256:0123456&cursor=MQ", "evt_00000000000000000000000000&cursor=MQ",
	} {
		b.get("/v1/orgs/acme/search?q="+query).wantProblem(400, ledger.CodeInvalidCursor)
	}
}

// TestSearchPages follows the cursor over the commits of several repos. Every commit is found
// once, the newest first.
func TestSearchPages(t *testing.T) {
	b := newBackend(t)
	b.host("POST", "/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	var want []string
	for n := range 30 {
		repo := []string{"api", "web", "web"}[n%3]
		subject := fmt.Sprintf("needle %d", n)
		if n%5 == 0 {
			subject = "hay"
		} else {
			want = append(want, commitID(n))
		}
		b.put("/v1/orgs/acme/repos/"+repo+"/commits/"+commitID(n), fmt.Sprintf(`{"message":%q}`, subject)).want(201)
	}
	slices.Reverse(want)

	var got []string
	next := ""
	for pages := 1; ; pages++ {
		r := b.find(b.reader, "needle", "&limit=7"+next)
		for _, h := range r.Data {
			got = append(got, h.Commit)
		}
		if r.NextCursor == "" {
			break
		}
		if r.Stopped == "" || pages > 10 {
			t.Fatalf("page %d: stopped: %q", pages, r.Stopped)
		}
		next = "&cursor=" + r.NextCursor
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q\nwant %q", got, want)
	}
}

func TestInsights(t *testing.T) {
	d := newDeployer(t)
	began := d.clock.time()
	for n := range 2 {
		body := fmt.Sprintf(`{"message":"x","committed_at":%q}`, began.Add(-24*time.Hour))
		d.put(commitPath(commitID(n)), body).want(201)
	}
	d.clock.advance(time.Hour)
	d.promote(0)
	d.clock.advance(time.Hour)
	d.record(0, d.cd, "deploy:prod", ledger.Pass)
	d.clock.advance(time.Hour)
	d.record(0, d.cd, "deploy:prod", ledger.Fail) // a rollback
	d.record(1, d.cd, "deploy:prod", ledger.Pass) // a violation

	for _, query := range []string{"", "?repo=api", "?repo=API&days=7"} {
		r := decode[insights.Report](d.get("/v1/orgs/acme/insights" + query).want(200))
		if n := r.Deployments; n.Count != 1 || n.Failed != 1 || *n.FailRate != 1 || n.Violations != 1 {
			t.Errorf("%s: %+v", query, r.Deployments)
		}
		if took := (26 * time.Hour).Milliseconds(); r.LeadTime.Count != 1 || r.LeadTime.MedianMS != took {
			t.Errorf("%s: lead time %+v", query, r.LeadTime)
		}
		if hour := time.Hour.Milliseconds(); r.States[0].Time.MedianMS != hour || r.States[3].Time.MedianMS != hour {
			t.Errorf("%s: states %+v", query, r.States)
		}
		if len(r.Predicates) != 3 || r.Predicates[0].Predicate != "deploy:prod" || *r.Predicates[0].PassRate != 0.6667 {
			t.Errorf("%s: predicates %+v", query, r.Predicates)
		}
		want := insights.Samples{Commits: insights.Sample{Examined: 2}, Deployments: insights.Sample{Examined: 3},
			Results: insights.Sample{Examined: 5}}
		if r.Samples != want {
			t.Errorf("%s: samples %+v, want %+v", query, r.Samples, want)
		}
		if (r.Repo == "api") != (query != "") || r.To != d.clock.time() {
			t.Errorf("%s: %+v", query, r)
		}
	}

	d.get("/v1/orgs/acme/insights?days=0").wantFields(400, ledger.CodeInvalidParameter, "days")
	d.get("/v1/orgs/acme/insights?days=366").wantFields(400, ledger.CodeInvalidParameter, "days")
	d.get("/v1/orgs/acme/insights?repo=none").wantProblem(404, ledger.CodeNotFound)
}
