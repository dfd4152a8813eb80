package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

const (
	violationsPath    = "/v1/orgs/acme/violations"
	repoViolations    = "/v1/orgs/acme/repos/api/violations"
	deploymentPolicy  = `{"requirements":[` + testAndReview + `,` + deployedBy + `]}`
	laterPolicy       = `{"requirements":[` + testAndReview + `,{"state":"DEPLOYED","predicate":"deploy:prod"}]}`
	withoutDeployment = `{"requirements":[` + testAndReview + `]}`
	testAndReview     = `{"state":"ATTESTED","predicate":"test:*"},{"state":"PROMOTABLE","predicate":"review:*"}`
	deployedBy        = `{"state":"DEPLOYED","predicate":"deploy:prod","signers":["cn=cd"]}`
)

// A deployer records deployments in a repo where only cd may deploy.
type deployer struct {
	*backend
	ci, cd, stranger *signer
	runs             int
}

// rest is the end of the signers' DNs.
const rest = ",ou=x,o=acme"

func newDeployer(t *testing.T) *deployer {
	b := newBackend(t)
	b.setContract(deploymentPolicy)
	return &deployer{backend: b, ci: b.signer("cn=ci" + rest), cd: b.signer("cn=cd" + rest),
		stranger: b.signer("cn=mallory" + rest)}
}

// record records an attestation about commit n, and returns its record.
func (d *deployer) record(n int, by *signer, predicate string, status ledger.Status) ledger.AttestationRecord {
	d.t.Helper()
	d.runs++
	return decode[ledger.AttestationRecord](
		d.attest(by.statement(d.t, commitID(n), predicate, status, d.runs)).want(201))
}

// promote makes commit n PROMOTABLE.
func (d *deployer) promote(n int) {
	d.t.Helper()
	d.record(n, d.ci, "test:go", ledger.Pass)
	d.record(n, d.ci, "review:code", ledger.Pass)
}

// violations lists the violations of acme, the latest first: the number of the commit, the
// signer, and the status or what closed it.
func (d *deployer) violations(query string) (list []string) {
	d.t.Helper()
	for _, v := range decode[ledger.Page[ledger.Violation]](d.get(violationsPath + query).want(200)).Data {
		status := string(v.Status)
		if v.ClosedBy != nil {
			status = "closed by " + string(v.ClosedBy.Type)
		}
		list = append(list, fmt.Sprintf("%s %s %s %s", v.Commit[36:],
			v.Predicate, strings.TrimSuffix(v.Identity, rest), status))
	}
	return list
}

func (d *deployer) want(want ...string) {
	d.t.Helper()
	if got := d.violations(""); !slices.Equal(got, want) {
		d.t.Errorf("violations %q, want %q", got, want)
	}
}

// opened lists the events of violations.
func (d *deployer) events(query string) (list []string) {
	d.t.Helper()
	type event struct {
		Type     string          `json:"type"`
		Status   string          `json:"status"`
		ClosedBy *ledger.Closing `json:"closed_by"`
	}
	for _, e := range decodeOpen[ledger.Page[event]](d.get("/v1/orgs/acme/events" + query).want(200)).Data {
		text := e.Type + " " + e.Status
		if e.ClosedBy != nil {
			text += " by " + string(e.ClosedBy.Type)
		}
		list = append(list, strings.TrimSpace(text))
	}
	return list
}

func decodeOpen[T any](r response) (v T) {
	r.t.Helper()
	must.OK(r.t, ledger.DecodeOpen(r.body, &v))
	return v
}

