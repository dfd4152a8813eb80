package web_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// policy sets the policy of acme/api.
func (e *env) policy(contract string) {
	e.t.Helper()
	_, etag, err := e.host.Policy(e.t.Context(), "acme", "api")
	must.OK(e.t, err)
	_, err = e.host.SetPolicy(e.t.Context(), "acme", "api", jsontext.Value(contract), etag)
	must.OK(e.t, err)
}

func commitPath(sha string) string { return apiPath + "/commits/" + sha }

func TestCommitPage(t *testing.T) {
	e := newEnv(t)
	e.policy(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","threshold":2},{"state":"ATTESTED",` +
		`"predicate":"lint:go"},` +
		`{"state":"ATTESTED","predicate":"migration:dry","branches":["db"]},{"state":"PROMOTABLE","predicate":"review:*"}]}`)
	ci, mac, alice := e.signer("cn=ci,ou=build,o=acme"), e.signer("cn=mac,ou=build,o=acme"),
		e.signer("cn=alice,ou=people,o=acme")
	sha := commitID(7)
	e.push(sha, ledger.Registration{Branch: "topic", Target: "release/2", Message: "Sessions end\n\nBecause they must.",
		Author: ledger.Author{Name: "Ada", Email: "ada@acme.example"},
		Base:   commitID(1), Parents: []string{commitID(2)}, Changes: []radar.Change{lineEdit("cmd/root.go", 10)}})
	w := e.signIn(e.reader)
	w.get(commitPath(sha)).want(200).has(
		"Registered 30 Nov 2030 09:00 UTC .", "No attestations yet", "ledgerd attest acme/api --commit "+
			sha[:12])

	e.clock.advance(90 * time.Second)
	e.attest(ci, sha, "test:go", ledger.Pass)
	e.clock.advance(time.Minute)
	second := e.attest(mac, sha, "test:e2e", ledger.Pass)
	e.attest(ci, sha, "lint:go", ledger.Fail)
	e.clock.advance(time.Hour)
	fixed := e.attest(ci, sha, "lint:go", ledger.Pass)
	e.clock.advance(time.Second)
	refused := e.attest(alice, sha, "review:code", ledger.Fail)

	p := w.get(commitPath(sha)).want(200).has(
		"Sessions end", "Ada topic → for release/2 registered 30 Nov 2030 09:00 UTC", "Because they must.",
		"ada@acme.example",
		"Moved to Attested 30 Nov 2030 10:02 UTC . Blocked by: review:* failed by alice", "1 changed path M cmd/root.go",
		"in flight", "None. No other commit in flight",
	).hasNot("No attestations yet")
	wantEqual(t, "met", p.texts("li", "class", "check met"),
		[]string{"test:* Met, 2 of 2 Signed by ci , mac", "lint:go Met, 1 of 1 Signed by ci"})
	wantEqual(t, "left out", p.texts("li", "class", "check left-out"),
		[]string{"migration:dry Not applicable the target branch is main and release/2"})
	wantEqual(t, "failed", p.texts("li", "class", "check failed"),
		[]string{"review:* Failed, 0 of 1 Failed by alice review:code failed (cn=alice,ou=people,o=acme)"})
	p.has("Deployed not reached No requirements, so no commit can reach it.")
	for _, a := range []ledger.AttestationRecord{second, fixed, refused} {
		if links := p.elements("a", "href", apiPath+"/attestations/"+a.ID); len(links) < 2 {
			t.Errorf("requirements and timeline link %s %d times, want at least 2", a.Predicate, len(links))
		}
	}
	const nine, ten = "30 Nov 2030 09:", "30 Nov 2030 10:"
	wantEqual(t, "timeline", p.moments(), []string{
		"fail review:code by alice in 1.2 s " + ten + "02 UTC",
		"Validating → to Attested after 1 h 1 min, due to an attestation " + ten + "02 UTC",
		"pass lint:go by ci in 1.2 s " + ten + "02 UTC",
		"fail lint:go by ci in 1.2 s " + nine + "02 UTC",
		"pass test:e2e by mac in 1.2 s " + nine + "02 UTC",
		"Draft → to Validating after 1 min 30 s, due to an attestation " + nine + "01 UTC",
		"pass test:go by ci in 1.2 s " + nine + "01 UTC",
		"Registered " + nine + "00 UTC",
	})
	if now := p.texts("li", "aria-current", "step"); len(now) != 1 || now[0] != "Attested (now)" {
		t.Errorf("current step: %q", now)
	}
	if got := attribute(p.elements("main")[0], "data-live-commit"); got != sha {
		t.Errorf("data-live-commit: %q", got)
	}
}

