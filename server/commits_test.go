package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

func TestRegisterCommit(t *testing.T) {
	b := newBackend(t)
	sha, base := commitID(1), commitID(0)
	resp := b.send(request{method: "PUT", path: commitPath(sha), token: b.writer, body: "{}"}).want(201)
	if got := resp.header.Get("Location"); got != commitPath(sha) {
		t.Errorf("Location: %s", got)
	}
	bare := decode[ledger.Commit](resp)
	if bare.SHA != sha || bare.State != ledger.Draft || bare.Target != "main" || bare.Changes != nil ||
		len(bare.Requirements) != 3 || bare.RegisteredAt != b.clock.time() {
		t.Errorf("commit without fields: %+v", bare)
	}

	registration := fmt.Sprintf(
		`{"branch":"feature/x","target":"release/1","base":%q,"parents":[%q],"ancestors":[%q],"contained":[%q],
		"author":{"name":"Ada","email":"ada@acme.example"},"message":"Count\n\nin base sixteen",`+
			`"committed_at":"2026-11-30T10:00:00+01:00",
		"changes":[{"path":"a b/ü.go","status":"R","old_path":"x.go","mode":"100755","old_mode":"100644","blob":%q,`+
			`"old_blob":%q,
		"hunks":[{"start":1,"lines":1,"added":2,"text":"0123456789abcdef","function":"func main() {",`+
			`"near":["0123456789abcdef",""],"far":["fedcba9876543210",""]}]}]}`,
		base, base, base, commitID(7), base, sha)
	b.put(commitPath(sha), registration).want(200)
	full := decode[ledger.Commit](b.get(commitPath(sha)).want(200))
	if full.Branch != "feature/x" || full.Target != "release/1" || full.Base != base ||
		full.Author.Email != "ada@acme.example" ||
		full.CommittedAt.String() != "2026-11-30T09:00:00.000Z" || len(full.Changes) != 1 ||
		full.Changes[0].Hunks[0].Near[1] != "" {
		t.Errorf("updated: %+v", full)
	}

	// A later registration leaves omitted fields unchanged. An empty change record counts.
	resp = b.put(commitPath(sha), `{"branch":"feature/y","changes":[]}`).want(200)
	if c := decode[ledger.Commit](resp); c.Radar == nil || len(c.Radar.Overlaps) != 0 || c.Changes != nil {
		t.Errorf("response with radar %+v, want no overlaps, and changes %v, want none", c.Radar, c.Changes)
	}
	read := b.get(commitPath(sha)).want(200)
	later := decode[ledger.Commit](read)
	if later.Branch != "feature/y" || later.Target != "release/1" || later.Changes == nil || len(later.Changes) != 0 ||
		len(later.Parents) != 1 {
		t.Errorf("updated again: %+v", later)
	}
	if string(read.body) != toJSONSorted(t, later) {
		t.Errorf("read\n%s, want\n%s", read.body, toJSONSorted(t, later))
	}
	b.put(commitPath(strings.Repeat("ab", 32)), "{}").want(201) // SHA-256
	b.put("/v1/orgs/acme/repos/none/commits/"+sha, "{}").wantProblem(404, ledger.CodeNotFound)
}

func toJSONSorted(t *testing.T, v any) string {
	t.Helper()
	text, err := marshal(v)
	must.OK(t, err)
	return string(text)
}

func TestInvalidRegistrations(t *testing.T) {
	b := newBackend(t)
	sha := commitID(1)

	for name, test := range map[string]struct {
		sha, body string
		status    int
		code      ledger.Code
		fields    []string
	}{
		"short id": {sha[:12], `{}`, 422, ledger.CodeInvalidField, []string{"sha"}},
		"negative line": {sha, `{"changes":[{"path":"a","status":"M","hunks":[{"start":-1,"lines":0,"added":0}]}]}`,
			422, ledger.CodeInvalidField, []string{"changes[0].hunks[0].start"}},
		"fractional line": {sha, `{"changes":[{"path":"a","status":"M","hunks":[{"start":1.5,"lines":0,"added":0}]}]}`,
			400, ledger.CodeInvalidJSON, []string{"changes[0].hunks[0].start"}},
		"unknown field": {sha, `{"author":{"nmae":"Ada"}}`, 400, ledger.CodeUnknownField, []string{"author.nmae"}},
		"invalid time":  {sha, `{"committed_at":"yesterday"}`, 400, ledger.CodeInvalidJSON, []string{"committed_at"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.put(commitPath(test.sha), test.body).wantFields(test.status, test.code, test.fields...)
		})
	}
	b.get(commitPath(sha)).wantProblem(404, ledger.CodeNotFound)
}

