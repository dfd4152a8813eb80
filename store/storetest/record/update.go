package record

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A graph has commits by a name, as git has them.
type graph struct {
	*fixture
	ids     map[string]string
	objects map[string][]byte
}

// commit makes a commit, which the ledger does not know yet, and returns its id. Its tree is its own.
func (g *graph) commit(name, author string, parents ...string) string {
	n := len(g.ids) + 1
	list := make([]string, len(parents))
	for i, parent := range parents {
		list[i] = g.ids[parent]
	}
	g.ids[name], g.objects[name] = storetest.ObjectOn(strings.Join(list, "\nparent "), n, author, n)
	return g.ids[name]
}

// register registers commits, with their objects.
func (g *graph) register(names ...string) {
	g.T.Helper()
	for _, name := range names {
		g.Clock.Tick()
		_, _, err := g.Register(g.T.Context(), "acme", "api", g.ids[name], ledger.Registration{Object: g.objects[name]})
		must.OK(g.T, err)
	}
}

// send sends the objects of commits, and settles what depends on them.
func (g *graph) send(names ...string) {
	g.T.Helper()
	var o lineage.Objects
	for _, name := range names {
		o.Objects = append(o.Objects, lineage.Object{Commit: g.ids[name], Object: g.objects[name]})
	}
	_, err := g.AddObjects(g.T.Context(), "acme", "api", o)
	must.OK(g.T, err)
	must.OK(g.T, g.Settle(g.T.Context()))
}

// events returns the events about what is known of commits, in order.
func (g *graph) events() (list []ledger.CommitEvent) {
	g.T.Helper()
	page, err := g.Events(g.T.Context(), "acme", store.EventFilter{
		Query: store.Query{Limit: 500}, Types: []ledger.EventType{ledger.EventCommit},
	})
	must.OK(g.T, err)
	for _, body := range page.Data {
		var e ledger.CommitEvent
		must.OK(g.T, ledger.DecodeOpen(body, &e))
		list = append(list, e)
	}
	return list
}

// review has a signer approve a commit, since a base.
func (g *graph) review(by *storetest.Signer, name, base string) {
	g.T.Helper()
	payload, err := attestation.NewStatement("", g.ids[name], attestation.ResultPredicate{
		Predicate: "review:code", Result: ledger.Result{Status: ledger.Pass}, Base: g.ids[base],
	})
	must.OK(g.T, err)
	by.SendNoticed(payload, "")
}

// claim has a signer claim that a commit is a clean merge.
func (g *graph) claim(by *storetest.Signer, kind attestation.MergeKind, name, source, parent string) {
	g.T.Helper()
	payload, err := attestation.NewMergeStatement(g.ids[name], attestation.Merge{
		Repo: "acme/api", Kind: kind, Source: attestation.MergedCommit{SHA: g.ids[source]},
		Parent: attestation.MergedCommit{SHA: g.ids[parent]}, Tree: g.tree(name),
		StartedOn: ledger.Time(g.Clock.Tick()),
	})
	must.OK(g.T, err)
	by.SendNoticed(payload, "")
}

// tree returns the tree of a commit.
func (g *graph) tree(name string) string { return string(g.objects[name][len("tree "):][:40]) }

// want checks the state of a commit.
func (g *graph) want(when, name string, want ledger.State) {
	g.T.Helper()
	must.OK(g.T, g.Settle(g.T.Context()))
	if got := g.ReadCommit(g.ids[name]); got.State != want {
		g.T.Errorf("%s, %s is %s, want %s: %+v", when, name, got.State, want, got.Requirements)
	}
}

// updateContract wants tests, and a review of each change by somebody else.
const updateContract = `{"requirements":[
	{"state":"ATTESTED","predicate":"test:*"},
	{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true,"covers":"change","carry":["merge"],
		"carry_signers":["cn=mainline,ou=build,o=acme"]}],"radar":{"enabled":false}}`

// newUpdate returns a mainline m0, m1 and a branch t1, t2 from m0 that was updated to u. All but t1 are registered. The
// branch was reviewed before the update, and u is tested.
func (s suite) newUpdate(t *testing.T) (g *graph, ci, rita, mainline *storetest.Signer) {
	t.Helper()
	g = &graph{s.newFixture(t), make(map[string]string), make(map[string][]byte)}
	g.SetContract(updateContract)
	ci, rita = g.NewSigner("cn=ci,ou=build,o=acme"), g.NewSigner("cn=rita,ou=dev,o=acme")
	mainline = g.NewSigner("cn=mainline,ou=build,o=acme")
	g.ids["root"] = strings.Repeat("0", 40)
	g.commit("m0", "Max", "root")
	g.commit("m1", "Max", "m0")
	g.commit("t1", "Tom", "m0")
	g.commit("t2", "Tom", "t1")
	g.commit("u", "Max", "t2", "m1") // Max has pressed the button

	g.register("m0", "m1", "t2", "u")
	g.review(rita, "t2", "m0")
	ci.Attest(g.ids["u"], "test:go", ledger.Pass)
	return g, ci, rita, mainline
}