// moments returns the texts of the timeline, newest first.
func (p page) moments() []string {
	p.t.Helper()
	lists := p.elements("ol", "class", "rows timeline")
	if len(lists) != 1 {
		p.t.Fatalf("%d timelines", len(lists))
	}
	var moments []string
	for n := range lists[0].ChildNodes() {
		if n.Data == "li" {
			moments = append(moments, textOf(n))
		}
	}
	return moments
}

// An unmet requirement shows how many signers it has.
// The page shows all that was ever claimed, and what administrators have corrected.
func TestClaimsOfCommit(t *testing.T) {
	e := newEnv(t)
	sha := commitID(7)
	e.push(sha, ledger.Registration{Target: "release/2", Author: ledger.Author{Name: "Ada"},
		Message: "One\n\nCo-authored-by: <b>Bob</b> <bob@acme.example>", Changes: []radar.Change{lineEdit("a.go", 1)}})
	e.push(sha, ledger.Registration{Target: "main", Changes: []radar.Change{lineEdit("b.go", 1)}})
	w := e.signIn(e.reader)
	w.get(commitPath(sha)).want(200).has("Co-authors and committers", "Targets release/2 main",
		"Policies use all 2 paths that were ever registered.").hasNot("correction")

	_, err := e.host.Correct(t.Context(), "acme", "api", sha, ledger.CommitCorrection{
		Targets: &[]string{"main"}, Changes: new([]radar.Change),
	})
	must.OK(t, err)
	w.get(commitPath(sha)).want(200).has("2 corrections", "targets: release/2, main → to main by host",
		"changes: a.go, b.go → to all paths by host").hasNot("Policies use all")
}

