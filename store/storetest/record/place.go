package record

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// The web URL of a repo decides which of several sources provenance is about. It is the one at the time of the write:
// if it changes after the statement was verified, the statement is verified again.
func (s suite) TestTheWebURLDecidesWhatIsBuilt(t *testing.T) {
	fx := s.newFixture(t)
	key := fx.NewSigner("cn=ci,ou=build,o=acme").Key
	at := func(url string) {
		t.Helper()
		_, err := fx.ChangeRepo(t.Context(), "acme", "api", ledger.RepoChange{WebURL: &url})
		must.OK(t, err)
	}
	n := 0
	attest := func(before func()) (ledger.AttestationRecord, error) {
		t.Helper()
		n++
		envelope := must.Get(attestation.SignDSSE(key, provenanceOf(n)))(t)
		rec, _, err := fx.Attest(t.Context(), "acme", "api",
			func(p attestation.Place, keys *identity.Keyring) (*attestation.Attestation, error) {
				a, err := p.Verify(envelope, keys, fx.Now())
				before()
				before = func() {}
				return a, err
			})
		return rec, err
	}
	wantCommit := func(before func(), want string) {
		t.Helper()
		if rec, err := attest(before); err != nil || rec.Commit != want {
			t.Errorf("got %s, %v; want %s", rec.Commit, err, want)
		}
	}
	nothing := func() {}

	_, err := attest(nothing)
	storetest.WantCode(t, err, ledger.CodeSeveralCommits)
	at("https://git.example/acme/api")
	wantCommit(nothing, sha(1))
	wantCommit(nothing, sha(1))
	wantCommit(func() { at("https://git.example/acme/lib") }, sha(2))
	wantCommit(nothing, sha(2))
	at("")
	_, err = attest(nothing)
	storetest.WantCode(t, err, ledger.CodeSeveralCommits)
}

// provenanceOf returns provenance of an image from two repositories. The number makes it unique.
func provenanceOf(n int) []byte {
	return []byte(strings.NewReplacer("ONE", sha(1), "TWO", sha(2), "{n}", string(rune('a'+n))).Replace(`{
"_type":"https://in-toto.io/Statement/v1","predicateType":"https://slsa.dev/provenance/v1",
"subject":[{"name":"image-{n}","digest":{"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}}],
"predicate":{"buildDefinition":{"buildType":"https://example.com/x","externalParameters":{},"resolvedDependencies":[
{"uri":"git+https://git.example/acme/api","digest":{"gitCommit":"ONE"}},
{"uri":"git+https://git.example/acme/lib","digest":{"gitCommit":"TWO"}}]}}}`))
}

// What an earlier release recorded about the commit of a pipeline stays recorded there. By the rules of this release it
// states no outcome, and links nothing.
func (s suite) TestProvenanceOfAPipelineStopsCounting(t *testing.T) {
	fx := s.newFixture(t)
	ci := fx.NewSigner("cn=ci,ou=build,o=acme")
	const image = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	provenance := func(buildType string) []byte {
		return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://slsa.dev/provenance/v1",
"subject":[{"name":"image","digest":{"sha256":"%s"}}],"predicate":{"buildDefinition":{"buildType":"%s",
"externalParameters":{},"resolvedDependencies":[{"name":"pipeline","uri":"git+https://git.example/acme/pipelines",
"digest":{"sha1":"%s"}}]}}}`, image, buildType, sha(1))
	}
	a, version := ci.Verify(provenance("https://example.com/x"))
	a.Payload = provenance("https://tekton.dev/chains/v2/slsa") // as the earlier release read it
	a.PayloadDigest = sha256.Sum256(a.Payload)
	a.Envelope = must.Get(attestation.SignDSSE(ci.Key, a.Payload))(t)
	before, _, err := fx.Record(t.Context(), "acme", "api", a, version)
	must.OK(t, err)
	if before.Result.Status != ledger.Pass || len(fx.linked(image)) != 1 {
		t.Fatalf("it was recorded as %+v, with the commits %v", before, fx.linked(image))
	}

	fx.CloseAll()
	fx.Database.Exec(t, "UPDATE attestations SET mapping_version = 3; UPDATE repos SET mapping_version = 3")
	fx.Open(store.Options{})
	var list []store.Rereading
	must.OK(t, fx.PreviewMapping(t.Context(), func(r store.Rereading) { list = append(list, r) }))
	if len(list) != 1 || list[0].ID != before.ID || list[0].After != attestation.Unread(before.PredicateType) {
		t.Errorf("the preview is %+v", list)
	}

	must.OK(t, fx.Settle(t.Context()))
	after, err := fx.Attestation(t.Context(), "acme", "api", before.ID)
	must.OK(t, err)
	if after.Commit != sha(1) || after.Predicate != before.PredicateType || after.Result.Status != ledger.Recorded {
		t.Errorf("it is %+v", after)
	}
	if commits := fx.linked(image); len(commits) > 0 {
		t.Errorf("the image is linked with %v", commits)
	}
	glance, err := fx.Glance(t.Context(), "", 10)
	must.OK(t, err)
	want := store.UnreadType{Org: "acme", Type: before.PredicateType, Attestations: 1}
	if len(glance.Unread) != 1 || glance.Unread[0] != want {
		t.Errorf("a glance shows %+v, want %+v", glance.Unread, want)
	}
}

// linked returns the commits that are linked with a SHA-256 digest.
func (fx *fixture) linked(digest string) (commits []string) {
	fx.T.Helper()
	list, err := fx.Artifacts(fx.T.Context(), "acme", ledger.ArtifactQuery{Digests: []string{"sha256:" + digest}})
	must.OK(fx.T, err)
	for _, l := range list[0].Links {
		commits = append(commits, l.Commit)
	}
	return commits
}
