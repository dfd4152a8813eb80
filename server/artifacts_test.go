package server

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

const artifactsPath = "/v1/orgs/acme/artifacts"

// image returns the digest of the n-th image of the tests.
func image(n int) string { return fmt.Sprintf("sha256:%064x", 0xface0000+n) }

// builds records provenance: the images are subjects, and commit n is in the dependencies.
func (b *backend) builds(s *signer, n int, images ...string) ledger.AttestationRecord {
	b.t.Helper()
	var subjects []string
	for _, digest := range images {
		algorithm, digits, _ := strings.Cut(digest, ":")
		subjects = append(subjects, fmt.Sprintf(`{"name":"img","digest":{%q:%q}}`, algorithm, digits))
	}
	predicate := fmt.Sprintf(`{"buildDefinition":{"resolvedDependencies":[{"uri":"git+https://git.example/acme/api",
		"digest":{"gitCommit":%q}}]},"runDetails":{"builder":{"id":"https://ci.example/runner"}}}`, commitID(n))
	payload := statement(strings.Join(subjects, ","), "https://slsa.dev/provenance/v1", predicate)
	return decode[ledger.AttestationRecord](b.attest(s.sign(b.t, payload)).want(201))
}

func (b *backend) artifact(digest string) ledger.Artifact {
	b.t.Helper()
	return decode[ledger.Artifact](b.get(artifactsPath + "/" + digest).want(200))
}

// wantArtifact checks the state of an artifact, or the reason why it has none, and its
// links: the number of the commit, its state, and why it does not count.
func (b *backend) wantArtifact(digest, state string, links ...string) {
	b.t.Helper()
	a := b.artifact(digest)
	var got []string

	for _, l := range a.Links {
		line := l.Repo + " " + strings.TrimLeft(strings.TrimPrefix(l.Commit, commitID(0)[:36]), "0") + " " + l.State.String()
		if l.Counts != (l.Reason == "") {
			b.t.Errorf("link %+v counts: %t", l, l.Counts)
		}
		if !l.Counts {
			line += ": " + l.Reason
		}
		got = append(got, line)
	}

	gotState := a.Reason
	if a.State != nil {
		gotState += a.State.String()
	}
	if gotState != state || strings.Join(got, "\n") != strings.Join(links, "\n") {
		b.t.Errorf("artifact %s is %q with\n\t%s\nwant %q with\n\t%s", digest, gotState, strings.Join(got, "\n\t"), state,
			strings.Join(links, "\n\t"))
	}
}

const buildAndReview = `{"requirements":[{"state":"ATTESTED","predicate":"build:*"},
	{"state":"PROMOTABLE","predicate":"review:*"}]`

