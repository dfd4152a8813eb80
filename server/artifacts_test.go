package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
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

// builderMay is what the builders of the tests may attest.
var builderMay = []string{"build:*", "test:*", "review:*"}

const buildAndReview = `{"requirements":[{"state":"ATTESTED","predicate":"build:*"},
	{"state":"PROMOTABLE","predicate":"review:*"}]`

// An artifact has the least state of the commits that statements link with it.
func TestArtifacts(t *testing.T) {
	b := newBackend(t)
	b.setContract(buildAndReview + `}`)
	ci := b.limited("cn=ci,ou=build,o=acme", builderMay...)
	b.get(artifactsPath+"/"+image(1)).wantProblem(404, ledger.CodeNotFound)
	b.wantGate(image(1), `{"reached":false,"required":"PROMOTABLE","state":null,"standing":null,`+
		`"reasons":["no statement links it with a commit (if it is one platform of an image index, `+
		`ask for the digest of the index, or link the platforms with 'ledgerd attest --artifact-index')"]}`)

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
	b.wantGate(image(1), `{"reached":false,"required":"PROMOTABLE","state":"ATTESTED","standing":"ATTESTED",`+
		`"reasons":["api@000000000000 is ATTESTED, standing ATTESTED"]}`)
	b.wantGate(image(2), `{"reached":true,"required":"PROMOTABLE","state":"PROMOTABLE","standing":"PROMOTABLE"}`)
	if l := b.artifact("sha256:" + strings.ToUpper(image(2)[7:])).Links; len(l) != 1 || l[0].Attestation != first.ID {
		t.Errorf("links %+v, want only that of %s", l, first.ID)
	}

	b.host("POST", "/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	b.get(artifactsPath+"/"+image(1)+"?repo=web").wantProblem(404, ledger.CodeNotFound)
	b.get(artifactsPath + "/" + image(1) + "?repo=api").want(200)
	b.get(artifactsPath+"/"+image(1)+"?repo=nothing").wantProblem(404, ledger.CodeNotFound)
}

// wantGate asks whether an artifact is PROMOTABLE.
func (b *backend) wantGate(digest, answer string) {
	b.t.Helper()
	body := b.get(artifactsPath + "/" + digest + "/gate?state=PROMOTABLE").want(200).body
	if got := strings.TrimSpace(string(body)); got != answer {
		b.t.Errorf("the gate of %s is %s\nwant %s", digest, got, answer)
	}
}

// The gate of an artifact is shut for an environment from which one of its commits was rolled back.
func TestArtifactGateOfAnEnvironment(t *testing.T) {
	b := newBackend(t)
	b.setContract(`{"requirements":[{"state":"PROMOTABLE","predicate":"build:*"},
		{"state":"DEPLOYED","predicate":"deploy:*"}]}`)
	ci := b.limited("cn=ci,ou=build,o=acme", append(builderMay, "deploy:*")...)
	b.builds(ci, 1, image(1))
	b.attest(ci.statement(t, commitID(1), "deploy:prod", ledger.Pass, 1)).want(201)
	undo, err := attestation.NewRollbackStatement(commitID(1), attestation.Rollback{Repo: "acme/api", Environment: "prod",
		Reason: "it leaks", IssuedOn: b.clock.time()})
	must.OK(t, err)
	b.attest(ci.sign(t, undo)).want(201)

	gate := artifactsPath + "/" + image(1) + "/gate?state=PROMOTABLE&env="
	shut := decode[ledger.Gate](b.get(gate + "prod").want(200))
	const reason = "api@000000000000 was rolled back from prod by cn=ci,ou=build,o=acme: it leaks"
	if shut.Reached || !slices.Equal(shut.Reasons, []string{reason}) {
		t.Errorf("the gate of prod is %+v, want it shut", shut)
	}
	for _, environment := range []string{"staging", "pro"} {
		if open := decode[ledger.Gate](b.get(gate + environment).want(200)); !open.Reached {
			t.Errorf("the gate of %q is %+v, want it open", environment, open)
		}
	}
	b.get(gate+"pr%20od").wantProblem(400, ledger.CodeInvalidParameter)

	for query, want := range map[string]bool{"?env=prod": true, "?env=staging": false, "": false} {
		a := decode[ledger.Artifact](b.get(artifactsPath + "/" + image(1) + query).want(200))
		if a.RolledBack != want || (len(a.Links[0].RolledBack) > 0) != want || a.Reached(ledger.Promotable) == want {
			t.Errorf("%s: %+v, want it rolled back: %t", query, a, want)
		}
	}
	b.post(artifactsPath, fmt.Sprintf(`{"digests":[%q],"env":"pr od"}`, image(1))).
		wantFields(422, ledger.CodeInvalidField, "env")
}

// The gate of an artifact asks what a deployment of its commits ships, if the policy says so for the environment. For
// too many commits, it has no answer.
func TestArtifactGateOfADelivery(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	b.setContract(`{"requirements":[{"state":"PROMOTABLE","predicate":"build:*"},
		{"state":"DEPLOYED","predicate":"deploy:prod","delivery":true}]}`)
	ci := b.limited("cn=ci,ou=build,o=acme", builderMay...)
	b.builds(ci, 1, image(1))
	gate := artifactsPath + "/" + image(1) + "/gate?state=PROMOTABLE"

	shut := decode[ledger.Gate](b.get(gate + "&env=prod").want(200))
	if shut.Reached || !strings.HasPrefix(strings.Join(shut.Reasons, ""), "api: it is not known what runs in prod") {
		t.Errorf("the gate of prod is %+v, want it shut, since its commit is not known", shut)
	}
	for _, query := range []string{"", "&env=staging"} {
		if open := decode[ledger.Gate](b.get(gate + query).want(200)); !open.Reached {
			t.Errorf("%q: the gate is %+v, want it open", query, open)
		}
	}
	a := decode[ledger.Artifact](b.get(artifactsPath + "/" + image(1) + "?env=prod").want(200))
	if !a.Uncovered || a.Links[0].Delivery == nil || a.Links[0].Delivery.Uncovered != 1 {
		t.Errorf("%+v, want a delivery that is not covered", a)
	}

	for n := range 20 {
		b.builds(ci, n+2, image(1))
	}
	a = decode[ledger.Artifact](b.get(artifactsPath + "/" + image(1) + "?env=prod").want(200))
	if a.State != nil || !strings.HasPrefix(a.Reason, "too many commits would be deployed") {
		t.Errorf("%+v, want no state, since it is of 21 commits", a)
	}
}

// A digest that is no digest is refused with its field, and several are answered at once.
func TestArtifactQueries(t *testing.T) {
	b := newBackend(t)
	b.setContract(buildAndReview + `}`)
	b.builds(b.limited("cn=ci,ou=build,o=acme", builderMay...), 1, image(1))

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
	if rec := b.builds(b.limited("cn=ci,ou=build,o=acme", builderMay...), 1, images...); rec.Unlinked != 6 {
		t.Errorf("%d artifacts are not linked, want 6", rec.Unlinked)
	}
	b.get(artifactsPath + "/" + image(1023)).want(200)
	b.get(artifactsPath+"/"+image(1024)).wantProblem(404, ledger.CodeNotFound)
}

// names records a statement of ours whose subjects are commit n and an image.
func (b *backend) names(s *signer, n int, digest, predicate string) ledger.AttestationRecord {
	b.t.Helper()
	return b.reports(s, n, digest, predicate, ledger.Pass)
}

// reports is like names, with a status.
func (b *backend) reports(s *signer, n int, digest, predicate string, status ledger.Status) ledger.AttestationRecord {
	b.t.Helper()
	return decode[ledger.AttestationRecord](b.attest(s.sign(b.t, statement(
		about(n)+fmt.Sprintf(`,{"digest":{"sha256":%q}}`, digest[7:]), attestation.ResultPredicateType,
		own(predicate, status, "")))).want(201))
}

// storeEarlier stores a contract as releases before the member rules did.
func (b *backend) storeEarlier(document string) {
	b.t.Helper()
	contract, err := policy.ParseStored([]byte(document))
	must.OK(b.t, err)
	_, err = b.store.SetPolicy(b.t.Context(), "acme", "api", contract, 0, "host")
	must.OK(b.t, err)
	must.OK(b.t, b.store.Settle(b.t.Context()))
}

const (
	notBuild   = "only statements for build: predicates link artifacts (name the signer in the policy's artifacts.signers)"
	notBuilder = "no build: pattern of the signer's identity matches it (name the signer in the policy's " +
		"artifacts.signers, or give its identity --may build:…)"
	notListed = "the signer is not in the policy's artifacts.signers"
)

// The key of a test may not sign provenance at all.
func TestOnlyBuildersSignProvenance(t *testing.T) {
	b := newBackend(t)
	ci := b.limited("cn=tests,ou=build,o=acme", "test:*")
	payload := statement(fmt.Sprintf(`{"name":"img","digest":{"sha256":%q}}`, image(1)[7:]),
		"https://slsa.dev/provenance/v1",
		fmt.Sprintf(`{"buildDefinition":{"resolvedDependencies":[{"uri":"git+https://git.example/acme/api",
			"digest":{"gitCommit":%q}}]},"runDetails":{"builder":{"id":"https://ci.example/runner"}}}`, commitID(1)))
	b.attest(ci.sign(t, payload)).wantProblem(422, ledger.CodePredicateNotAllowed)
	b.get(artifactsPath+"/"+image(1)).wantProblem(404, ledger.CodeNotFound)
}

// A contract that an earlier release stored keeps its rules until it is put back, which adds the
// present ones. Its event says which they are.
func TestStoredContractsKeepTheirRules(t *testing.T) {
	b := newBackend(t)
	b.storeEarlier(buildAndReview + `,"targets":"all"}`)
	b.builds(b.signer("cn=eve,ou=dev,o=acme"), 1, image(1))
	b.wantArtifact(image(1), "ATTESTED", "api 1 ATTESTED")
	if a := b.artifact(image(1)); !slices.Contains(a.Warnings, ledger.AnyLinker) ||
		a.Links[0].Warning != ledger.AnyLinker {
		t.Errorf("by the earlier rules, the artifact is %+v without a warning", a)
	}

	const path = "/v1/orgs/acme/policies/api"
	stored := b.get(path).want(200)
	if strings.Contains(string(stored.body), `"rules"`) {
		t.Errorf("a contract of an earlier release is %s", stored.body)
	}
	b.send(request{method: "PUT", path: path, token: b.admin, body: string(stored.body),
		header: map[string]string{"If-Match": stored.header.Get("ETag")}}).want(200)
	b.wantArtifact(image(1), "no link counts: "+notBuilder, "api 1 ATTESTED: "+notBuilder)
	if p := decode[policy.Policy](b.get(path).want(200)); p.Rules != policy.Rules {
		t.Errorf("the contract that was put back has the rules %d", p.Rules)
	}

	var rules []int
	for _, e := range decode[ledger.Page[ledger.PolicyEvent]](b.get("/v1/orgs/acme/events?types=policy").want(200)).Data {
		rules = append(rules, e.Rules)
	}
	if got := fmt.Sprint(rules); got != "[0 4]" {
		t.Errorf("the events have the rules %s, want [0 4]", got)
	}
}

// A test by a builder does not hide the builder's later build of the same image, nor one by another
// signer.
func TestBuildsAfterOtherStatementsLink(t *testing.T) {
	b := newBackend(t)
	b.setContract(buildAndReview + `}`)
	ci := b.limited("cn=ci,ou=build,o=acme", builderMay...)
	b.names(ci, 1, image(1), "test:image")
	b.wantArtifact(image(1), "no link counts: "+notBuild, "api 1 VALIDATING: "+notBuild)
	built := b.builds(ci, 1, image(1), image(2))
	b.wantArtifact(image(1), "ATTESTED", "api 1 ATTESTED")
	if l := b.artifact(image(1)).Links[0]; l.Attestation != built.ID {
		t.Errorf("the link is by %+v, want %s", l, built.ID)
	}

	for status, state := range map[ledger.Status]string{
		ledger.Fail: "VALIDATING", ledger.Errored: "VALIDATING", ledger.Skip: "ATTESTED",
	} {
		b.reports(ci, 1, image(4), "build:x", status)
		b.wantArtifact(image(4), "no link counts: the build did not pass", "api 1 "+state+": the build did not pass")
	}
	b.reports(ci, 1, image(4), "build:x", ledger.Warn)
	b.wantArtifact(image(4), "ATTESTED", "api 1 ATTESTED")

	b.names(b.signer("cn=eve,ou=dev,o=acme"), 2, image(3), "build:x")
	b.names(ci, 2, image(3), "build:x")
	b.storeEarlier(buildAndReview + `,"targets":"all"}`)
	if a := b.artifact(image(3)); len(a.Warnings) > 0 || a.Links[0].Identity != ci.dn {
		t.Errorf("a link of the builder is hidden by that of any linker: %+v", a)
	}
}

// The contract says whose links count, now.
func TestWhoLinksArtifacts(t *testing.T) {
	b := newBackend(t)
	b.setContract(buildAndReview + `,"artifacts":{"signers":["ou=dev"]}}`)
	reviewer := b.limited("cn=rita,ou=dev,o=acme", "review:*", "test:*")
	b.names(reviewer, 1, image(1), "test:image")
	b.wantArtifact(image(1), "VALIDATING", "api 1 VALIDATING")
	builder := b.limited("cn=one,ou=build,o=acme", "build:docker", "test:*")
	b.names(builder, 1, image(1), "build:docker")
	if l := b.artifact(image(1)).Links[0]; l.Identity != reviewer.dn {
		t.Errorf("the link is by %s, want %s", l.Identity, reviewer.dn)
	}
	b.names(builder, 2, image(1), "build:docker")
	b.wantArtifact(image(1), "ATTESTED", "api 2 ATTESTED: "+notListed, "api 1 ATTESTED")

	// Without names, it is those whom their list makes builders, whatever they may build.
	b.setContract(buildAndReview + `}`)
	b.wantArtifact(image(1), "ATTESTED", "api 2 ATTESTED", "api 1 ATTESTED")

	// What an identity may attest is asked when somebody asks for the artifact.
	b.patch(identityPath(builder.id), `{"may":["review:*"]}`).want(200)
	b.wantArtifact(image(1), "no link counts: "+notBuilder, "api 2 ATTESTED: "+notBuilder, "api 1 ATTESTED: "+notBuild)
}

// An artifact may be built from more commits than one page lists, all of them deployed. The one whose
// evidence has lapsed decides.
func TestArtifactOfManyDeployedCommits(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	b.setContract(`{"requirements":[
		{"state":"ATTESTED","predicate":"build:*"},
		{"state":"DEPLOYED","predicate":"deploy:*"}]}`)
	ci, cd := b.limited("cn=ci,ou=build,o=acme", builderMay...), b.limited("cn=cd,ou=build,o=acme", "deploy:*", "build:*")
	for n := range 120 {
		b.builds(ci, n+1, image(1))
		b.attest(cd.statement(t, commitID(n+1), "deploy:prod", ledger.Pass, 1)).want(201)
	}
	b.wantGate(image(1), `{"reached":true,"required":"PROMOTABLE","state":"DEPLOYED","standing":"PROMOTABLE"}`)
	b.attest(cd.statement(t, commitID(7), "build:again", ledger.Fail, 1)).want(201)
	b.wantGate(image(1), `{"reached":false,"required":"PROMOTABLE","state":"DEPLOYED","standing":"VALIDATING",`+
		`"reasons":["api@000000000000 is DEPLOYED, standing VALIDATING"]}`)
}

// An artifact of commits whose policy has changed, or whose evidence has expired, has their
// state by now, also if nothing has derived it yet.
func TestArtifactsOfDueCommits(t *testing.T) {
	b := newBackend(t)
	b.setContract(`{"requirements":[{"state":"ATTESTED","predicate":"build:*","max_age":"1h"}]}`)
	b.builds(b.limited("cn=ci,ou=build,o=acme", builderMay...), 1, image(1))
	b.wantArtifact(image(1), "PROMOTABLE", "api 1 PROMOTABLE")
	b.clock.advance(time.Hour)
	b.wantArtifact(image(1), "VALIDATING", "api 1 VALIDATING")

	b.builds(b.limited("cn=ci2,ou=build,o=acme", builderMay...), 1, image(1))
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
	ci := b.limited("cn=ci,ou=build,o=acme", builderMay...)
	branch := rawCommitOf("Ada <ada@acme.example>", "Ada <ada@acme.example>", "On the branch")
	squashed := rawCommitOf("Ada <ada@acme.example>", "Bob <bob@acme.example>", "Squashed")
	for _, c := range []rawCommit{branch, squashed} {
		b.register(c.sha, c.body("")).want(201)
	}
	b.passes(ci, branch.sha, "test:go")
	named := fmt.Sprintf(`{"digest":{"gitCommit":%q}},{"digest":{"sha256":%q}}`, squashed.sha, image(1)[7:])
	b.attest(ci.sign(t, statement(named, attestation.ResultPredicateType, own("build:image", ledger.Pass, "")))).want(201)
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
	ci, queue := b.limited("cn=ci,ou=build,o=acme", builderMay...), b.limited("cn=queue,ou=merge,o=acme", "merge:*")
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
	key, _ := b.trustCosign()
	b.patch(identityPath(key.ID), `{"may":["build:*"]}`).want(200)
	ci := b.limited("cn=ci,ou=build,o=acme", builderMay...)
	signed := func(file string) []byte {
		payload := must.Read(t, "../ledger/testdata/provenance/"+file)
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