func TestUnmetRequirement(t *testing.T) {
	e := newEnv(t)
	e.policy(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","threshold":2}]}`)
	e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go", ledger.Pass)
	p := e.signIn(e.reader).get(commitPath(commitID(1))).want(200)
	wantEqual(t, "missing", p.texts("li", "class", "check missing"),
		[]string{"test:* Not met, 1 of 2 Signed by ci 1 of 2 signatures (cn=ci,ou=build,o=acme)"})
}

func TestDeployedCommit(t *testing.T) {
	e := newEnv(t)
	e.deploy(e.signer("cn=ci,ou=build,o=acme"), e.signer("cn=rita,ou=review,o=acme"), commitID(1))
	e.signIn(e.reader).get(commitPath(commitID(1))).want(200).has(
		"Moved to Deployed 30 Nov 2030 09:00 UTC . All requirements are met.").hasNot("not reached")
}

// A commit that was deployed under an earlier policy shows what the current one misses.
func TestDeployedBeforePolicy(t *testing.T) {
	e := newEnv(t)
	e.deploy(e.signer("cn=ci,ou=build,o=acme"), e.signer("cn=rita,ou=review,o=acme"), commitID(1))
	e.policy(`{"requirements":[{"state":"ATTESTED","predicate":"audit:*"},
		{"state":"DEPLOYED","predicate":"deploy:prod"}]}`)
	p := e.signIn(e.reader).get(commitPath(commitID(1))).want(200)
	p.has("It would not be deployed now : its standing is Validating. Requirements that are not met now: audit:* 0 of 1").
		hasNot("All requirements are met", "Blocked by")
}

// A commit that was rolled back says from where, by whom and why.
func TestRolledBackCommit(t *testing.T) {
	e := newEnv(t)
	ci := e.signer("cn=ci,ou=build,o=acme")
	e.deploy(ci, e.signer("cn=rita,ou=review,o=acme"), commitID(1))
	e.send(ci, func() ([]byte, error) {
		return attestation.NewStatement("", commitID(1), attestation.ResultPredicate{Predicate: "deploy:prod",
			Result: ledger.Result{Status: ledger.Fail}, Rollout: ledger.RolloutFailed, FinishedOn: e.clock.time()})
	})
	w := e.signIn(e.reader)
	w.get(commitPath(commitID(1))).want(200).has("Moved to Deployed", "attempt failed").hasNot("Rolled back")

	e.clock.advance(time.Minute)
	rollback := e.send(ci, func() ([]byte, error) {
		return attestation.NewRollbackStatement(commitID(1), attestation.Rollback{Repo: "acme/api", Environment: "prod",
			Reason: "it <b>leaks</b>"})
	})
	w.get(commitPath(commitID(1))).want(200).has("Rolled back from prod by ci 30 Nov 2030 09:01 UTC : it <b>leaks</b>",
		"It is not to be deployed there again.", "deploy:prod Rolled back, 0 of 1")
	w.get("/orgs/acme/repos/api/attestations/" + rollback.ID).want(200).has("Reason it <b>leaks</b>")
	w.get("/orgs/acme/repos/api").want(200).has("rolled back by ci: it <b>leaks</b>")
	w.get("/orgs/acme/insights").want(200).has("Rollbacks 1 1 failed attempt to deploy")
}

// With one key, the page says that somebody else is needed.
func TestCommitOfOneKey(t *testing.T) {
	e := newEnv(t)
	s := e.signer("cn=ci,ou=build,o=acme")
	e.push(commitID(1), ledger.Registration{Author: ledger.Author{Name: "Dora"}})
	e.attest(s, commitID(1), "test:go", ledger.Pass)
	e.attest(s, commitID(1), "review:code", ledger.Pass)
	p := e.signIn(e.reader).get(commitPath(commitID(1))).want(200).has("Moved to Attested")
	if missing := p.texts("li", "class", "check missing"); len(missing) < 1 ||
		!strings.Contains(missing[0], "1 more person is needed, who is not needed for ATTESTED") {
		t.Errorf("missing: %q", missing)
	}
}

func TestCommitOverlaps(t *testing.T) {
	e := newEnv(t)
	e.push(commitID(1), ledger.Registration{Branch: "first", Message: "First", Author: ledger.Author{Name: "Ada"},
		Changes: []radar.Change{lineEdit("cmd/root.go", 10)}})
	e.clock.advance(time.Minute)
	e.push(commitID(2), ledger.Registration{Branch: "second", Message: "Second", Author: ledger.Author{Name: "Bob"},
		Changes: []radar.Change{lineEdit("cmd/root.go", 11), lineEdit("go.mod", 3)}})
	w := e.signIn(e.reader)
	w.get(commitPath(commitID(2))).want(200).has(
		"HIGH with First "+commitID(1)[:12]+" Ada first detected 30 Nov 2030 09:01 UTC Has priority (registered first).",
		"cmd/root.go both change the same lines: 11 (this commit) · 10 (theirs)")
	w.get(commitPath(commitID(1))).want(200).has("HIGH with Second", "Must rebase onto this commit.",
		"lines: 10 (this commit) · 11 (theirs)")

	for n := range 8 {
		e.push(commitID(10+n), ledger.Registration{Branch: fmt.Sprintf("more-%d", n), Message: "More",
			Changes: []radar.Change{lineEdit("go.mod", 10)}})
	}
	p := w.get(commitPath(commitID(2))).want(200).has("4 more overlaps", "MEDIUM with More")
	if links := p.elements("a", "href", apiPath+"/radar?branch=second"); len(links) != 1 {
		t.Error("no link to the other overlaps")
	}
}

// If one commit deletes a file that another edits, only the edit has lines.
func TestDeletionOverlap(t *testing.T) {
	e := newEnv(t)
	edit := lineEdit("go.mod", 10)
	e.push(commitID(1), ledger.Registration{Branch: "edit", Message: "Edit", Changes: []radar.Change{edit}})
	e.clock.advance(time.Minute)
	e.push(commitID(2), ledger.Registration{Branch: "delete", Message: "Delete",
		Changes: []radar.Change{{Path: edit.Path, Status: "D", OldMode: edit.OldMode, OldBlob: edit.OldBlob}}})
	w := e.signIn(e.reader)
	w.get(commitPath(commitID(1))).want(200).has(
		"one deletes it, the other changes it: lines 10 (this commit) · none (theirs)")
	w.get(commitPath(commitID(2))).want(200).has(
		"one deletes it, the other changes it: lines none (this commit) · 10 (theirs)")
	w.get(apiPath + "/radar").want(200).has(
		"one deletes it, the other changes it: lines none (must rebase) · 10 (has priority)")
}

// An abbreviated SHA redirects to the page of the commit.
func TestAbbreviatedCommit(t *testing.T) {
	e := newEnv(t)
	e.push(commitID(1), ledger.Registration{Message: "One"})
	e.push("abcdef0123456789abcdef0123456789abcdef01", ledger.Registration{Message: "Two"})
	w := e.signIn(e.reader)
	w.get(commitPath("abcdef0")).redirectsTo(commitPath("abcdef0123456789abcdef0123456789abcdef01"))
	w.get(commitPath("ffffffffffff")).want(404).has("Page not found", "commit ffffffffffff not found in acme/api")
	w.get(commitPath("nonsense")).hasNot("One", "Internal error")
	e.push(commitID(2), ledger.Registration{Message: "Three"})
	w.get(commitPath(commitID(1)[:36])).want(409).has("give more digits")
	w.get("/orgs/acme/repos/nope/commits/" + commitID(1)).want(404)
	e.signIn(e.token(e.otherOrg(), ledger.Admin).Secret).get(commitPath(commitID(1))).want(403).hasNot("One")
}

func TestUnregisteredCommit(t *testing.T) {
	e := newEnv(t)
	e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go", ledger.Pass)
	w := e.signIn(e.reader)
	w.get(commitPath(commitID(1))).want(200).has("No message", "Not registered",
		"ledgerd commit register acme/api "+commitID(1)[:12], "Not in flight. The radar compares")
	e.push(commitID(1), ledger.Registration{Message: "Registered"})
	w.get(commitPath(commitID(1))).want(200).has("Registered", "No change record.").hasNot(
		"Not registered")
}

// The only form that readers see signs them out.
func TestReadersChangeNothing(t *testing.T) {
	e := newEnv(t)
	a := e.attest(e.signer("cn=ci,ou=build,o=acme"), commitID(1), "test:go", ledger.Pass)
	w := e.signIn(e.reader)
	for _, path := range []string{apiPath, commitPath(commitID(1)), apiPath + "/attestations/" + a.ID} {
		for _, form := range w.get(path).want(200).elements("form", "method", "post") {
			if action := attribute(form, "action"); action != "/logout" {
				t.Errorf("%s has a form for %s", path, action)
			}
		}
	}
}

// The pages of a long timeline show each attestation and transition once.
func TestLongTimeline(t *testing.T) {
	e := newEnv(t)
	s := e.signer("cn=ci,ou=build,o=acme")
	e.push(commitID(1), ledger.Registration{Message: "Long"})
	attest := func(n int) {
		for range n {
			e.clock.advance(time.Second)
			e.attest(s, commitID(1), "test:go", ledger.Pass)
		}
	}
	attest(250)
	e.clock.advance(time.Second)
	// A transition between two attestations, of which one is the last of the first
	// page.
	e.policy(`{"requirements":[{"state":"ATTESTED","predicate":"lint:go"}]}`)
	must.OK(t, e.db.Settle(t.Context()))
	attest(200)

	w := e.signIn(e.reader)
	path, seen := commitPath(commitID(1)), make(map[string]int)
	pages := 0
	for path != "" {
		p := w.get(path).want(200)
		if first := pages == 0; first != (len(p.elements("h2", "id", "checks")) == 1) {
			t.Errorf("page %d: only the first one has the checks", pages+1)
		}
		pages++
		for _, moment := range p.moments() {
			what, _, _ := strings.Cut(moment, " after ")
			what, _, _ = strings.Cut(what, " due to ")
			what, _, _ = strings.Cut(what, " 30 Nov")
			seen[what]++
		}
		path = ""
		for _, next := range p.elements("a", "rel", "next") {
			path = attribute(next, "href")
		}
	}
	want := map[string]int{
		"pass test:go by ci in 1.2 s": 450, "Draft → to Validating": 1, "Validating → to Attested": 1,
		"Moved back Attested → to Validating": 1, "Registered": 1,
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) || pages != 3 {
		t.Errorf("%d pages show %v, want %v on 3", pages, seen, want)
	}
}

// A commit whose record lacks old transitions links to the list of all.
func TestManyTransitions(t *testing.T) {
	e := newEnv(t)
	s := e.signer("cn=ci,ou=build,o=acme")
	e.attest(s, commitID(1), "test:go", ledger.Pass) // two transitions
	turn := func(n int) {
		for i := range n {
			e.clock.advance(time.Second)
			e.attest(s, commitID(1), "test:go", []ledger.Status{ledger.Fail, ledger.Pass}[i%2])
		}
	}
	w := e.signIn(e.reader)
	turn(10)
	w.get(commitPath(commitID(1))).want(200).hasNot("All transitions").
		has("Attested → to Validating after 1.0 s, due to an attestation")

	turn(100)
	e.clock.advance(time.Hour)
	p := w.get(commitPath(commitID(1))).want(200).has("All transitions")
	if len(p.elements("a", "href", commitPath(commitID(1))+"/transitions")) != 1 {
		t.Error("no link to all transitions")
	}
	path, rows := commitPath(commitID(1))+"/transitions", 0
	for path != "" {
		p := w.get(path).want(200).has("Validating → to Attested due to an attestation",
			"Moved back Attested → to Validating").hasNot("Moved back Validating")
		rows += strings.Count(p.body, `class="grow move`)
		path = ""
		for _, next := range p.elements("a", "rel", "next") {
			path = attribute(next, "href")
		}
	}
	if rows != 112 {
		t.Errorf("the pages show %d transitions, want 112", rows)
	}
}

func TestCommitHostileTexts(t *testing.T) {
	e := newEnv(t)
	sha := e.hostile()
	w := e.signIn(e.reader)
	p := w.get(commitPath(sha)).want(200).has(nasty, nastyBranch, `failed by <i>ci</i>,"x"`, "<em>.go", "<b>@acme.example")
	p.noMarkup()
	p = w.get(commitPath(commitID(2))).want(200)
	p.noMarkup()
	if len(p.body) > 60_000 {
		t.Errorf("the page has %d bytes", len(p.body))
	}
	for _, name := range []string{"h1", "pre"} {
		if n := p.elements(name)[0]; n.FirstChild.Data != "bdi" {
			t.Errorf("the text of %s is not in a bdi element", name)
		}
	}
}

// The timeline says that two signers turned out to be one person.
func TestTransitionByIdentity(t *testing.T) {
	e := newEnv(t)
	e.policy(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","threshold":2},
		{"state":"PROMOTABLE","predicate":"review:*"}]}`)
	e.attest(e.signer("cn=ann,ou=dev,o=acme"), commitID(1), "test:go", ledger.Pass)
	e.attest(e.signer("cn=bob,ou=dev,o=acme"), commitID(1), "test:go", ledger.Pass)
	w := e.signIn(e.reader)
	w.get(commitPath(commitID(1))).want(200).has("Moved to Attested")

	var bob identity.Identity
	for i, err := range e.host.Identities(t.Context(), "acme") {
		must.OK(t, err)
		bob = i
	}
	must.OK(t, e.host.RevokeIdentity(t.Context(), "acme", bob.ID))
	_, err := e.host.AddIdentity(t.Context(), "acme",
		identity.NewIdentity{Kind: bob.Kind, PEM: bob.PEM, DN: "cn=Ann,ou=dev,o=ACME"})
	must.OK(t, err)

	must.OK(t, e.db.Settle(t.Context()))
	const want = "Moved back Attested → to Validating due to a change of identities 30 Nov 2030 09:00 UTC"
	if got := w.get(commitPath(commitID(1))).want(200).moments(); !slices.Contains(got, want) {
		t.Errorf("timeline: %q, want %q in it", got, want)
	}
}
