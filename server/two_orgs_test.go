package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/sigstoretest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// fill gives acme, a new org with the repo api, several rows of every list.
func (r *receiptBackend) fill() {
	r.t.Helper()
	r.putPolicy("*", `{"requirements":[
		{"name":"tests","state":"ATTESTED","predicate":"test:*","max_age":"12h"},
		{"name":"review","state":"PROMOTABLE","predicate":"review:*"},
		{"name":"deploy","state":"DEPLOYED","predicate":"deploy:*","signers":["cn=cd"]}],
		"exceptions":{"signers":["ou=security"],"max_duration":"72h"}}`).want(200)
	for _, name := range []string{"web", "docs", "gone", "lost"} {
		r.post("/v1/orgs/acme/repos", fmt.Sprintf(`{"name":%q}`, name)).want(201)
	}
	for _, name := range []string{"gone", "lost"} {
		r.delete("/v1/orgs/acme/repos/" + name + "?confirm=" + name).want(204)
	}
	for n := range 3 { // one failing, one with deliveries
		r.webhook(fmt.Sprintf(`{"url":"https://ci.example.com/%d","events":["attestation","state"]}`, n))
	}
	r.fillPeople()
	r.fillCommits()
	r.fillDeliveries()
}

// fillPeople adds who may do what.
func (r *receiptBackend) fillPeople() {
	r.t.Helper()
	issuers := []string{"https://gitlab.com", "https://token.actions.githubusercontent.com", "https://forge.example"}
	for n, issuer := range issuers {
		_, err := r.store.AddIssuer(r.t.Context(), "acme", exchange.NewIssuer{URL: issuer, JWKS: `{"keys":[]}`})
		must.OK(r.t, err)
		rule, err := exchange.NewRule{Name: "ci", Issuer: issuer, RepositoryID: strconv.Itoa(n + 1), Scope: ledger.Read,
			Repos: []string{"api"}}.Completed()
		must.OK(r.t, err)
		_, err = r.store.CreateRule(r.t.Context(), "acme", rule)
		must.OK(r.t, err)
		r.post("/v1/orgs/acme/tokens", fmt.Sprintf(`{"name":"soon","scope":"read","expires_at":%q}`,
			r.clock.time().Add(24*time.Hour))).want(201)
		r.post(memberRulesPath, fmt.Sprintf(`{"issuer":%q,"claim":"groups","value":"g%d","role":"reader",`+
			`"dn":"cn={login},ou=people-g,o=acme"}`, provider, n)).want(201)
	}

	for _, name := range []string{"a", "b", "c"} {
		r.setTrustedRoot(name, sigstoretest.PublicGood)
	}
	r.post("/v1/orgs/acme/ci-ca", `{"may":["test:*"]}`).want(201)
	r.post("/v1/orgs/acme/people-ca", `{}`).want(201)
	for _, subject := range []string{"ann", "bob", "eve"} {
		r.addMember(subject, "maintainer")
		(&reviewers{r.backend}).signIn(subject, 0).enrol()
	}
}

// fillCommits adds commits in all states, with what is known of them.
func (r *receiptBackend) fillCommits() {
	r.t.Helper()
	ci, cd, stranger := r.backend.signer("cn=ci"+rest), r.backend.signer("cn=cd"+rest), r.backend.signer("cn=mallory"+rest)
	security := r.backend.signer("cn=sam,ou=security,o=acme")
	run := 0
	passes := func(s *signer, n int, predicate string, status ledger.Status) {
		run++
		r.attest(s.statement(r.t, commitID(n), predicate, status, run)).want(201)
	}
	for n := range 8 {
		r.push(n, fmt.Sprintf("b%d", n), editing("cmd/root.go", 100+n), editing("cmd/serve.go", 10*n+1))
		passes(ci, n, "test:go", ledger.Pass)
		passes(ci, n, "lint:go", []ledger.Status{ledger.Pass, ledger.Fail}[n%2])
		r.builds(ci, n, image(n))
	}

	for n := range 4 {
		passes(ci, n, "review:code", ledger.Pass)
		passes(cd, n, fmt.Sprintf("deploy:e%d", n), ledger.Pass)
	}
	passes(ci, 4, "test:go", ledger.Fail)
	for n := 4; n < 8; n++ {
		passes(stranger, n, "deploy:e0", ledger.Pass)
		r.except(security, n, "review", time.Hour).want(201)
	}
}