// An artifact has the least state of the commits that statements link with it.
func TestArtifacts(t *testing.T) {
	b := newBackend(t)
	b.setContract(buildAndReview + `}`)
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.get(artifactsPath+"/"+image(1)).wantProblem(404, ledger.CodeNotFound)

	first := b.builds(ci, 1, image(1), image(2))
	b.wantArtifact(image(1), "ATTESTED", "api 1 ATTESTED")
	b.attest(ci.statement(t, commitID(1), "review:code", ledger.Pass, 1)).want(201)
	b.wantArtifact(image(1), "PROMOTABLE", "api 1 PROMOTABLE")
	if l := b.artifact(image(2)).Links[0]; l.Attestation != first.ID || l.Predicate != "build:ci.example/runner" ||
		l.PredicateType != "https://slsa.dev/provenance/v1" || l.Identity != ci.dn || l.RecordedAt != first.RecordedAt {
		t.Errorf("link %+v of %+v", l, first)
	}

	// The same image of another commit; a second statement changes no link.
	b.builds(ci, 2, image(1))
	b.attest(ci.sign(t, statement(about(1)+fmt.Sprintf(`,{"digest":{"sha256":%q}}`, strings.ToUpper(image(2)[7:])),
		attestation.ResultPredicateType, own("test:image", ledger.Pass, "")))).want(201)
	b.wantArtifact(image(1), "ATTESTED", "api 2 ATTESTED", "api 1 PROMOTABLE")
	if l := b.artifact("sha256:" + strings.ToUpper(image(2)[7:])).Links; len(l) != 1 || l[0].Attestation != first.ID {
		t.Errorf("links %+v, want only that of %s", l, first.ID)
	}

	b.host("POST", "/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	b.get(artifactsPath+"/"+image(1)+"?repo=web").wantProblem(404, ledger.CodeNotFound)
	b.get(artifactsPath + "/" + image(1) + "?repo=api").want(200)
	b.get(artifactsPath+"/"+image(1)+"?repo=nothing").wantProblem(404, ledger.CodeNotFound)
}

// A digest that is no digest is refused with its field, and several are answered at once.
func TestArtifactQueries(t *testing.T) {
	b := newBackend(t)
	b.setContract(buildAndReview + `}`)
	b.builds(b.signer("cn=ci,ou=build,o=acme"), 1, image(1))

	for _, digest := range []string{"sha256:12", "md5:" + image(1)[7:39], "latest", image(1) + "0", "sha256:" +
		strings.Repeat("g", 64), "sha512:" + image(1)[7:]} {
		b.get(artifactsPath+"/"+digest).wantFields(422, ledger.CodeInvalidField, "digest")
		b.post(artifactsPath, fmt.Sprintf(`{"digests":[%q,%q]}`, image(1), digest)).
			wantFields(422, ledger.CodeInvalidField, "digests[1]")
	}
	b.post(artifactsPath, `{"digests":[]}`).wantFields(422, ledger.CodeInvalidField, "digests")
	many := func(n int) string { return `{"digests":["` + strings.Repeat(image(1)+`","`, n-1) + image(2) + `"]}` }
	b.post(artifactsPath, many(101)).wantFields(422, ledger.CodeInvalidField, "digests")

	list := decode[ledger.ArtifactList](
		b.send(request{method: "POST", path: artifactsPath, token: b.reader, body: many(100)}).want(200)).Data
	if len(list) != 100 || len(list[98].Links) != 1 || list[98].Digest != image(1) || *list[98].State != ledger.Attested {
		t.Errorf("got %d artifacts, %+v", len(list), list[98])
	}
	if last := list[99]; last.Digest != image(2) || last.Links == nil || len(last.Links) != 0 || last.State != nil {
		t.Errorf("got %+v for an image that nothing names", last)
	}
	b.post(artifactsPath, fmt.Sprintf(`{"digests":[%q],"repo":"nothing"}`, image(1))).
		wantProblem(404, ledger.CodeNotFound)
}

// A statement that names too many artifacts is recorded, and the response says how many are
// not linked.
func TestManyArtifacts(t *testing.T) {
	b := newBackend(t)
	images := make([]string, 1030)
	for i := range images {
		images[i] = image(i)
	}
	if rec := b.builds(b.signer("cn=ci,ou=build,o=acme"), 1, images...); rec.Unlinked != 6 {
		t.Errorf("%d artifacts are not linked, want 6", rec.Unlinked)
	}
	b.get(artifactsPath + "/" + image(1023)).want(200)
	b.get(artifactsPath+"/"+image(1024)).wantProblem(404, ledger.CodeNotFound)
}

// The contract says whose links count, now: by default, those of identities that may attest
// build:*.
func TestWhoLinksArtifacts(t *testing.T) {
	b := newBackend(t)
	b.setContract(buildAndReview + `}`)
	const notBuilder = "the signer may not attest build:*, and the policy has no artifacts.signers"
	reviewer := b.limited("cn=rita,ou=dev,o=acme", "review:*", "test:*")
	names := func(s *signer, n int, digest string) {
		b.attest(s.sign(t, statement(about(n)+fmt.Sprintf(`,{"digest":{"sha256":%q}}`, digest[7:]),
			attestation.ResultPredicateType, own("test:image", ledger.Pass, "")))).want(201)
	}
	names(reviewer, 1, image(1))
	b.wantArtifact(image(1), "no link counts: "+notBuilder, "api 1 VALIDATING: "+notBuilder)

	// One builder is enough, whatever it may attest of build:*.
	builder := b.limited("cn=one,ou=build,o=acme", "build:docker", "test:*")
	names(builder, 1, image(1))
	b.wantArtifact(image(1), "VALIDATING", "api 1 VALIDATING")

	const notListed = "the signer is not in the policy's artifacts.signers"
	b.setContract(buildAndReview + `,"artifacts":{"signers":["ou=dev"]}}`)
	b.wantArtifact(image(1), "VALIDATING", "api 1 VALIDATING")
	if l := b.artifact(image(1)).Links[0]; l.Identity != reviewer.dn {
		t.Errorf("the link is by %s, want %s", l.Identity, reviewer.dn)
	}
	names(builder, 2, image(1))
	b.wantArtifact(image(1), "VALIDATING", "api 2 VALIDATING: "+notListed, "api 1 VALIDATING")

	// What an identity may attest is asked when somebody asks for the artifact.
	b.setContract(buildAndReview + `}`)
	b.patch(identityPath(builder.id), `{"may":["review:*"]}`).want(200)
	b.wantArtifact(image(1), "no link counts: "+notBuilder,
		"api 2 VALIDATING: "+notBuilder, "api 1 VALIDATING: "+notBuilder)
}

// An artifact of commits whose policy has changed, or whose evidence has expired, has their
// state by now, also if nothing has derived it yet.
func TestArtifactsOfDueCommits(t *testing.T) {
	b := newBackend(t)
	b.setContract(`{"requirements":[{"state":"ATTESTED","predicate":"build:*","max_age":"1h"}]}`)
	b.builds(b.signer("cn=ci,ou=build,o=acme"), 1, image(1))
	b.wantArtifact(image(1), "PROMOTABLE", "api 1 PROMOTABLE")
	b.clock.advance(time.Hour)
	b.wantArtifact(image(1), "VALIDATING", "api 1 VALIDATING")

	b.builds(b.signer("cn=ci2,ou=build,o=acme"), 1, image(1))
	b.wantArtifact(image(1), "PROMOTABLE", "api 1 PROMOTABLE")
	b.send(request{method: "PUT", path: "/v1/orgs/acme/policies/api", token: b.admin, body: buildAndReview + `}`,
		header: map[string]string{"If-Match": "*"}}).want(200)
	b.wantArtifact(image(1), "ATTESTED", "api 1 ATTESTED")
}

// An artifact of a commit that inherits evidence has the state that the commit has by now: the
// first question after a failure on the commit with the same tree already says so.
func TestArtifactsOfCommitsThatInherit(t *testing.T) {
	b := newBackend(t)
	b.setContract(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","carry":["tree"]}]}`)
	ci := b.signer("cn=ci,ou=build,o=acme")
	branch := rawCommitOf("Ada <ada@acme.example>", "Ada <ada@acme.example>", "On the branch")
	squashed := rawCommitOf("Ada <ada@acme.example>", "Bob <bob@acme.example>", "Squashed")
	for _, c := range []rawCommit{branch, squashed} {
		b.register(c.sha, c.body("")).want(201)
	}
	b.passes(ci, branch.sha, "test:go")
	named := fmt.Sprintf(`{"digest":{"gitCommit":%q}},{"digest":{"sha256":%q}}`, squashed.sha, image(1)[7:])
	b.attest(ci.sign(t, statement(named, "https://spdx.dev/Document", "{}"))).want(201)
	state := func() ledger.State { return *b.artifact(image(1)).State }
	if state() != ledger.Promotable {
		t.Fatalf("the artifact is %s, want PROMOTABLE by the evidence of the branch", state())
	}

	b.attest(ci.statement(t, branch.sha, "test:go", ledger.Fail, 2)).want(201)
	if state() != ledger.Validating {
		t.Errorf("the artifact is %s after the failure on the branch, want VALIDATING", state())
	}
	if got := b.state(squashed.sha); got != state() {
		t.Errorf("the commit is %s, the artifact %s", got, state())
	}
}

// An artifact of more claimed merges than a request derives has a state, as none of them is due.
func TestArtifactOfManyMerges(t *testing.T) {
	b := newBackend(t)
	b.setContract(`{"requirements":[{"state":"ATTESTED","predicate":"build:*","carry":["merge"],"max_age":"1h",
		"carry_signers":["cn=queue,ou=merge,o=acme"]}]}`)
	ci, queue := b.signer("cn=ci,ou=build,o=acme"), b.signer("cn=queue,ou=merge,o=acme")
	const merges = 101
	for n := range merges {
		b.builds(ci, n+1, image(1))
		b.attest(b.squash(queue, n+1, 500+n)).want(201)
	}
	a := b.artifact(image(1))
	if a.State == nil || *a.State != ledger.Promotable {
		t.Fatalf("state %v: %q; want PROMOTABLE", a.State, a.Reason)
	}

	b.clock.advance(time.Hour)
	if a = b.artifact(image(1)); a.State != nil && *a.State != ledger.Validating {
		t.Errorf("state %s after the evidence has expired, want VALIDATING, or that it is being derived", *a.State)
	}
}

// The digests in provenance by cosign and by GitHub's builders are those that deployers ask
// for.
func TestArtifactsOfOtherTools(t *testing.T) {
	b := newBackend(t)
	b.trustCosign()
	ci := b.signer("cn=ci,ou=build,o=acme")
	signed := func(file string) []byte {
		payload, err := os.ReadFile("../ledger/testdata/provenance/" + file)
		check(t, err)
		return ci.sign(t, payload)
	}
	for _, test := range []struct {
		envelope       []byte
		digest, commit string
	}{
		{cosignFile(t, "v2-p256-provenance.dsse.json"), "sha256:" + strings.Repeat("0", 63) + "7",
			"adbc8813901bba65827259daa8e22ff94ec1f30e"},
		{signed("github.json"), "sha512:90f223f992e4c88dd068cd2a5fc57f9d2b30798343dd6e38f29c240e04ba090e" +
			"f831f84490847c4e82b9232c78e8a258463b1e55c0f7469f730265008fa6633f", "26d16513386ffaa790b1c32f927544f1322e4194"},
		{signed("generator.json"), "sha256:2892146b063a94cb4a4318c0e98d38af12dcf2b1e29237486b58463b59607bbd",
			"0bf409adc654198ef6bf3c3823df82963a83068c"},
	} {
		b.attest(test.envelope).want(201)
		if a := b.artifact(test.digest); len(a.Links) != 1 || a.Links[0].Commit != test.commit || !a.Links[0].Counts {
			t.Errorf("%s: got %+v, want a link with %s", test.digest, a, test.commit)
		}
	}
}
