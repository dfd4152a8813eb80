package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// setPolicy sets the contract of acme/api, as JSON without its braces.
func (b *backend) setPolicy(members string) {
	b.t.Helper()
	etag := b.get(policyPath).want(200).header.Get("ETag")
	b.putPolicy(etag, "{"+members+"}").want(200)
}

// register registers a commit with the write token.
func (b *backend) register(sha, body string) response {
	b.t.Helper()
	return b.send(request{method: "PUT", path: commitPath(sha), token: b.writer, body: body})
}

func (b *backend) commit(sha string) ledger.Commit {
	b.t.Helper()
	return decode[ledger.Commit](b.get(commitPath(sha)).want(200))
}

// passes records a pass.
func (b *backend) passes(s *signer, sha, predicate string) {
	b.t.Helper()
	b.attest(s.statement(b.t, sha, predicate, ledger.Pass, 0)).want(201)
}

// expect checks the state of a commit, and that a requirement's reason contains why.
func (b *backend) expect(what, sha string, want ledger.State, why string) {
	b.t.Helper()
	c := b.commit(sha)
	if c.State != want {
		b.t.Errorf("%s: %s, want %s: %+v", what, c.State, want, c.Requirements)
	}
	if text := fmt.Sprint(c.Requirements); !strings.Contains(text, why) {
		b.t.Errorf("%s: requirements %s, want %q", what, text, why)
	}
}

// expectLater is expect once the store has evaluated commits in the background.
func (b *backend) expectLater(what, sha string, want ledger.State, why string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	var done sync.WaitGroup
	done.Go(func() { b.store.Work(ctx) })
	for deadline := time.Now().Add(time.Minute); b.state(sha) != want && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	done.Wait()
	b.expect(what, sha, want, why)
}

// A write token cannot talk a requirement away by claiming another target.
func TestTargetsOnlyAccumulate(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=dev,o=acme")
	b.setPolicy(`"requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"PROMOTABLE","predicate":"review:*","branches":["main"]},
		{"state":"PROMOTABLE","predicate":"scan:*","branches":["release/*"]}]`)

	sha := commitID(1)
	b.register(sha, `{"target":"release/1"}`).want(201)
	b.passes(ci, sha, "test:go")
	b.expect("the default branch counts", sha, ledger.Attested, "review:*: 0 of 1")
	b.register(sha, `{"target":"elsewhere"}`).want(200)
	b.expect("another target", sha, ledger.Attested, "scan:*: 0 of 1")
	b.passes(ci, sha, "review:code")
	b.expect("a target away", sha, ledger.Attested, "scan:*: 0 of 1")

	c := b.commit(sha)
	if got := fmt.Sprint(c.Targets, " ", c.Target); got != "[release/1 elsewhere] elsewhere" {
		t.Errorf("targets and target: %s", got)
	}
	b.passes(ci, sha, "scan:all")
	b.expect("all", sha, ledger.Promotable, "")

	// A contract for flows that release from branches alone.
	b.setPolicy(`"targets":"claimed","requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"PROMOTABLE","predicate":"missing","branches":["main"]}]`)
	b.expectLater("claimed targets alone", sha, ledger.Promotable, "does not apply")
	b.register(sha, `{"target":"main"}`).want(200)
	b.expect("main is claimed", sha, ledger.Attested, "missing: 0 of 1")
}