// fillDeliveries makes the newest webhook fail.
func (r *receiptBackend) fillDeliveries() {
	r.t.Helper()
	hooks := decode[ledger.Page[outbound.Webhook]](r.get(webhooksPath).want(200)).Data
	_, due := r.claim(hooks[0].ID)
	for n, d := range due {
		status := []outbound.DeliveryStatus{outbound.DeliveryPending, outbound.DeliveryFailed}[n%2]
		r.recordOutcome(hooks[0].ID, d, status, 500)
	}
}

// parameterValues are values of query parameters, by name. A route may have others by its pattern and
// the name.
var parameterValues = map[string][]string{
	"deleted": {"true"}, "state": {"DRAFT", "ATTESTED"}, "branch": {"b1"}, "author": {"b1", "b"}, "text": {"work"},
	"in_flight": {"true"}, "standing": {"true"}, "level": {"HIGH", "LOW"}, "commit": {commitID(4)},
	"predicate": {"test:*", "deploy:e0"}, "predicate_type": {"https://*"}, "identity": {"ci", "cn=ci" + rest},
	"since": {"2020-01-01T00:00:00Z"}, "status": {"pass"}, "order": {"asc"},
	"salts": {"true"}, "verification": {"true"}, "repo": {"api"},
	"kind": {"failed", "expiring", "violation", "review", "conflict", "webhook"}, "name": {"a", "b"},
	"sort": {"name", "blocked", "failing", "conflicts", "production", "violations", "activity"}, "reverse": {"true"},
	"environment": {"e0"}, "q": {"work", "b1", "test", "sha256:0", commitID(4)[:7], "att_0", "ann"}, "days": {"30"},
	"active": {"true"}, "event": {"evt_01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "version": {"1"}, "member": nil, "target": {"main"},
	"env":    {"e0"},
	"action": {"token", "webhook.created"}, "by": {"host"}, "types": {"radar", "violation", "state,policy", "audit"},
	"after": nil, "last_event_id": nil,

	"/v1/orgs/:org/violations status":                          {"open", "closed"},
	"/v1/orgs/:org/violations commit":                          nil, // needs the repo
	"/v1/orgs/:org/repos/:repo/violations status":              {"open", "closed"},
	"/v1/orgs/:org/repos/:repo/webhooks/:id/deliveries status": {"pending", "failed"},
	"/v1/orgs/:org/repos/:repo/commits/:sha/receipt state":     {"ATTESTED"},
	"/v1/orgs/:org/events order":                               {"desc"},
	"/v1/orgs/:org/search q":                                   nil, // searches have it always
	"/v1/orgs/:org/repos/:repo/commits/:sha/receipt target":    nil, // needs evidence for the target
	"/v1/orgs/:org/overview name":                              {"a", "p"},
	"/v1/orgs/:org/environments environment":                   {"e0"},
	"/v1/orgs/:org/policies/:repo version":                     {"1", "2"},
	"/v1/orgs/:org/trusted-roots/:name version":                {"1"},
	"/v1/orgs/:org/repos/:repo/commits state":                  {"ATTESTED", "VALIDATING", "PROMOTABLE", "DEPLOYED"},
}

// empty are the routes that have nothing in the test, with the reason.
var empty = map[string]string{
	"/v1/orgs/:org/repos/:repo/attestations/:id/assertion": "only a review with a passkey has one",
}

// A reading is what an admin of an org sees of it: responses by request.
type reading struct {
	*backend
	org  string
	seen map[string]string
}

// read reads everything in an org: every route with GET, with every parameter, and every page.
func (b *backend) read(org string) reading {
	b.t.Helper()
	r := reading{b, org, make(map[string]string)}
	for _, rt := range b.server.routes() {
		if rt.method != http.MethodGet || !rt.inOrg() {
			continue
		}
		for _, path := range r.paths(rt.pattern) {
			r.readAll(rt, path)
		}
	}
	for path, body := range map[string]string{
		"/artifacts": toJSON(b.t, map[string]any{"digests": []string{image(1), image(2), image(99)}}),
		"/repos/api/radar": toJSON(b.t, ledger.RadarQuery{Commit: commitID(50), Registration: registering("x",
			editing("cmd/root.go", 101))}),
		"/policies/api/simulate": deploymentPolicy,
		"/policies/api/lint":     deploymentPolicy,
	} {
		r.note("POST "+path, b.post("/v1/orgs/"+org+path, body).want(200))
	}
	return r
}

// paths returns the paths of a route. What a path names is taken from the lists.
func (r reading) paths(pattern string) []string {
	const org = "/v1/orgs/:org"
	if pattern == org+"/log/*path" {
		tile := "000" // a full one, or the one that is not full yet
		if size := r.leaves(); size < 256 {
			tile = fmt.Sprintf("000.p/%d", size)
		}
		return []string{r.path(org + "/log/checkpoint"), r.path(org + "/log/tile/0/" + tile),
			r.path(org + "/log/tile/entries/" + tile)}
	}
	path := strings.NewReplacer(":sha", commitID(1), ":digest", image(1), ":name", "a").Replace(pattern)
	if list, _, ok := strings.Cut(path, "/:id"); ok {
		path = strings.Replace(path, ":id", r.first(list), 1)
	}
	if list, _, ok := strings.Cut(path, "/:delivery"); ok {
		path = strings.Replace(path, ":delivery", r.first(list), 1)
	}
	return []string{r.path(path)}
}

func (r reading) path(pattern string) string {
	return strings.NewReplacer(":org", r.org, ":repo", "api").Replace(pattern)
}

// first returns the id of the first row of a list.
func (r reading) first(list string) string {
	r.t.Helper()
	var page struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	body := r.send(request{method: "GET", path: r.path(list), token: r.admin}).want(200).body
	must.OK(r.t, json.Unmarshal(body, &page))
	if len(page.Data) == 0 {
		r.t.Fatalf("%s has no rows", list)
	}
	return page.Data[0].ID
}

// leaves returns the number of leaves of the log.
func (r reading) leaves() int {
	r.t.Helper()
	checkpoint := r.send(request{method: "GET", path: r.path("/v1/orgs/:org/log/checkpoint"), token: r.admin}).want(200)
	return must.Get(strconv.Atoi(strings.Split(string(checkpoint.body), "\n")[1]))(r.t)
}

// readAll reads a path of a route without parameters, and with each value of each.
func (r reading) readAll(rt route, path string) {
	r.t.Helper()
	queries := []string{""}
	if strings.HasSuffix(rt.pattern, "/search") {
		queries = nil
		for _, text := range parameterValues["q"] {
			queries = append(queries, "q="+url.QueryEscape(text))
		}
	}
	for _, name := range rt.parameters {
		if name == "limit" || name == "cursor" {
			continue
		}
		values, ok := parameterValues[rt.pattern+" "+name]
		if !ok {
			values, ok = parameterValues[name]
		}
		if !ok {
			r.t.Errorf("parameterValues has no value for the parameter %s of %s", name, rt.pattern)
		}
		for _, value := range values {
			queries = append(queries, name+"="+url.QueryEscape(value))
		}
	}

	isList := slices.Contains(rt.parameters, "cursor")
	for _, query := range queries {
		if isList {
			query += "&limit=2"
		}
		if strings.HasSuffix(rt.pattern, "/gate") && !strings.HasPrefix(query, "state=") {
			query += "&state=PROMOTABLE" // gates have it always
		}
		r.readPages(rt, path+"?"+strings.TrimPrefix(query, "&"))
	}
}

// readPages reads a page and those that follow.
func (r reading) readPages(rt route, path string) {
	r.t.Helper()
	path = strings.TrimSuffix(path, "?")
	for n := 0; path != ""; n++ {
		answer := r.send(request{method: "GET", path: path, token: r.admin})
		if want := http.StatusOK; answer.status != want && empty[rt.pattern] == "" {
			r.t.Errorf("%s: %d %s", answer.what, answer.status, answer.body)
		}
		r.note(path, answer)
		var page struct {
			Next string `json:"next_cursor"`
		}
		if json.Unmarshal(answer.body, &page) != nil || page.Next == "" {
			return
		}
		u := must.Get(url.Parse(path))(r.t)
		q := u.Query()
		q.Set("cursor", page.Next)
		path = u.Path + "?" + q.Encode()
	}
}

// signature matches the signature of a receipt, which is another one each time.
var signature = regexp.MustCompile(`"sig":"[^"]+"`)

func (r reading) note(what string, answer response) {
	r.seen[what] = signature.ReplaceAllString(answer.seen("\x00"), `"sig":""`)
}

// differences returns the requests whose responses differ between two readings.
func (r reading) differences(other reading) (list []string) {
	for what := range maps.Keys(r.seen) {
		if r.seen[what] != other.seen[what] {
			list = append(list, fmt.Sprintf("%s:\n%s\nand\n%s", what, r.seen[what], other.seen[what]))
		}
	}
	for what := range maps.Keys(other.seen) {
		if _, ok := r.seen[what]; !ok {
			list = append(list, what+" is new")
		}
	}
	slices.Sort(list)
	return list
}

// What an org sees of itself does not depend on other orgs: not a byte of any response differs after
// another org was created, with records of every kind.
func TestResponsesDoNotDependOnOtherOrgs(t *testing.T) {
	r := newReceiptBackend(t, func(c *Config) { c.Party = party })
	r.fill()
	r.host("PATCH", "/v1/orgs/acme", `{"name":"initech"}`).want(200)
	initech := r.admin
	for _, state := range []string{"ATTESTED", "VALIDATING"} { // until the key of receipts is in the log, too
		r.signAll()
		r.send(request{method: "GET", path: "/v1/orgs/initech/repos/api/commits/" + commitID(1) + "/receipt?state=" + state,
			token: initech})
	}
	r.signAll()
	r.read("initech") // the first use of a token is noted
	before := r.read("initech")

	acme := r.other()
	r.admin = initech
	after := r.read("initech")
	for _, difference := range before.differences(after) {
		t.Error(difference)
	}
	r.wantUnknown("initech", reading{&acme, "acme", nil})

	r.skipRows()
	r.more("initech")
	r.signAll()
	r.wantSmallNumbers(before, r.read("initech"))
}

// other creates an org with the former name of this one, and fills it. It returns a backend with its
// tokens.
func (r *receiptBackend) other() backend {
	r.t.Helper()
	r.host("POST", "/v1/orgs", `{"name":"acme"}`).want(201)
	r.host("POST", "/v1/orgs/acme/repos", `{"name":"api"}`).want(201)
	r.reader, r.writer, r.admin = r.token("acme", "read"), r.token("acme", "write"), r.token("acme", "admin")
	r.fill()
	soon := r.clock.time().Add(time.Hour)
	r.edit(fmt.Sprintf(`
INSERT INTO commits (repo_id, sha, state, state_since, registered_at, policy_version, expires)
WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 600)
SELECT r.id, printf('%%040x', n.value), 2, 1, 1, r.policy_version, %d
FROM n, repos r JOIN orgs o ON o.id = r.org_id WHERE o.name = 'acme' AND r.name = 'api'`, soon))
	return *r.backend
}

// wantUnknown checks that in an org, the IDs of another org are the same as unknown ones, for every
// route and method.
func (b *backend) wantUnknown(org string, other reading) {
	b.t.Helper()
	for _, rt := range b.server.routes() {
		list, _, ok := strings.Cut(rt.pattern, "/:id")
		if !ok || !rt.inOrg() {
			continue
		}
		id := other.first(list)
		unknown := id[:len(id)-2] + map[bool]string{true: "11", false: "22"}[strings.HasSuffix(id, "22")]
		answer := func(id string) string {
			path := strings.NewReplacer(":org", org, ":repo", "api", ":id", id, ":delivery", "dlv_x").Replace(rt.pattern)
			a := b.send(request{method: rt.method, path: path, token: b.admin, header: map[string]string{"X-Undescribed": "1"}})
			return a.seen(id)
		}
		if got, want := answer(id), answer(unknown); got != want {
			b.t.Errorf("%s %s: with the ID of another org:\n%s\nwith an unknown ID:\n%s", rt.method, rt.pattern, got, want)
		}
	}
}

// firstSkipped is less than the row ids after skipRows, and greater than all numbers of the test.
const firstSkipped = 900_000_000

// skipRows makes row ids jump, as if the other org had many rows. Its last row of each table is lost.
func (b *backend) skipRows() {
	b.t.Helper()
	script := "PRAGMA foreign_keys = off;"
	for _, table := range []string{"repos", "commits", "attestations", "events", "violations", "webhooks", "tokens",
		"identities", "predicates", "predicate_types", "signers", "keys", "members", "passkeys", "issuers", "exchange_rules",
		"trusted_roots", "member_rules"} {
		script += fmt.Sprintf("UPDATE %[1]s SET id = id + %[2]d WHERE id = (SELECT max(id) FROM %[1]s);", table, firstSkipped)
	}
	b.edit(script)
}

// more adds records to an org.
func (b *backend) more(org string) {
	b.t.Helper()
	post := func(path, body string) {
		b.t.Helper()
		b.send(request{method: "POST", path: "/v1/orgs/" + org + path, token: b.admin, body: body}).want(201)
	}
	ci := newSigner(b.t, "cn=more"+rest)
	post("/identities", toJSON(b.t, identity.NewIdentity{Kind: identity.KeyIdentity, PEM: ci.publicPEM(b.t), DN: ci.dn}))
	for n := range 3 {
		post("/repos", fmt.Sprintf(`{"name":"more%d"}`, n))
		post("/repos/api/webhooks", `{"url":"https://ci.example.com/more","events":["attestation","state"]}`)
		post("/tokens", `{"name":"more","scope":"read"}`)
	}
	for n := 100; n < 108; n++ {
		b.send(request{method: "PUT", path: "/v1/orgs/" + org + "/repos/api/commits/" + commitID(n), token: b.admin,
			body: toJSON(b.t, registering(fmt.Sprintf("more%d", n), editing("cmd/root.go", n)))}).want(201)
		for _, predicate := range []string{"test:more", "deploy:more", "more:more"} {
			post("/repos/api/attestations", string(ci.statement(b.t, commitID(n), predicate, ledger.Pass, n)))
		}
	}
}

// wantSmallNumbers checks that no response has a number that jumps with the row ids, and that cursors
// have the length they had before.
func (r *receiptBackend) wantSmallNumbers(before, after reading) {
	r.t.Helper()
	number := regexp.MustCompile(`(?m)(?:^|[:,\[ ])([0-9]{9,})(?:$|[,\]} ])`)
	cursor := regexp.MustCompile(`"next_cursor":"([^"]+)"`)
	for what, seen := range after.seen {
		for _, match := range number.FindAllStringSubmatch(seen, -1) {
			if n, err := strconv.ParseInt(match[1], 10, 64); err != nil || n >= firstSkipped {
				r.t.Errorf("%s has the number %s:\n%s", what, match[1], seen)
			}
		}
		now, then := cursor.FindStringSubmatch(seen), cursor.FindStringSubmatch(before.seen[what])
		if now != nil && then != nil && len(now[1]) != len(then[1]) {
			r.t.Errorf("%s: the cursor %s is longer or shorter than %s before", what, now[1], then[1])
		}
	}
}
