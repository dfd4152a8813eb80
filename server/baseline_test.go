package server

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// baseline returns the envelope of a baseline of prod.
func (s *signer) baseline(t testing.TB, n int) string {
	t.Helper()
	payload, err := attestation.NewBaselineStatement(commitID(n), attestation.Baseline{Repo: "acme/api",
		Environment: "prod", Reason: "by hand"})
	must.OK(t, err)
	return string(s.sign(t, payload))
}

// Who deploys signs a baseline, and an admin confirms it by sending it.
func TestBaselinesAreConfirmedByAnAdmin(t *testing.T) {
	b := newBackend(t)
	b.setPolicy(`"requirements":[{"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=cd"]}]`)
	cd := b.limited("cn=cd,ou=cd,o=acme", "deploy:*", "baseline:*")
	body := cd.baseline(t, 1)
	post := func(token, body string) response {
		b.t.Helper()
		return b.send(request{method: "POST", path: attestationsPath, token: token, body: body})
	}

	refused := post(b.writer, body).wantProblem(403, ledger.CodeForbidden)
	if !strings.Contains(refused.Detail, "scope admin required: an admin confirms a baseline by sending it") {
		t.Errorf("a write token is refused with %q", refused.Detail)
	}
	b.addMember("mia", "maintainer")
	b.addMember("ada", "admin")
	mia, _ := b.signInMember("mia")
	refused = b.asWith(mia, "POST", attestationsPath, body).wantProblem(403, ledger.CodeForbidden)
	if !strings.Contains(refused.Detail, "role admin required") ||
		!strings.Contains(refused.Detail, "you are maintainer") {
		t.Errorf("a maintainer is refused with %q", refused.Detail)
	}
	items := decode[ledger.BulkResponse](post(b.writer, "["+body+"]").want(200)).Data
	if items[0].Status != 403 {
		t.Errorf("several at once by a write token: %+v", items[0])
	}
	if attestations, _ := b.count(); attestations != 0 {
		t.Fatalf("%d attestations were recorded", attestations)
	}

	record := decode[ledger.AttestationRecord](post(b.admin, body).want(201))
	ada, _ := b.signInMember("ada")
	b.asWith(ada, "POST", attestationsPath, cd.baseline(t, 2)).want(201)
	b.host("POST", attestationsPath, cd.baseline(t, 3)).want(201)
	post(b.admin, body).wantProblem(409, ledger.CodeStaleStatement) // others have replaced it
	list := decode[ledger.Page[ledger.Environment]](b.get("/v1/orgs/acme/environments").want(200)).Data
	if len(list) != 1 || list[0].Name != "prod" || list[0].Deployment != nil || list[0].Baseline.Commit != commitID(3) ||
		list[0].Baseline.Reason != "by hand" || record.Predicate != "baseline:prod" {
		t.Errorf("environments %+v after %+v, want prod with the last baseline", list, record)
	}
}

// Only who may deploy to an environment sets its baseline, with a pattern of its own.
func TestWhoMayNotDeploySetsNoBaseline(t *testing.T) {
	b := newBackend(t)
	b.setPolicy(`"requirements":[{"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=cd"]}]`)
	for _, test := range []struct {
		dn     string
		may    []string
		reason string
	}{
		{"cn=a,ou=cd,o=acme", []string{"*"}, "no pattern of identity"},
		{"cn=b,ou=cd,o=acme", []string{"deploy:*"}, "may not attest baseline:prod"},
		{"cn=c,ou=cd,o=acme", []string{"baseline:*"}, "only who deploys to prod sets its baseline"},
		{"cn=d,ou=ci,o=acme", []string{"*", "baseline:*"}, "by the policy, cn=d,ou=ci,o=acme does not deploy to prod"},
	} {
		s := b.limited(test.dn, test.may...)
		p := b.send(request{method: "POST", path: attestationsPath, token: b.admin, body: s.baseline(t, 1)}).
			wantProblem(422, ledger.CodePredicateNotAllowed)
		if !strings.Contains(p.Detail, test.reason) {
			t.Errorf("%s: %q, want %q", test.dn, p.Detail, test.reason)
		}
	}
}
