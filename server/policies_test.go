package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

const policyPath = "/v1/orgs/acme/policies/api"

func (b *backend) putPolicy(ifMatch, contract string) response {
	b.t.Helper()
	return b.send(request{method: "PUT", path: policyPath, token: b.admin, body: contract,
		header: map[string]string{"If-Match": ifMatch}})
}

func TestPolicyVersions(t *testing.T) {
	b := newBackend(t)
	read := b.get(policyPath).want(200)
	first := decode[policy.Policy](read)
	if first.Version != 1 || first.CreatedBy != "host" || len(first.Requirements) != 3 ||
		!strings.HasPrefix(first.Digest, "sha256:") {
		t.Errorf("policy of a new repo: %+v", first)
	}
	tag := read.header.Get("ETag")
	if want := fmt.Sprintf(`"v1-%s"`, first.Digest[7:19]); tag != want {
		t.Errorf("ETag %s, want %s", tag, want)
	}

	// The response of GET can be edited and sent back.
	edited := strings.Replace(string(read.body), `"threshold":1`, `"threshold":2`, 1)
	resp := b.putPolicy(tag, edited).want(200)
	second := decode[policy.Policy](resp)
	if second.Version != 2 || second.Requirements[0].Threshold != 2 || second.Digest == first.Digest ||
		!strings.HasPrefix(second.CreatedBy, "admin of acme (tok_") {
		t.Errorf("version 2: %+v", second)
	}
	if got := b.get(policyPath).want(200); string(got.body) != string(resp.body) ||
		got.header.Get("ETag") != resp.header.Get("ETag") {
		t.Errorf("read\n%s %s, want\n%s %s", got.header.Get("ETag"), got.body, resp.header.Get("ETag"), resp.body)
	}
	if old := b.get(policyPath + "?version=1").want(200); string(old.body) != string(read.body) ||
		old.header.Get("ETag") != tag {
		t.Errorf("version 1 is now\n%s, was\n%s", old.body, read.body)
	}
	b.get(policyPath+"?version=3").wantProblem(404, ledger.CodeNotFound)
	b.get("/v1/orgs/acme/policies/none").wantProblem(404, ledger.CodeNotFound)

	versions := decode[ledger.Page[policy.Policy]](b.get(policyPath + "/versions").want(200))
	if len(versions.Data) != 2 || versions.Data[0].Version != 2 || versions.Data[1].Digest != first.Digest {
		t.Errorf("versions: %+v", versions)
	}
}

func TestPolicyPreconditions(t *testing.T) {
	b := newBackend(t)
	const contract = `{"requirements":[]}`
	stale := b.get(policyPath).header.Get("ETag")
	active := b.putPolicy(stale, contract).want(200).header.Get("ETag")

	b.put(policyPath, contract).wantProblem(428, ledger.CodePreconditionRequired)
	p := b.putPolicy(stale, contract).wantProblem(412, ledger.CodePreconditionFailed)
	if !strings.Contains(p.Detail, active) {
		t.Errorf("detail %q, want it to name %s", p.Detail, active)
	}
	for _, wrong := range []string{`"v2-000000000000"`, `"v2"`, `v2`, `"v3` + active[3:], ""} {
		if wrong != "" {
			b.putPolicy(wrong, contract).wantProblem(412, ledger.CodePreconditionFailed)
		}
	}
	// Proxies and clients of compressed responses send ETags in these forms.
	for n, right := range []func(tag string) string{
		func(tag string) string { return tag },
		func(tag string) string { return `"v1-x", ` + tag },
		func(tag string) string { return "W/" + tag },
		func(tag string) string { return strings.TrimSuffix(tag, `"`) + `-gzip"` },
		func(string) string { return "*" },
	} {
		got := b.putPolicy(right(active), contract).want(200)
		if v := decode[policy.Policy](got).Version; v != n+3 {
			t.Errorf("version %d, want %d", v, n+3)
		}
		active = got.header.Get("ETag")
	}
}