func TestCommitStanding(t *testing.T) {
	b := newBackend(t)
	const one = `{"branch":"one","author":{"name":"Ada"},"changes":[{"path":"a.go","status":"A","mode":"100644",` +
		`"blob":"%040x"}]}`
	b.put(commitPath(commitID(1)), fmt.Sprintf(one, 1)).want(201)
	b.put(commitPath(commitID(2)), fmt.Sprintf(strings.Replace(one, "one", "two", 1), 2)).want(201)
	ci, dev := b.signer("cn=ci,ou=build,o=acme"), b.signer("cn=dev,ou=team,o=acme")
	b.attest(ci.statement(t, commitID(2), "test:go", ledger.Pass, 1)).want(201)
	b.attest(dev.statement(t, commitID(2), "review:code", ledger.Fail, 2)).want(201)

	const list = "/v1/orgs/acme/repos/api/commits"
	commits := decode[ledger.Page[ledger.CommitSummary]](b.get(list + "?standing=true").want(200)).Data
	for i, want := range []struct {
		state    ledger.State
		missing  ledger.State
		failedBy string
	}{
		{ledger.Attested, ledger.Promotable, "[cn=dev,ou=team,o=acme]"},
		{ledger.Draft, ledger.Attested, "[]"},
	} {
		c := commits[i]
		if c.State != want.state || len(c.Missing) != 1 || c.Missing[0].State != want.missing ||
			fmt.Sprint(c.Missing[0].FailedBy) != want.failedBy {
			t.Errorf("%s: missing %+v, want one for %s, failed by %s", c.State, c.Missing, want.missing, want.failedBy)
		}
		if c.Overlaps["HIGH"] != 1 {
			t.Errorf("%s: overlaps %v, want one HIGH", c.State, c.Overlaps)
		}
	}
	for _, c := range decode[ledger.Page[ledger.CommitSummary]](b.get(list).want(200)).Data {
		if c.Missing != nil || c.Overlaps != nil {
			t.Errorf("without standing: %+v", c)
		}
	}
	b.get(list+"?standing=false").wantFields(400, ledger.CodeInvalidParameter, "standing")
}

func TestCommitFilters(t *testing.T) {
	b := newBackend(t)
	for i, body := range []string{
		`{"branch":"x","author":{"name":"Ada","email":"ada@acme.example"}}`,
		`{"branch":"y","author":{"name":"Bob","email":"bob@acme.example"}}`,
		`{"branch":"x","author":{"name":"Bob","email":"bob@home.example"}}`,
		`{}`,
	} {
		b.put(commitPath(commitID(i)), body).want(201)
	}
	b.attest(b.signer("cn=ci,ou=build,o=acme").statement(t, commitID(2), "lint:x", ledger.Pass, 1)).want(201)

	for query, want := range map[string]string{
		"":                             "[3 2 1 0]",
		"?state=DRAFT":                 "[3 1 0]",
		"?branch=x":                    "[2 0]",
		"?author=Bob":                  "[2 1]",
		"?text=oB":                     "[2 1]",
		"?in_flight=true":              "[2 1]",
		"?branch=x&author=Bob&limit=1": "[2]",
	} {
		got := []int{}
		for _, c := range decode[ledger.Page[ledger.CommitSummary]](
			b.get("/v1/orgs/acme/repos/api/commits" + query).want(200)).Data {
			var n int
			fmt.Sscanf(c.SHA, "%x", &n)
			got = append(got, n-0xc0ffee0000)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	b.get("/v1/orgs/acme/repos/api/commits?in_flight=false").wantFields(400, ledger.CodeInvalidParameter, "in_flight")
}

// A commit passes through all states, and its record says why.
func TestCommitPassesThroughAllStates(t *testing.T) {
	b := newBackend(t)
	ci, ada, ops := b.signer("cn=ci,ou=build,o=acme"), b.signer("cn=ada,ou=review,o=acme"),
		b.signer("cn=ops,ou=platform,o=acme")
	sha := commitID(1)
	b.put(commitPath(sha), `{"branch":"feature/x","target":"main","author":{"name":"Dora"}}`).want(201)
	for _, step := range []struct {
		by        *signer
		predicate string
		state     ledger.State
	}{
		{ci, "build:docker", ledger.Validating},
		{ci, "test:go", ledger.Attested},
		{ada, "review:code", ledger.Promotable},
		{ops, "deploy:prod", ledger.Deployed},
	} {
		b.clock.advance(time.Minute)
		b.attest(step.by.statement(t, sha, step.predicate, ledger.Pass, 1)).want(201)
		if state := b.state(sha); state != step.state {
			t.Fatalf("state after %s: %s, want %s", step.predicate, state, step.state)
		}
	}

	c := decode[ledger.Commit](b.get(commitPath(sha)).want(200))
	var moves []string
	for _, m := range c.Transitions {
		moves = append(moves, m.From.String()+">"+m.To.String())
	}
	if fmt.Sprint(moves) != "[DRAFT>VALIDATING VALIDATING>ATTESTED ATTESTED>PROMOTABLE PROMOTABLE>DEPLOYED]" {
		t.Errorf("transitions: %v", moves)
	}
	if len(c.Attestations) != 4 || c.Attestations[0].Predicate != "deploy:prod" || c.Attested != 4 {
		t.Errorf("attestations: %+v", c.Attestations)
	}
	if all := b.get(c.AttestationsURL).want(200); strings.Count(string(all.body), `"att_`) != 4 {
		t.Errorf("%s: %s", c.AttestationsURL, all.body)
	}
	if all := b.get(c.TransitionsURL).want(200); strings.Count(string(all.body), `"from"`) != 4 {
		t.Errorf("%s: %s", c.TransitionsURL, all.body)
	}
	for _, r := range c.Requirements {
		if !r.Met || r.Have != 1 || len(r.SignersCounted) != 1 || r.Reason == "" {
			t.Errorf("requirement: %+v", r)
		}
	}
	repo := decode[ledger.Repo](b.get("/v1/orgs/acme/repos/api").want(200))
	if repo.Commits[ledger.Deployed] != 1 || repo.Commits[ledger.Draft] != 0 || repo.Attestations != 4 {
		t.Errorf("repo: %+v", repo)
	}
}
