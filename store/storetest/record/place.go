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
	attest := func(payload []byte, before func()) (ledger.AttestationRecord, error) {
		t.Helper()
		envelope := must.Get(attestation.SignDSSE(key, payload))(t)
		rec, _, err := fx.Attest(t.Context(), "acme", "api",
			func(p attestation.Place, keys *identity.Keyring) (*attestation.Attestation, error) {
				a, err := p.Verify(envelope, keys, fx.Now())
				before()
				before = func() {}
				return a, err
			})
		return rec, err
	}
	n := 0
	wantCommit := func(parameters string, before func(), want string) {
		t.Helper()
		n++
		rec, err := attest(provenanceOf(n, parameters), before)
		if want == "" {
			storetest.WantCode(t, err, ledger.CodeSeveralCommits)
		} else if err != nil || rec.Commit != want {
			t.Errorf("got %s, %v; want %s", rec.Commit, err, want)
		}
	}
	const none, ofLib = `{}`, `{"source":"git+https://git.example/acme/lib"}`
	nothing := func() {}

	wantCommit(none, nothing, "")
	wantCommit(ofLib, nothing, sha(2))
	at("https://git.example/acme/api")
	wantCommit(none, nothing, sha(1))
	wantCommit(ofLib, nothing, sha(1))
	wantCommit(none, func() { at("https://git.example/acme/lib") }, sha(2))
	wantCommit(none, nothing, sha(2))
	at("")
	wantCommit(none, nothing, "")

	// The same is true of the subjects of other statements.
	at("https://git.example/acme/api")
	subjects := strings.NewReplacer("ONE", sha(1), "TWO", sha(2)).Replace(`{
"_type":"https://in-toto.io/Statement/v1","predicateType":"https://example.com/x/v1","predicate":{},"subject":[
{"uri":"git+https://git.example/acme/api","digest":{"gitCommit":"ONE"}},
{"uri":"git+https://git.example/acme/lib","digest":{"gitCommit":"TWO"}}]}`)
	rec, err := attest([]byte(subjects), func() { at("https://git.example/acme/lib") })
	if err != nil || rec.Commit != sha(2) {
		t.Errorf("of subjects: got %s, %v; want %s", rec.Commit, err, sha(2))
	}
}

// provenanceOf returns provenance of an image from two repositories. The number makes it unique.
func provenanceOf(n int, parameters string) []byte {
	values := strings.NewReplacer("ONE", sha(1), "TWO", sha(2), "{n}", fmt.Sprint(n), "PARAMETERS", parameters)
	return []byte(values.Replace(`{
"_type":"https://in-toto.io/Statement/v1","predicateType":"https://slsa.dev/provenance/v1",
"subject":[{"name":"image-{n}","digest":{"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}}],
"predicate":{"buildDefinition":{"buildType":"https://example.com/x","externalParameters":PARAMETERS,
"resolvedDependencies":[{"uri":"git+https://git.example/acme/api","digest":{"gitCommit":"ONE"}},
{"uri":"git+https://git.example/acme/lib","digest":{"gitCommit":"TWO"}}]}}}`))
}

// A statement that an earlier release recorded for a pipeline's commit keeps that commit. By the rules of this release
// it states no outcome, and links nothing.
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
	if before.Result.Status != ledger.Pass || len(fx.links(image)) != 1 {
		t.Fatalf("it was recorded as %+v, with the links %+v", before, fx.links(image))
	}

	fx.CloseAll()
	fx.Database.Exec(t, "UPDATE attestations SET mapping_version = 3; UPDATE repos SET mapping_version = 3")
	fx.Open(store.Options{})
	var list []store.Rereading
	must.OK(t, fx.PreviewMapping(t.Context(), func(r store.Rereading) { list = append(list, r) }))
	if len(list) != 1 || list[0].ID != before.ID || list[0].After != attestation.Unread(before.PredicateType) {
		t.Errorf("the preview is %+v", list)
	}

	again, version := ci.Verify(provenance("https://example.com/x")) // links the image, too, and goes on to
	later, _, err := fx.Record(t.Context(), "acme", "api", again, version)
	must.OK(t, err)
	must.OK(t, fx.Settle(t.Context()))
	after, err := fx.Attestation(t.Context(), "acme", "api", before.ID)
	must.OK(t, err)
	if after.Commit != sha(1) || after.Predicate != before.PredicateType || after.Result.Status != ledger.Recorded {
		t.Errorf("it is %+v", after)
	}
	if links := fx.links(image); len(links) != 1 || links[0].Attestation != later.ID {
		t.Errorf("the image is linked by %+v, want %s", links, later.ID)
	}
	glance, err := fx.Glance(t.Context(), "", 10)
	must.OK(t, err)
	want := store.UnreadType{Org: "acme", Type: before.PredicateType, Attestations: 1}
	if len(glance.Unread) != 1 || glance.Unread[0] != want {
		t.Errorf("a glance shows %+v, want %+v", glance.Unread, want)
	}
}

// links returns the links of the artifact with a SHA-256 digest.
func (fx *fixture) links(digest string) []ledger.ArtifactLink {
	fx.T.Helper()
	list, err := fx.Artifacts(fx.T.Context(), "acme", ledger.ArtifactQuery{Digests: []string{"sha256:" + digest}})
	must.OK(fx.T, err)
	return list[0].Links
}