// A review carries to an updated branch as soon as all that it rests on is known, in any order, and as long as the
// mainline meets the same.
func (s suite) TestAReviewCarriesToAnUpdatedBranch(t *testing.T) {
	g, ci, rita, mainline := s.newUpdate(t)
	g.claim(mainline, attestation.Updated, "u", "t2", "m1")
	g.want("while the mainline is not reviewed", "u", ledger.Attested)
	g.review(rita, "m1", "m0")
	g.want("while an object of the branch is unknown", "u", ledger.Attested)
	g.send("t1")
	g.want("now", "u", ledger.Promotable)

	ci.Attest(g.ids["m1"], "test:go", ledger.Fail)
	g.want("whatever the mainline's tests say, which each commit has for itself", "u", ledger.Promotable)
	reject, err := attestation.NewStatement("", g.ids["m1"], attestation.ResultPredicate{
		Predicate: "review:code", Result: ledger.Result{Status: ledger.Fail},
	})
	must.OK(t, err)
	rita.SendNoticed(reject, "")
	g.want("after the mainline has fallen", "u", ledger.Attested)
}

// A state no longer depends on an object that is unknown when the review that needed it is replaced.
func (s suite) TestAReviewWithoutABaseLeavesNoGap(t *testing.T) {
	g, _, rita, _ := s.newUpdate(t)
	rita.Attest(g.ids["t2"], "review:code", ledger.Pass)
	g.want("after a review of the commit alone", "t2", ledger.Validating) // the check at the end finds no difference
}

// A branch that is updated again keeps the reviews of what was there before the first update.
func (s suite) TestAReviewCarriesThroughTwoUpdates(t *testing.T) {
	g, ci, rita, mainline := s.newUpdate(t)
	g.send("t1")
	g.review(rita, "m1", "m0")
	g.commit("m2", "Max", "m1")
	g.commit("v", "Max", "m2", "u")
	g.commit("other", "Max", "t1", "m2")
	g.register("m2", "v", "other")
	ci.Attest(g.ids["v"], "test:go", ledger.Pass)
	ci.Attest(g.ids["other"], "test:go", ledger.Pass)
	g.review(rita, "m2", "m1")

	g.claim(mainline, attestation.Updated, "v", "u", "m2")
	g.want("when the first update alone is claimed", "v", ledger.Attested)
	g.claim(mainline, attestation.Updated, "v", "t2", "m2")
	g.want("when what was reviewed is", "v", ledger.Promotable)
	g.claim(mainline, attestation.Updated, "other", "t2", "m2")
	g.want("when the branch has not what is claimed", "other", ledger.Attested)
}

// The mainline is derived before the merges that rest on it, so that none falls and rises again when a policy changes.
// What a revoked key has signed for the mainline no longer counts for them at once.
func (s suite) TestTheMainlineIsDerivedBeforeItsMerges(t *testing.T) {
	g, ci, rita, mainline := s.newUpdate(t)
	sue := g.NewSigner("cn=sue,ou=dev,o=acme")
	g.send("t1")
	g.review(sue, "m0", "")
	g.commit("m2", "Max", "m1", "t2")
	g.commit("u2", "Max", "t2", "m2")
	g.register("m2", "u2")
	g.claim(mainline, attestation.Merged, "m2", "t2", "m1") // rests on m1, as u2 rests on it
	g.claim(mainline, attestation.Updated, "u2", "t2", "m2")
	g.claim(mainline, attestation.Updated, "u", "t2", "m1")
	g.review(sue, "m1", "m0")
	ci.Attest(g.ids["m2"], "test:go", ledger.Pass)
	ci.Attest(g.ids["u2"], "test:go", ledger.Pass)
	g.want("on a mainline that Sue has reviewed", "u", ledger.Promotable)
	g.want("two steps above her review", "u2", ledger.Promotable)

	next := strings.Replace(updateContract, `"exclude_author":true`, `"exclude_author":true,"max_age":"1000h"`, 1)
	_, err := g.SetPolicy(t.Context(), "acme", "api", must.Get(policy.Parse([]byte(next)))(t), 0, "host")
	must.OK(t, err)
	ci.Attest(g.ids["u2"], "test:go", ledger.Pass) // before the background has derived anything
	must.OK(t, g.Settle(t.Context()))
	for _, name := range []string{"m2", "u2", "u"} {
		got := g.ReadCommit(g.ids[name])
		if path := storetest.Path(got); got.State != ledger.Promotable || strings.Contains(path, "PROMOTABLE>") {
			t.Errorf("%s under the next policy: %s, %s", name, got.State, path)
		}
	}

	must.OK(t, g.DistrustIdentity(t.Context(), "acme", g.IdentityOf(sue.DN).ID, 1))
	for _, name := range []string{"u2", "u"} {
		if got := g.ReadCommit(g.ids[name]); got.State != ledger.Attested {
			t.Errorf("%s is %s as soon as Sue is distrusted, want ATTESTED", name, got.State)
		}
	}
	must.OK(t, g.Settle(t.Context()))
	g.review(rita, "m1", "m0")
	g.want("once Rita has reviewed the mainline", "u2", ledger.Promotable)
}

