package verify

import (
	"bytes"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// A renamed repo is verified with what it had under its former name, and without what another repo
// recorded that has the name now. What only the ledger says is not checked.
func TestRenamedRepoIsVerified(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	old := h.record(commitID(1), "lint:go", ledger.Pass)
	_, err := h.admin.ChangeRepo(ctx, "acme", "api", ledger.RepoChange{Name: new("core")})
	must.OK(t, err)
	time.Sleep(2 * time.Millisecond) // whose events are, follows from the time of the creation
	_, err = h.admin.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "api"})
	must.OK(t, err)
	h.attest(commitID(1), "test:go", ledger.Pass) // of the new api
	h.sign()

	s, p := newSite(t, h), newPerson(t)
	for _, repo := range []string{"core", "api"} {
		r := p.verify(s, func(s *Session) (verify.Report, error) { return s.Repo(ctx, repo) })
		wantVerified(t, r)
		want(t, r, checkNames, verify.NotChecked, "by the ledger, ")
		wantVerified(t, p.verify(s, func(s *Session) (verify.Report, error) { return s.Commit(ctx, repo, commitID(1)) }))
	}
	wantVerified(t, p.verify(s, func(s *Session) (verify.Report, error) { return s.Attestation(ctx, "core", old.ID) }))
}

// An org whose log is signed keeps its name, also when it is deleted and restored. The log of a
// deleted org is not signed.
func TestSignedOrgKeepsItsName(t *testing.T) {
	h := newHost(t)
	h.sign()
	ctx := t.Context()
	wantRefused := func(org string) {
		t.Helper()
		_, err := h.admin.ChangeOrg(ctx, org, ledger.OrgChange{Name: new("globex")})
		if client.CodeOf(err) != ledger.CodeInvalidField {
			t.Errorf("%s is renamed: %v", org, err)
		}
	}
	wantRefused("acme")

	must.OK(t, h.admin.DeleteOrg(ctx, "acme"))
	wantRefused("~1")
	logs, err := h.store.LogsToSign(ctx, true, "", 10)
	must.OK(t, err)
	if len(logs) != 0 {
		t.Errorf("the logs to sign are %+v", logs)
	}
	_, err = h.admin.ChangeOrg(ctx, "~1", ledger.OrgChange{Name: new("acme")})
	must.OK(t, err)

	h.attest(commitID(1), "lint:go", ledger.Pass)
	h.sign()
	s, p := newSite(t, h), newPerson(t)
	wantVerified(t, p.verify(s, func(s *Session) (verify.Report, error) { return s.Repo(ctx, "api") }))
}

// An export of a renamed repo has events with the names of their times. That these are names of the
// repo is what the ledger says.
func TestEvidenceOfARenamedRepo(t *testing.T) {
	h := newHost(t)
	h.receipt() // its key
	rename := func(from, to string) {
		t.Helper()
		_, err := h.admin.ChangeRepo(t.Context(), "acme", from, ledger.RepoChange{Name: &to})
		must.OK(t, err)
	}
	rename("api", "core")
	_, _, err := h.admin.Register(t.Context(), "acme", "core", commitID(1), ledger.Registration{Branch: "fix"})
	must.OK(t, err)
	_, etag, err := h.admin.Policy(t.Context(), "acme", "core")
	must.OK(t, err)
	_, err = h.admin.SetPolicy(t.Context(), "acme", "core",
		[]byte(`{"requirements":[{"state":"ATTESTED","predicate":"lint:*"}]}`), etag)
	must.OK(t, err)
	must.OK(t, h.store.Settle(t.Context()))
	rename("core", "api")
	h.attest(commitID(1), "lint:go", ledger.Pass)

	p, text := pinned(h), h.export(evidence.Options{})
	r, err := p.evidence(text)
	must.OK(t, err)
	wantVerified(t, r)
	want(t, r, verify.CheckRecord, verify.OK, "2 attestations")
	want(t, r, verify.CheckStates, verify.OK, "")
	want(t, r, verify.CheckFacts, verify.OK, "")
	want(t, r, checkNames, verify.NotChecked, "acme/api was called core")

	f := filesOf(t, text)
	f[evidence.ManifestFile] = bytes.Replace(f[evidence.ManifestFile], []byte(`"core"`), []byte(`"heart"`), 1)
	r, err = p.evidence(f.pack(t))
	must.OK(t, err)
	want(t, r, verify.CheckStates, verify.Failed, "which the export is not of")
}