// By the rules of earlier releases, the first change record of a registration narrows from all paths; later ones only
// add.
func TestChangesOnlyAccumulate(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=dev,o=acme")
	b.storeEarlier(`{"rules":3,"targets":"all","requirements":[{"state":"ATTESTED","predicate":"test:pay",
		"paths":["pay/**"]},{"state":"ATTESTED","predicate":"test:web","paths":["web/**"]}]}`)
	sha := commitID(1)
	b.register(sha, `{}`).want(201)
	b.passes(ci, sha, "hello")
	b.expect("all paths", sha, ledger.Validating, "test:web: 0 of 1")

	b.register(sha, `{"changes":[{"path":"web/new","old_path":"pay/old","status":"R"}]}`).want(200)
	b.passes(ci, sha, "test:web")
	b.expect("the old path of a rename", sha, ledger.Validating, "test:pay: 0 of 1")
	b.register(sha, `{"changes":[{"path":"docs/a","status":"M"}]}`).want(200)
	b.expect("a second, smaller record", sha, ledger.Validating, "test:pay: 0 of 1")
	c := b.commit(sha)
	got := fmt.Sprint(c.Paths)
	if got != "[web/new pay/old docs/a]" || len(c.Changes) != 1 || c.Changes[0].Path != "docs/a" {
		t.Errorf("paths %s, changes %+v", got, c.Changes)
	}
	b.register(sha, `{"changes":[]}`).want(200)
	b.expect("an empty record", sha, ledger.Validating, "test:pay: 0 of 1")

	// A record with all paths ever claimed says all.
	b.register(sha, `{"changes":[{"path":"docs/a","status":"M"},{"path":"web/new","status":"A"},
		{"path":"pay/old","status":"D"}]}`).want(200)
	if c := b.commit(sha); c.Paths != nil {
		t.Errorf("paths %q, want those of the changes", c.Paths)
	}
	b.passes(ci, sha, "test:pay")
	b.expect("both", sha, ledger.Promotable, "")
}