// Nobody reviews what they wrote, in any commit between, and any button may be pressed by anybody.
func (s suite) TestAnAuthorOfACommitBetweenIsNoReviewer(t *testing.T) {
	g, _, rita, mainline := s.newUpdate(t)
	g.commit("t1b", "Rita", "m0")
	g.commit("t2b", "Tom", "t1b")
	g.commit("ub", "Rita", "t2b", "m1")
	g.send("t1b", "t1")
	g.register("t2b", "ub")
	g.review(rita, "m1", "m0")
	g.review(rita, "t2b", "m0")
	g.claim(mainline, attestation.Updated, "ub", "t2b", "m1")
	g.claim(mainline, attestation.Updated, "u", "t2", "m1")
	g.want("Tom's branch", "u", ledger.Promotable)
	if r := g.ReadCommit(g.ids["ub"]).Requirements[1]; r.Met {
		t.Errorf("her own branch: %+v", r)
	}
}

// A review of a branch on an unmerged one says nothing of that one.
func (s suite) TestAReviewOfAStackedBranchDoesNotCoverWhatIsBelow(t *testing.T) {
	g, ci, rita, mainline := s.newUpdate(t)
	g.send("t1")
	g.review(rita, "m1", "m0")
	g.commit("s1", "Tom", "t2")
	g.commit("squash", "Max", "m1")
	g.register("s1", "squash")
	g.review(rita, "s1", "t2")
	ci.Attest(g.ids["squash"], "test:go", ledger.Pass)
	g.claim(mainline, attestation.Squashed, "squash", "s1", "m1")
	g.want("with the base on the branch below", "squash", ledger.Attested)
	g.review(rita, "s1", "m0")
	g.want("with the base on the mainline", "squash", ledger.Promotable)
}

// A squash of that branch onto the mainline has the same files, but its change is more than what was reviewed.
func (s suite) TestAReviewOfAStackedBranchDoesNotCarryByTree(t *testing.T) {
	g, ci, rita, _ := s.newUpdate(t)
	g.SetContract(strings.ReplaceAll(updateContract, `"carry":["merge"],
		"carry_signers":["cn=mainline,ou=build,o=acme"]`, `"carry":["tree"]`))
	g.send("t1")
	g.commit("s1", "Tom", "t2")
	g.ids["squash"], g.objects["squash"] = storetest.ObjectOn(g.ids["m0"], len(g.ids), "Max", 99)
	g.register("s1", "squash")
	ci.Attest(g.ids["squash"], "test:go", ledger.Pass)
	g.ids["merge"], g.objects["merge"] = storetest.ObjectOn(g.ids["m0"]+"\nparent "+g.ids["s1"], len(g.ids)-1, "Max", 98)
	g.register("merge")
	ci.Attest(g.ids["merge"], "test:go", ledger.Pass)

	g.review(rita, "s1", "t2")
	g.want("with the base on the branch below", "squash", ledger.Attested)
	g.want("with the base on the branch below", "merge", ledger.Attested)
	g.review(rita, "s1", "m0")
	g.want("with the base on the mainline", "squash", ledger.Promotable)
	g.want("with the base on the mainline", "merge", ledger.Promotable)
}