// A deployment of a commit that is not PROMOTABLE is a violation, even by a signer who may
// deploy, and it is reported once.
func TestDeployOfADraftCommitIsAViolation(t *testing.T) {
	d := newDeployer(t)
	record := d.record(1, d.cd, "deploy:prod", ledger.Pass)
	if v := record.Violation; v == nil || len(v.Missing) != 3 || !strings.HasPrefix(v.Missing[0], "test:*: 0 of 1") ||
		!strings.Contains(v.Missing[2], "before the commit was PROMOTABLE") {
		t.Fatalf("the response has the violation %+v, want the reasons of three requirements", v)
	}
	d.want("0001 deploy:prod cn=cd open")

	list := decode[ledger.Page[ledger.Violation]](d.get(violationsPath).want(200)).Data
	want := ledger.Violation{
		Org: "acme", Repo: "api", Commit: commitID(1), Predicate: "deploy:prod", Identity: "cn=cd" + rest,
		Attestation: record.ID, State: ledger.Draft, Missing: record.Violation.Missing, Status: ledger.ViolationOpen,
		OpenedAt: d.clock.time(),
	}
	if toJSON(t, list[0]) != toJSON(t, want) {
		t.Errorf("listed %s, want %s", toJSON(t, list[0]), toJSON(t, want))
	}
	c := decode[ledger.Commit](d.get(commitPath(commitID(1))).want(200))
	if c.State != ledger.Validating || c.OpenViolations != 1 || toJSON(t, c.Violations[0]) != toJSON(t, want) {
		t.Errorf("the commit is %s and has %d open violations, %+v", c.State, c.OpenViolations, c.Violations)
	}
	if r := decode[ledger.Repo](d.get("/v1/orgs/acme/repos/api").want(200)); r.OpenViolations != 1 {
		t.Errorf("the repo has %d open violations, want 1", r.OpenViolations)
	}

	// The same statement again, and more deployments, open no others.
	again := d.cd.statement(t, commitID(2), "deploy:prod", ledger.Pass, 100)
	d.attest(again).want(201)
	if r := decode[ledger.AttestationRecord](d.attest(again).want(200)); r.Violation != nil {
		t.Errorf("the first record has a violation, want none: %+v", r)
	}
	if r := d.record(2, d.stranger, "deploy:prod", ledger.Pass); r.Violation == nil {
		t.Error("the second deployment of commit 2 is no violation")
	}
	d.want("0002 deploy:prod cn=cd open", "0001 deploy:prod cn=cd open")
	if got := d.events("?types=violation"); !slices.Equal(got, []string{"violation opened", "violation opened"}) {
		t.Errorf("events %q, want one for each commit", got)
	}
}

// A later deployment that counts closes the violations of its predicate in the whole repo.
func TestDeploymentClosesViolations(t *testing.T) {
	d := newDeployer(t)
	d.setContract(`{"requirements":[` + testAndReview + `,` + deployedBy +
		`,{"state":"DEPLOYED","predicate":"deploy:eu","signers":["cn=cd"]}]}`)
	for n := range 3 {
		d.record(n+1, d.stranger, "deploy:prod", ledger.Pass)
	}
	d.record(1, d.stranger, "deploy:eu", ledger.Pass)
	d.host("POST", "/v1/orgs/acme/repos", `{"name":"web"}`).want(201)

	d.promote(9)
	d.record(9, d.cd, "deploy:prod", ledger.Fail) // a deployment that failed changes nothing
	d.record(9, d.ci, "deploy:prod", ledger.Pass) // nor does one that does not count
	d.want("0009 deploy:prod cn=ci open", "0001 deploy:eu cn=mallory open", "0003 deploy:prod cn=mallory open",
		"0002 deploy:prod cn=mallory open", "0001 deploy:prod cn=mallory open")

	closing := d.record(9, d.cd, "deploy:prod", ledger.Pass)
	d.want("0009 deploy:prod cn=ci closed by deployment", "0001 deploy:eu cn=mallory open",
		"0003 deploy:prod cn=mallory closed by deployment", "0002 deploy:prod cn=mallory closed by deployment",
		"0001 deploy:prod cn=mallory closed by deployment")
	for _, v := range decode[ledger.Page[ledger.Violation]](d.get(violationsPath + "?status=closed").want(200)).Data {
		if v.ClosedBy.ID != closing.ID || v.ClosedAt != d.clock.time() {
			t.Errorf("closed by %s at %s, want %s", v.ClosedBy.ID, v.ClosedAt, closing.ID)
		}
	}
	if r := decode[ledger.Repo](d.get("/v1/orgs/acme/repos/api").want(200)); r.OpenViolations != 1 {
		t.Errorf("the repo has %d open violations, want 1", r.OpenViolations)
	}

	// It can be violated again.
	d.record(1, d.stranger, "deploy:prod", ledger.Pass)
	if got := d.violations("?status=open&repo=api&predicate=deploy:prod"); len(got) != 1 {
		t.Errorf("open violations %q, want one", got)
	}
}