// With more paths than are matched, requirements apply, and no more are stored.
func TestChangesAreBounded(t *testing.T) {
	b := newBackend(t)
	b.storeEarlier(`{"rules":3,"targets":"all","requirements":[{"state":"ATTESTED","predicate":"test:pay",
		"paths":["pay/**"]}]}`)
	sha := commitID(1)
	record := func(from, n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"path":"p%d","status":"M"}`, from+i))
		}
		return `{"changes":[` + strings.Join(list, ",") + `]}`
	}
	b.register(sha, record(0, 1500)).want(201)
	b.register(sha, record(1500, 500)).want(200)
	if c := b.commit(sha); len(c.Paths) != 2000 || c.Requirements[0].Applies {
		t.Errorf("%d paths, requirement applies: %v", len(c.Paths), c.Requirements[0].Applies)
	}
	b.register(sha, record(2000, 1000)).want(200)
	if c := b.commit(sha); len(c.Paths) != 2001 || !c.Requirements[0].Applies || len(c.Changes) != 1000 {
		t.Errorf("%d paths, %d changes, requirement applies: %v", len(c.Paths), len(c.Changes), c.Requirements[0].Applies)
	}
}

const excludeAuthor = `"requirements":[{"state":"ATTESTED","predicate":"test:*"},
	{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true}]`

// What a registration has claimed stays claimed.
func TestWritersOnlyAccumulate(t *testing.T) {
	b := newBackend(t)
	b.setPolicy(excludeAuthor)
	ann, sha := b.signer("cn=Ann,ou=dev,o=acme"), commitID(1)
	key := newSigner(t, "")
	fingerprint, err := identity.Fingerprint(key.key.Public())
	must.OK(t, err)

	b.register(sha, `{"author":{"name":"Eve"},"message":"A\n\nCo-authored-by: Ann <a@b>","committer":{"name":"Bob"},
		"signing_key":"`+fingerprint+`"}`).want(201)
	b.passes(ann, sha, "test:go")
	b.passes(ann, sha, "review:code")
	b.register(sha, `{"author":{"name":"Eve"},"message":"A","committer":{"name":"Eve"}}`).want(200)
	b.expect("without the co-author", sha, ledger.Attested, "by the commit's author")

	c := b.commit(sha)
	if got := fmt.Sprint(c.Writers); got != "[{Bob } {Ann a@b}]" || fmt.Sprint(c.SigningKeys) != "["+fingerprint+"]" {
		t.Errorf("writers %s, signing keys %s", got, c.SigningKeys)
	}
	b.register(sha, `{"author":{"name":"Ann"}}`).wantFields(422, ledger.CodeInvalidField, "author")

	var trailers strings.Builder
	for i := range 101 {
		fmt.Fprintf(&trailers, `\nCo-authored-by: P%d <p%d@x>`, i, i)
	}
	b.register(sha, `{"message":"A\n`+trailers.String()+`"}`).wantFields(422, ledger.CodeInvalidField, "message")
	b.register(sha, `{"signing_key":"abc"}`).wantFields(422, ledger.CodeInvalidField, "signing_key")
}

// A second identity of the same person does not help: neither one that is known when the
// commit is registered, nor one that becomes known later.
func TestOtherIdentitiesOfAnAuthorAreExcluded(t *testing.T) {
	b := newBackend(t)
	b.setPolicy(excludeAuthor)
	ann := newSigner(t, "cn=Ann,ou=dev,o=acme")
	b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: ann.publicPEM(t), DN: ann.dn})

	// The key moves to another name: the first identity is revoked.
	old := b.signer("cn=Ada,ou=dev,o=acme")
	b.delete("/v1/orgs/acme/identities/" + old.id).want(204)
	renamed := b.trust(identity.NewIdentity{
		Kind: identity.KeyIdentity, PEM: old.publicPEM(t), DN: "cn=reviewer,ou=dev,o=acme", Email: "r@acme.example",
	})
	if renamed.DN == "" {
		t.Fatal("no identity")
	}
	one := commitID(1)
	b.register(one, `{"author":{"name":"ada"}}`).want(201)
	b.passes(ann, one, "test:go")
	b.passes(old, one, "review:code")
	b.expect("the person's former name", one, ledger.Attested, "by the commit's author")

	// Somebody else's review counts, until a key of theirs turns out to be the author's.
	two := commitID(2)
	b.register(two, `{"author":{"name":"Second Self"}}`).want(201)
	bob := b.signer("cn=Bob,ou=dev,o=acme")
	b.passes(ann, two, "test:go")
	b.passes(bob, two, "review:code")
	b.expect("somebody else", two, ledger.Promotable, "")
	b.delete("/v1/orgs/acme/identities/" + bob.id).want(204)
	b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: bob.publicPEM(t), DN: "cn=Second Self,ou=dev,o=acme"})
	b.expectLater("the same key under the author's name", two, ledger.Attested, "by the commit's author")
}

// A key that signed a commit may become known as a reviewer's after the review.
func TestSigningKeyBecomesKnownLater(t *testing.T) {
	b := newBackend(t)
	b.setPolicy(excludeAuthor)
	ann, bob := b.signer("cn=Ann,ou=dev,o=acme"), b.signer("cn=Bob,ou=dev,o=acme")
	ssh, sha := newSigner(t, bob.dn), commitID(1)
	fingerprint, err := identity.Fingerprint(ssh.key.Public())
	must.OK(t, err)

	b.register(sha, `{"author":{"name":"Eve"},"signing_key":"`+fingerprint+`"}`).want(201)
	b.passes(ann, sha, "test:go")
	b.passes(bob, sha, "review:code")
	b.expect("an unknown key", sha, ledger.Promotable, "")
	b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: ssh.publicPEM(t), DN: bob.dn})
	b.expectLater("the reviewer's key", sha, ledger.Attested, "by the commit's author")
}

// An admin can correct targets and changes, which is listed and logged.
func TestCorrectCommit(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=dev,o=acme")
	b.storeEarlier(`{"rules":3,"targets":"all","requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"ATTESTED","predicate":"test:pay","paths":["pay/**"]},
		{"state":"PROMOTABLE","predicate":"scan:*","branches":["release/*"]}]}`)
	sha := commitID(1)
	b.register(sha, `{"branch":"x","target":"release/1","changes":[{"path":"web/a","status":"M"}]}`).want(201)
	b.register(sha, `{"target":"main","changes":[{"path":"pay/a","status":"M"}]}`).want(200)
	b.passes(ci, sha, "test:go")
	b.expect("before", sha, ledger.Validating, "scan:*: 0 of 1")

	correction := `{"targets":["main"],"changes":[{"path":"web/a","status":"M"}]}`
	b.send(request{method: "PATCH", path: commitPath(sha), token: b.writer, body: correction}).
		wantProblem(403, ledger.CodeForbidden)
	corrected := decode[ledger.Commit](b.patch(commitPath(sha), correction).want(200))
	if corrected.State != ledger.Promotable || fmt.Sprint(corrected.Targets) != "[main]" || corrected.Changes != nil {
		t.Errorf("corrected: %s, targets %s, changes %v", corrected.State, corrected.Targets, corrected.Changes)
	}
	c := b.commit(sha)
	if c.Paths != nil || len(c.Changes) != 1 || c.Changes[0].Path != "web/a" || !c.InFlight {
		t.Errorf("paths %q, changes %+v, in flight %v", c.Paths, c.Changes, c.InFlight)
	}
	last := c.Transitions[len(c.Transitions)-1]
	if last.Cause.Type != ledger.CauseCommit || last.Cause.ID != sha {
		t.Errorf("cause %+v", last.Cause)
	}
	if len(c.Corrections) != 2 {
		t.Fatalf("corrections: %+v", c.Corrections)
	}
	changes, targets := c.Corrections[0], c.Corrections[1]
	if !strings.HasPrefix(targets.By, "admin of acme (tok_") || targets.Field != "targets" ||
		targets.Before != "release/1, main" || targets.After != "main" || targets.At != b.clock.time() {
		t.Errorf("correction of targets: %+v", targets)
	}
	if changes.Field != "changes" || changes.Before != "web/a, pay/a" || changes.After != "web/a" {
		t.Errorf("correction of changes: %+v", changes)
	}
	if log := b.log.String(); strings.Count(log, "commit corrected") != 2 || !strings.Contains(log, "admin of acme") {
		t.Errorf("log: %s", log)
	}

	// The same again corrects nothing; null forgets the change record; claims add to it.
	b.patch(commitPath(sha), correction).want(200)
	b.patch(commitPath(sha[:12]), `{"changes":null,"targets":[]}`).want(200)
	c = b.commit(sha)
	if len(c.Corrections) != 4 || c.Changes != nil || c.Targets != nil || c.Target != "main" ||
		c.State != ledger.Validating {
		t.Errorf("all paths: %s, corrections %+v, changes %v, targets %v", c.State, c.Corrections, c.Changes, c.Targets)
	}
	if got := c.Corrections[0].After; got != "all paths" {
		t.Errorf("after %q, want all paths", got)
	}
	b.register(sha, `{"target":"release/2","changes":[{"path":"web/a","status":"M"}]}`).want(200)
	b.expect("the first record after the correction", sha, ledger.Attested, "scan:*: 0 of 1")
	b.patch(commitPath(sha), `{"changes":[]}`).want(200)
	if c := b.commit(sha); c.Changes == nil || len(c.Changes) != 0 {
		t.Errorf("changes %v, want an empty record", c.Changes)
	}
}

// A correction to the newest change record still forgets the paths of earlier ones.
func TestCorrectToNewestChanges(t *testing.T) {
	b := newBackend(t)
	sha := commitID(1)
	b.register(sha, `{"changes":[{"path":"a","status":"M"}]}`).want(201)
	b.register(sha, `{"changes":[{"path":"b","status":"M"}]}`).want(200)
	b.patch(commitPath(sha), `{"changes":[{"path":"b","status":"M"}]}`).want(200)
	if c := b.commit(sha); c.Paths != nil || len(c.Corrections) != 1 {
		t.Errorf("paths %q, corrections %+v", c.Paths, c.Corrections)
	}
}

func TestInvalidCorrections(t *testing.T) {
	b := newBackend(t)
	sha := commitID(1)
	b.register(sha, `{}`).want(201)
	b.patch(commitPath(sha), `{}`).wantFields(422, ledger.CodeInvalidField, "targets")
	b.patch(commitPath(sha), `{"targets":null}`).wantFields(422, ledger.CodeInvalidField, "targets")
	b.patch(commitPath(sha), `{"targets":["a","a"]}`).wantFields(422, ledger.CodeInvalidField, "targets[1]")
	b.patch(commitPath(sha), `{"targets":[""]}`).wantFields(422, ledger.CodeInvalidField, "targets[0]")
	b.patch(commitPath(sha), `{"changes":[{"path":"../a","status":"M"}]}`).
		wantFields(422, ledger.CodeInvalidField, "changes[0].path")
	b.patch(commitPath(sha), `{"changes":[{"pat":"a"}]}`).wantFields(400, ledger.CodeUnknownField, "changes[0].pat")
	b.patch(commitPath(sha), `{"changes":"all"}`).wantFields(400, ledger.CodeInvalidJSON, "changes")
	b.patch(commitPath(sha), `{"author":{}}`).wantFields(400, ledger.CodeUnknownField, "author")
	b.patch(commitPath(commitID(9)), `{"targets":[]}`).wantProblem(404, ledger.CodeNotFound)
	b.patch(commitPath("main"), `{"targets":[]}`).wantProblem(404, ledger.CodeNotFound)
	if c := b.commit(sha); c.Corrections != nil {
		t.Errorf("corrections: %+v", c.Corrections)
	}
}

// A record shows the newest 100 corrections, each cut.
func TestCorrectionsAreBounded(t *testing.T) {
	b := newBackend(t)
	sha := commitID(1)
	b.register(sha, `{}`).want(201)
	long := strings.Repeat("b", 250)
	for i := range 101 {
		b.patch(commitPath(sha), fmt.Sprintf(`{"targets":["t%d","1%s","2%[2]s","3%[2]s","4%[2]s"]}`, i, long)).want(200)
	}
	list := b.commit(sha).Corrections
	if len(list) != ledger.MaxCorrections || !strings.HasPrefix(list[0].After, "t100, ") ||
		len(list[0].After) > ledger.MaxCorrected {
		t.Errorf("%d corrections, the newest %+v", len(list), list[0])
	}
}

// With ?target=, the record answers for one branch. The state remains that of all.
func TestCommitForTarget(t *testing.T) {
	b := newBackend(t)
	ci := b.signer("cn=ci,ou=dev,o=acme")
	b.setPolicy(`"requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"PROMOTABLE","predicate":"scan:*","branches":["release/*"]},
		{"state":"DEPLOYED","predicate":"deploy:*"}]`)
	sha := commitID(1)
	b.register(sha, `{"target":"release/1"}`).want(201)
	b.passes(ci, sha, "test:go")
	get := func(query string) ledger.Commit {
		t.Helper()
		return decode[ledger.Commit](b.get(commitPath(sha) + query).want(200))
	}

	if c := get(""); c.State != ledger.Attested || c.TargetState != nil || !c.Requirements[1].Applies {
		t.Errorf("all targets: %s, %v, %+v", c.State, c.TargetState, c.Requirements)
	}
	c := get("?target=main")
	if c.State != ledger.Attested || *c.TargetState != ledger.Promotable || c.Requirements[1].Applies {
		t.Errorf("main: %s, %s, %+v", c.State, c.TargetState, c.Requirements)
	}
	if c := get("?target=release/1"); *c.TargetState != ledger.Attested || !c.Requirements[1].Applies {
		t.Errorf("release/1: %s, %+v", c.TargetState, c.Requirements)
	}
	b.get(commitPath(sha)+"?target=-x").wantFields(400, ledger.CodeInvalidParameter, "target")

	b.passes(ci, sha, "scan:all")
	b.passes(ci, sha, "deploy:prod")
	if c := get("?target=release/2"); c.State != ledger.Deployed || *c.TargetState != ledger.Deployed {
		t.Errorf("deployed: %s, %s", c.State, c.TargetState)
	}
}