// Evidence that does not carry by tree hides none that does: an older rejection, or an older review.
func (s suite) TestEvidenceThatDoesNotCarryByTreeHidesNone(t *testing.T) {
	g, ci, rita, _ := s.newUpdate(t)
	g.SetContract(strings.ReplaceAll(updateContract, `"carry":["merge"],
		"carry_signers":["cn=mainline,ou=build,o=acme"]`, `"carry":["tree"]`))
	bob := g.NewSigner("cn=bob,ou=dev,o=acme")
	g.send("t1")
	tree := len(g.ids) + 1
	for i, name := range []string{"squash", "x", "y"} {
		parent := []string{"m0", "m0", "t2"}[i]
		g.ids[name], g.objects[name] = storetest.ObjectOn(g.ids[parent], tree, "Max", 90+i)
		g.register(name)
	}
	ci.Attest(g.ids["squash"], "test:go", ledger.Pass)

	g.review(bob, "x", "m0")
	g.want("with a review of x", "squash", ledger.Promotable)
	g.review(bob, "y", "t2")
	g.want("with another review of the same person, since a base elsewhere", "squash", ledger.Promotable)
	rita.Attest(g.ids["x"], "review:code", ledger.Fail)
	g.want("once x is rejected", "squash", ledger.Attested)
	g.review(rita, "y", "t2")
	g.want("with a later review of who has rejected it, since a base elsewhere", "squash", ledger.Attested)
	g.review(rita, "x", "m0")
	g.want("once x is reviewed again", "squash", ledger.Promotable)
}

// A commit may be the source of one heir, and have the tree of another one, that are derived together.
func (s suite) TestASourceOfAMergeHasTheTreeOfAnotherHeir(t *testing.T) {
	g, ci, rita, mainline := s.newUpdate(t)
	g.SetContract(strings.Replace(updateContract, `"carry":["merge"]`, `"carry":["tree","merge"]`, 1))
	g.send("t1")
	g.review(rita, "m1", "m0")
	tree := must.Get(strconv.ParseInt(g.tree("t2"), 16, 64))(t)
	g.ids["copy"], g.objects["copy"] = storetest.ObjectOn(g.ids["m0"], int(tree), "Max", 99)
	g.register("copy")
	ci.Attest(g.ids["copy"], "test:go", ledger.Pass)
	g.claim(mainline, attestation.Updated, "u", "t2", "m1")
	g.want("after the review", "u", ledger.Promotable)

	sue := g.NewSigner("cn=sue,ou=dev,o=acme")
	g.review(sue, "t2", "m0")
	g.want("after another review", "u", ledger.Promotable)
	g.want("after another review", "copy", ledger.Promotable)
}

// A claim by somebody who may not speak for the mainline carries their own reviews alone.
func (s suite) TestAClaimOfAPersonCarriesTheirOwnReviews(t *testing.T) {
	g, _, rita, _ := s.newUpdate(t)
	sue := g.NewSigner("cn=sue,ou=dev,o=acme")
	g.send("t1")
	g.review(rita, "m1", "m0")
	g.claim(sue, attestation.Updated, "u", "t2", "m1")
	g.want("by Sue's word", "u", ledger.Attested)
	g.claim(rita, attestation.Updated, "u", "t2", "m1")
	g.want("by Rita's", "u", ledger.Promotable)
}

// What is known by its object alone is no commit of the ledger: it has no state, is in no list, and makes no prefix
// ambiguous. One event has all of a request, and what is known already has none.
func (s suite) TestObjectsOfAncestorsAreNoCommits(t *testing.T) {
	g, _, _, _ := s.newUpdate(t)
	var names []string
	for n := range 3 {
		name := "a" + strconv.Itoa(n)
		g.commit(name, "Tom", "m0")
		names = append(names, name)
	}
	before := len(g.events())
	g.send(names...)
	g.send(names[1:]...)
	added := g.events()[before:]
	want := []string{g.ids["a0"], g.ids["a1"], g.ids["a2"]}
	if len(added) != 1 || !slices.Equal(added[0].Objects, want) || added[0].Commit != want[0] {
		t.Errorf("events %+v, want one with %v", added, want)
	}

	_, err := g.Commit(t.Context(), "acme", "api", g.ids["a0"])
	storetest.WantCode(t, err, ledger.CodeNotFound)
	asked := lineage.Objects{Commits: []string{g.ids["t1"], want[1], g.ids["u"]}}
	unknown, err := g.AddObjects(t.Context(), "acme", "api", asked)
	if err != nil || !slices.Equal(unknown, []string{g.ids["t1"]}) {
		t.Errorf("unknown %v, %v", unknown, err)
	}

	g.register("a1")
	g.want("once it is registered", "a1", ledger.Draft)
	if c := g.ReadCommit(g.ids["a1"]); c.Tree != g.tree("a1") {
		t.Errorf("registered as %+v", c)
	}
}