// A rollback closes the violations of its predicate, if the commit was deployed or has one
// of them itself. A deployment that failed closes none.
func TestRollbackClosesViolations(t *testing.T) {
	d := newDeployer(t)
	d.record(1, d.stranger, "deploy:prod", ledger.Pass)
	d.record(1, d.stranger, "deploy:prod", ledger.Fail) // by a signer who is not accepted
	d.record(2, d.cd, "deploy:prod", ledger.Fail)       // of a commit that was never deployed
	d.record(1, d.cd, "deploy:staging", ledger.Fail)    // of another predicate
	d.want("0001 deploy:prod cn=mallory open")
	d.record(1, d.cd, "deploy:prod", ledger.Fail)
	d.want("0001 deploy:prod cn=mallory closed by rollback")

	d.promote(3)
	d.record(3, d.cd, "deploy:prod", ledger.Pass)
	d.record(4, d.stranger, "deploy:prod", ledger.Pass)
	d.record(3, d.cd, "deploy:prod", ledger.Fail)
	d.want("0004 deploy:prod cn=mallory closed by rollback", "0001 deploy:prod cn=mallory closed by rollback")
	if got, want := d.events("?types=violation"), []string{"violation opened", "violation closed by rollback",
		"violation opened", "violation closed by rollback"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// Whether a deployment is a violation is decided when it is recorded.
func TestPolicyChangesNoViolation(t *testing.T) {
	d := newDeployer(t)
	d.promote(1)
	d.record(1, d.stranger, "deploy:prod", ledger.Pass)
	d.record(2, d.stranger, "deploy:eu", ledger.Pass)
	d.setContract(laterPolicy)
	if got := d.state(commitID(1)); got != ledger.Deployed {
		t.Errorf("commit 1 is %s, want DEPLOYED by the stranger's deployment, which counts now", got)
	}
	for _, contract := range []string{laterPolicy, withoutDeployment,
		strings.ReplaceAll(deploymentPolicy, "deploy:prod", "deploy:eu"), deploymentPolicy} {
		d.setContract(contract)
		d.want("0001 deploy:prod cn=mallory open")
	}
	if got := d.events("?types=violation"); len(got) != 1 {
		t.Errorf("events %q, want one", got)
	}
}

// Streams, histories and webhooks have the events of violations only if they ask for them.
func TestViolationEventsAreSentOnRequest(t *testing.T) {
	d := newDeployer(t)
	bare, asking := d.webhook(`{"url":"https://a.example"}`),
		d.webhook(`{"url":"https://b.example","events":["violation"]}`)
	silent := d.listen("", d.reader, nil)
	told := d.listen("?types=violation&repo=api", d.reader, nil)
	record := d.record(1, d.stranger, "deploy:prod", ledger.Pass)
	d.promote(1)
	d.record(1, d.cd, "deploy:prod", ledger.Pass)

	want := fmt.Sprintf(`{"commit":%q,"predicate":"deploy:prod","identity":"mallory","status":"opened","state":"DRAFT",`+
		`"missing":%s,"attestation":%q,"repo":"api","timestamp":%q}`, commitID(1), toJSON(t, record.Violation.Missing),
		record.ID, d.clock.time())
	if m := <-told.messages; m.event != "violation" || m.data != want {
		t.Errorf("the stream has %s %s, want %s", m.event, m.data, want)
	}
	if m := <-told.messages; !strings.Contains(m.data, `"status":"closed"`) ||
		!strings.Contains(m.data, `"closed_by":{"type":"deployment"`) {
		t.Errorf("the second message is %s, want the closed violation", m.data)
	}
	for range 8 { // 4 attestations and 4 transitions
		if m := <-silent.messages; m.event == "violation" {
			t.Error("a stream that does not ask for violations has one")
		}
	}

	for query, want := range map[string]int{"": 0, "repo=api": 0, "types=violation": 2, "types=violation,radar": 2,
		"types=violation&repo=api": 2, "types=state,violation&repo=api": 2,
		"types=attestation,state,policy,radar,violation": 2,
		"types=violation&repo=api&order=desc":            2, "types=attestation,state,policy&repo=api&order=desc": 0} {
		n := 0
		for _, e := range d.events("?limit=500&" + query) {
			if strings.HasPrefix(e, "violation") {
				n++
			}
		}
		if n != want {
			t.Errorf("the history %q has %d violations, want %d", query, n, want)
		}
	}
	for hook, want := range map[string]int{bare.ID: 0, asking.ID: 2} {
		body := string(d.get(webhooksPath + "/" + hook + "/deliveries?limit=500").want(200).body)
		if n := strings.Count(body, `"type":"violation"`); n != want {
			t.Errorf("webhook %s has %d deliveries of violations, want %d", hook, n, want)
		}
	}
}

func TestViolationFilters(t *testing.T) {
	d := newDeployer(t)
	d.host("POST", "/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	d.record(1, d.stranger, "deploy:prod", ledger.Pass)
	d.promote(9)
	d.record(9, d.cd, "deploy:prod", ledger.Pass)
	d.record(2, d.stranger, "deploy:prod", ledger.Pass)
	d.record(3, d.stranger, "deploy:prod", ledger.Pass)

	one, two := commitID(1), commitID(2)
	for query, want := range map[string]string{
		"": "3 2 1", "status=open": "3 2", "status=closed": "1", "repo=api": "3 2 1", "repo=web": "",
		"repo=api&status=open": "3 2", "repo=api&status=closed": "1", "predicate=deploy:prod": "3 2 1",
		"predicate=deploy:prod&status=open": "3 2", "predicate=test:go": "", "predicate=none": "",
		"repo=api&predicate=deploy:prod&status=open": "3 2", "repo=api&predicate=none&status=open": "",
		"repo=api&commit=" + one: "1", "repo=api&status=open&commit=" + one: "", "repo=api&commit=" + two[:39]: "409",
		"repo=api&status=open&commit=" + two: "2", "repo=api&predicate=deploy:prod&status=open&commit=" + two: "2",
	} {
		resp := d.get(violationsPath + "?" + query)
		if want == "409" {
			resp.wantProblem(409, ledger.CodeAmbiguousCommit)
			continue
		}
		var got []string
		for _, v := range decode[ledger.Page[ledger.Violation]](resp.want(200)).Data {
			got = append(got, v.Commit[39:])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("?%s: %q, want %q", query, got, want)
		}
		if rest, ok := strings.CutPrefix(query, "repo=api"); ok {
			if own := d.get(repoViolations + "?" + strings.TrimPrefix(rest, "&")); string(own.body) != string(resp.body) {
				t.Errorf("the repo lists %s, the org %s", own.body, resp.body)
			}
		}
	}

	d.get(violationsPath+"?commit="+one).wantFields(400, ledger.CodeInvalidParameter, "commit")
	d.get(violationsPath+"?status=opened").wantFields(400, ledger.CodeInvalidParameter, "status")
	d.get(repoViolations+"?repo=api").wantFields(400, ledger.CodeUnknownParameter, "repo")
	d.get(violationsPath+"?repo=none").wantProblem(404, ledger.CodeNotFound)
	keys, next := d.page(violationsPath+"?limit=2", "commit")
	if len(keys) != 2 || next == "" {
		t.Errorf("the first page has %q and cursor %q", keys, next)
	}
	if keys, next = d.page(next, "commit"); !slices.Equal(keys, []string{one}) || next != "" {
		t.Errorf("the second page has %q and cursor %q, want commit 1", keys, next)
	}
}

// An exception closes the violations of its commit, if it counts and is for a DEPLOYED
// requirement that names their predicate.
func TestExceptionClosesViolations(t *testing.T) {
	d := newDeployer(t)
	d.setContract(`{"requirements":[{"name":"review","state":"PROMOTABLE","predicate":"review:*"},
		{"name":"staged","state":"ATTESTED","predicate":"deploy:p*"},
		{"name":"prod","state":"DEPLOYED","predicate":"deploy:prod","signers":["cn=cd"]},
		{"name":"eu","state":"DEPLOYED","predicate":"deploy:eu*","signers":["cn=cd"]}],
		"exceptions":{"signers":["ou=security"],"max_duration":"72h"}}`)
	security := d.signer("cn=sue,ou=security,o=acme")
	d.record(1, d.stranger, "deploy:prod", ledger.Pass)
	d.record(1, d.stranger, "deploy:eu1", ledger.Pass)
	d.record(2, d.stranger, "deploy:prod", ledger.Pass)
	open := []string{"0002 deploy:prod cn=mallory open", "0001 deploy:eu1 cn=mallory open",
		"0001 deploy:prod cn=mallory open"}

	d.except(d.stranger, 1, "prod", time.Hour)
	d.except(security, 1, "review", time.Hour)
	d.except(security, 1, "staged", time.Hour)
	d.except(security, 3, "prod", time.Hour)
	d.except(security, 1, "none", time.Hour)
	d.except(security, 1, "prod", 96*time.Hour) // longer than allowed
	d.except(security, 1, "prod", 0)            // ends its predecessors
	d.want(open...)

	closing := decode[ledger.AttestationRecord](d.except(security, 1, "prod", time.Hour).want(201))
	open[2] = "0001 deploy:prod cn=mallory closed by exception"
	d.want(open...)
	list := decode[ledger.Page[ledger.Violation]](d.get(violationsPath + "?status=closed").want(200)).Data
	if len(list) != 1 || list[0].ClosedBy.ID != closing.ID {
		t.Errorf("closed: %+v, want one by %s", list, closing.ID)
	}
	d.except(security, 1, "eu", time.Hour)
	open[1] = "0001 deploy:eu1 cn=mallory closed by exception"
	d.want(open...)

	// Its end opens nothing again.
	d.clock.advance(2 * time.Hour)
	must.OK(t, d.store.Settle(t.Context()))
	d.want(open...)
}

// An exception closes more violations of a commit than fit in one write.
func TestExceptionClosesManyViolations(t *testing.T) {
	const many, atOnce = 60, 50
	d := newDeployer(t)
	d.setContract(`{"requirements":[{"name":"any","state":"DEPLOYED","predicate":"deploy:*","signers":["cn=cd"]}],
		"exceptions":{"signers":["ou=security"],"max_duration":"72h"}}`)
	for n := range many {
		d.record(1, d.stranger, fmt.Sprintf("deploy:%d", n), ledger.Pass)
		d.record(2, d.stranger, fmt.Sprintf("deploy:%d", n), ledger.Pass)
	}
	d.except(d.signer("cn=sue,ou=security,o=acme"), 1, "any", time.Hour)
	for _, closed := range []int{atOnce, many} {
		if got := len(d.violations("?limit=500&status=closed")); got != closed {
			t.Errorf("%d violations are closed, want %d", got, closed)
		}
		must.OK(t, d.store.Settle(t.Context()))
	}
	d.record(1, d.stranger, "deploy:59", ledger.Pass)
	if got := len(d.violations("?limit=500&status=open")); got != many+1 {
		t.Errorf("%d violations are open, want those of commit 2 and a new one", got)
	}
}