func TestConcurrentPolicyChanges(t *testing.T) {
	b := newBackend(t)
	tag := b.get(policyPath).header.Get("ETag")
	var replaced, rejected atomic.Int64
	var writers sync.WaitGroup
	for i := range 16 {
		writers.Go(func() {
			resp := b.putPolicy(tag, fmt.Sprintf(`{"requirements":[{"state":"ATTESTED","predicate":"test:%d"}]}`, i))
			switch resp.status {
			case http.StatusOK:
				replaced.Add(1)
			case http.StatusPreconditionFailed:
				rejected.Add(1)
			}
		})
	}
	writers.Wait()
	if replaced.Load() != 1 || rejected.Load() != 15 {
		t.Errorf("%d succeeded and %d failed, want 1 and 15", replaced.Load(), rejected.Load())
	}
}

func TestInvalidPolicies(t *testing.T) {
	b := newBackend(t)
	requirement := func(members string) string {
		return `{"requirements":[{"state":"ATTESTED","predicate":"test:go"},{` + members + `}]}`
	}

	for name, test := range map[string]struct {
		contract string
		status   int
		code     ledger.Code
		fields   []string
	}{
		"unknown state": {requirement(`"state":"ATESTED","predicate":"x"`), 422, ledger.CodeInvalidContract,
			[]string{"requirements[1].state"}},
		"two errors": {requirement(`"state":"X","predicate":""`), 422, ledger.CodeInvalidContract,
			[]string{"requirements[1].state", "requirements[1].predicate"}},
		"array":         {`[]`, 422, ledger.CodeInvalidContract, nil},
		"unknown field": {`{"requirements":[],"versoin":1}`, 400, ledger.CodeUnknownField, []string{"versoin"}},
		"truncated":     {`{"requirements":[`, 400, ledger.CodeInvalidJSON, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			for _, resp := range []response{b.putPolicy("*", test.contract), b.post(policyPath+"/simulate", test.contract)} {
				if test.fields == nil {
					resp.wantProblem(test.status, test.code)
				} else {
					resp.wantFields(test.status, test.code, test.fields...)
				}
			}
		})
	}
	if got := decode[policy.Policy](b.get(policyPath)).Version; got != 1 {
		t.Errorf("version %d after invalid contracts", got)
	}
}

// A simulation predicts exactly the transitions that the contract then causes.
func TestSimulate(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	for i, status := range []ledger.Status{ledger.Pass, ledger.Fail, ledger.Pass} {
		b.attest(ci.statement(t, commitID(i), "test:go", status, 1)).want(201)
	}
	b.attest(ci.statement(t, commitID(2), "lint:golangci", ledger.Pass, 1)).want(201)
	b.put(commitPath(commitID(3)), "{}").want(201)

	const draft = `{"requirements":[{"state":"ATTESTED","predicate":"lint:*"}],"version":9,"org":"other"}`
	before := b.get("/v1/orgs/acme/events").body
	simulated := decode[ledger.Simulation](b.post(policyPath+"/simulate", draft).want(200))
	if after := b.get("/v1/orgs/acme/events").body; string(before) != string(after) {
		t.Errorf("events after a simulation: %s", after)
	}
	if simulated.Evaluated != 4 || len(simulated.Moves) != 2 {
		t.Fatalf("simulated: %+v", simulated)
	}
	b.putPolicy("*", draft).want(200)
	must.OK(t, b.store.Settle(t.Context()))
	for _, move := range simulated.Moves {
		if state := b.state(move.Commit); state != move.To || len(move.Reasons) == 0 && move.To < move.From {
			t.Errorf("simulated %+v, but the state is %s", move, state)
		}
	}
	if state := b.state(commitID(1)); state != ledger.Validating {
		t.Errorf("a commit that was not in the simulation is %s", state)
	}
}