// A commit whose object came before is proven as soon as a claim names it, or somebody registers it.
func (s suite) TestACommitIsProvenByTheObjectThatCameBefore(t *testing.T) {
	for name, register := range map[string]func(g *graph, ci, mainline *storetest.Signer){
		"a claim": func(g *graph, _, mainline *storetest.Signer) {
			g.claim(mainline, attestation.Updated, "u", "t1", "m1")
		},
		"a claim, after an attestation": func(g *graph, ci, mainline *storetest.Signer) {
			ci.Attest(g.ids["t1"], "test:go", ledger.Pass)
			g.claim(mainline, attestation.Updated, "u", "t1", "m1")
		},
		"a registration without it": func(g *graph, _, _ *storetest.Signer) {
			g.Complete(g.ids["t1"], ledger.Registration{Branch: "topic"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, ci, _, mainline := s.newUpdate(t)
			g.send("t1")
			register(g, ci, mainline)
			if c := g.ReadCommit(g.ids["t1"]); c.Tree != g.tree("t1") || c.Author.Name != "Tom" {
				t.Errorf("it is known as %+v", c)
			}
		})
	}
}

// A bad object is refused by its place, and nothing is kept.
func (s suite) TestObjectsAreKeptAllOrNone(t *testing.T) {
	g, _, _, _ := s.newUpdate(t)
	g.commit("a", "Tom", "m0")
	_, err := g.AddObjects(t.Context(), "acme", "api", lineage.Objects{Objects: []lineage.Object{
		{Commit: g.ids["a"], Object: g.objects["a"]}, {Commit: g.ids["t1"], Object: g.objects["a"]},
	}})
	if e, ok := errors.AsType[*ledger.Error](err); !ok || len(e.Fields) != 1 || e.Fields[0].Field != "objects[1].object" {
		t.Errorf("error %v, want one about objects[1].object", err)
	}
	unknown, err := g.AddObjects(t.Context(), "acme", "api", lineage.Objects{Commits: []string{g.ids["a"]}})
	if err != nil || len(unknown) != 1 {
		t.Errorf("unknown %v, %v", unknown, err)
	}
}

// A commit with the tree of a reviewed one takes over a review only if its signer wrote no commit since its base.
func (s suite) TestAReviewDoesNotCarryByTreeToItsAuthor(t *testing.T) {
	g, ci, _, _ := s.newUpdate(t)
	g.SetContract(strings.ReplaceAll(updateContract, `"carry":["merge"],
		"carry_signers":["cn=mainline,ou=build,o=acme"]`, `"carry":["tree"]`))
	tom := g.NewSigner("cn=tom,ou=dev,o=acme")
	g.commit("r2", "Rita", "t1")
	amended, raw := storetest.ObjectOn(g.ids["t1"], len(g.ids), "Rita", 99)
	g.ids["amended"], g.objects["amended"] = amended, raw
	g.send("t1")
	g.register("r2", "amended")
	ci.Attest(amended, "test:go", ledger.Pass)
	g.review(tom, "r2", "m0")
	g.want("with the review of somebody who wrote a commit before", "amended", ledger.Attested)
}

// A review that is about changes counts only if its signer wrote none of them: at once, and not until the state is
// derived again.
func (s suite) TestWhoSignedAnInnerCommitCannotReviewTheChanges(t *testing.T) {
	fx := s.newFixture(t)
	ci, tom := fx.NewSigner("cn=ci,ou=build,o=acme"), fx.NewSigner("cn=Tom,ou=dev,o=acme")
	base, object := storetest.Object(1, "Sam", 1)
	fx.Complete(base, ledger.Registration{Object: object})
	_, object = storetest.ObjectOn(base, 2, "Sam", 2)
	inner, object := storetest.SignObject(t, tom.Key, "git", object)
	_, err := fx.AddObjects(t.Context(), "acme", "api",
		lineage.Objects{Objects: []lineage.Object{{Commit: inner, Object: object}}})
	must.OK(t, err)
	head, object := storetest.ObjectOn(inner, 3, "Sam", 3)
	fx.Complete(head, ledger.Registration{Object: object})

	ci.Attest(head, "test:go", ledger.Pass)
	review := func(by *storetest.Signer) {
		payload, err := attestation.NewStatement("acme/api", head, attestation.ResultPredicate{Predicate: "review:code",
			Result: ledger.Result{Status: ledger.Pass}, Base: base})
		must.OK(t, err)
		_, _, err = by.Send(payload)
		must.OK(t, err)
	}
	review(tom)
	fx.WantState(head, ledger.Attested)
	review(fx.NewSigner("cn=rita,ou=review,o=acme"))
	fx.WantState(head, ledger.Promotable)
}
