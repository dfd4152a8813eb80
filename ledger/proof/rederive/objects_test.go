package rederive

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/lineage"
)

// A repository is a history with commit objects, by the names of commits: m0, m1 … are on the mainline, b1 … on a
// branch. Each commit has a tree of its own, unless it is in treeOf.
type repository struct {
	*history
	ids     map[string]string
	objects map[string]lineage.Object // by the ID
	people  map[string]string         // the authors, by the name of the commit
	treeOf  map[string]string         // the commit with the same tree, by the name of the commit
}

func newRepository(t *testing.T, contracts ...string) *repository {
	t.Helper()
	return &repository{newHistory(t, contracts...), make(map[string]string), make(map[string]lineage.Object),
		make(map[string]string), make(map[string]string)}
}

// id returns the ID of a commit, or the name of one that has no object.
func (r *repository) id(name string) string { return cmp.Or(r.ids[name], name) }

// tree returns the ID of a commit's tree.
func (r *repository) tree(name string) string {
	sum := sha1.Sum([]byte(cmp.Or(r.treeOf[name], name)))
	return hex.EncodeToString(sum[:])
}

// commit creates a commit with parents. It is 'author' or 'author/committer' who wrote it.
func (r *repository) commit(name, who string, parents ...string) {
	author, committer, ok := strings.Cut(who, "/")
	if !ok {
		committer = author
	}
	text := fmt.Sprintf("tree %s\n", r.tree(name))
	for _, parent := range parents {
		text += "parent " + r.id(parent) + "\n"
	}
	at := 1_700_000_000 + len(r.objects)
	text += fmt.Sprintf("author %[1]s <%[1]s@acme.example> %[3]d +0000\n"+
		"committer %[2]s <%[2]s@acme.example> %[3]d +0000\n\n%[4]s\n", author, committer, at, name)
	sum := sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(text), text))
	id := hex.EncodeToString(sum[:])
	r.ids[name], r.people[name] = id, who
	r.objects[id] = lineage.Object{Commit: id, Object: []byte(text)}
}

// prove registers commits with their objects.
func (r *repository) prove(names ...string) {
	r.t.Helper()
	for _, name := range names {
		author, committer, _ := strings.Cut(r.people[name], "/")
		var c ledger.Commit
		c.SHA, c.Tree, c.Proven = r.id(name), r.tree(name), true
		c.Author = ledger.Author{Name: author, Email: author + "@acme.example"}
		if committer != "" {
			c.Writers = []ledger.Author{{Name: committer, Email: committer + "@acme.example"}}
		}
		r.register(c)
	}
}

// learn adds the event that the ledger knows commits by their objects, without registering them.
func (r *repository) learn(names ...string) {
	var ids []string
	for _, name := range names {
		ids = append(ids, r.id(name))
	}
	r.Commit(ledger.CommitEvent{Commit: ids[0], Objects: ids, Timestamp: r.tick()})
}

// pass attests a commit, with a base for reviews unless it is empty.
func (r *repository) pass(name, signer, predicate, base string) {
	r.t.Helper()
	r.attest(r.id(name), signer, predicate, ledger.Pass, func(a *attestation.Attestation) { a.Base = base })
}

// claim claims that a commit is a clean merge of a source with a commit of the mainline.
func (r *repository) claim(name, signer string, kind attestation.MergeKind, source, parent string) {
	r.t.Helper()
	r.attest(r.id(name), signer, attestation.MergePredicate(kind), ledger.Pass, func(a *attestation.Attestation) {
		a.Base, a.Merge = r.id(parent), &attestation.Merge{Kind: kind, Source: attestation.MergedCommit{SHA: r.id(source)},
			Parent: attestation.MergedCommit{SHA: r.id(parent)}, Tree: r.tree(name)}
	})
}

// reach adds the states up to the given one.
func (r *repository) reach(name string, states ...ledger.State) {
	for _, to := range states {
		r.State(ledger.StateEvent{Commit: r.id(name), To: to, Timestamp: r.tick()})
	}
}

// clone reads the objects from a clone, except those of some commits.
func (r *repository) clone(t *testing.T, without ...string) {
	t.Helper()
	r.HasClone()
	for _, id := range r.NeededObjects() {
		isThere := true
		for _, name := range without {
			isThere = isThere && r.id(name) != id
		}
		if isThere {
			must.OK(t, r.AddObject(r.objects[id]))
		}
	}
}

const (
	excluding = `{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true},
		{"state":"DEPLOYED","predicate":"deploy:*"}]}`
	carrying = `{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true,"covers":"change",
		"carry":["merge"],"carry_signers":["cn=ci,o=acme"]},{"state":"DEPLOYED","predicate":"deploy:*"}]}`
	lacking, noClone = "the clone lacks objects", "run it in a clone of the repo"
)

// A branchTest is a log of a repo whose mainline has m0 by ann and m1 by bob. A branch from m0 has b1 by bob and b2 by
// ann. The state of the tip is checked.
type branchTest struct {
	contract string
	log      func(r *repository)
	tip      string
	noClone  bool
	without  []string // what the clone lacks
	after    time.Duration
	want     string // as in checkTest
}

func (test branchTest) run(t *testing.T) {
	r := newRepository(t, test.contract)
	r.commit("m0", "ann")
	r.commit("m1", "bob", "m0")
	r.commit("b1", "bob", "m0")
	r.commit("b2", "ann", "b1")
	test.log(r)
	if !test.noClone {
		r.clone(t, test.without...)
	}
	for _, id := range r.Needs(r.id(test.tip)) {
		if !r.IsKnown(id) {
			must.OK(t, r.Known(&ledger.Commit{CommitSummary: ledger.CommitSummary{SHA: id}}))
		}
	}
	_, why, err := r.Check(r.id(test.tip), "main", r.now.Add(cmp.Or(test.after, 10*time.Minute)))
	wantCheck(t, why, err, test.want)
}

// The commits since the base of a review are those that git has, and the ledger knew.
func TestCheckReviewsOfChanges(t *testing.T) {
	reviewed := func(by string, to ledger.State) func(r *repository) {
		return func(r *repository) {
			r.prove("m0", "b2")
			r.learn("b1")
			r.pass("b2", by, "review:code", r.id("m0"))
			r.reach("b2", to)
		}
	}
	deployBy := func(r *repository, reviewer string) {
		r.pass("b2", reviewer, "review:code", r.id("m0"))
		r.reach("b2", promotable)
		r.pass("b2", "ops", "deploy:prod", "")
		r.reach("b2", deployed)
	}
	deploys := func(r *repository) {
		r.prove("m0", "b1", "b2")
		deployBy(r, "rev")
	}
	byBob := func(r *repository) {
		r.trust("bob", "bob", "")
		deployBy(r, "bob")
	}

	for name, test := range map[string]branchTest{
		"by who wrote none": {log: reviewed("rev", promotable)},
		"by who wrote the commit below": {log: func(r *repository) {
			r.trust("bob", "bob", "")
			reviewed("bob", promotable)(r)
		}, want: "!" + wrong},
		"by who wrote the commit below, which does not count": {log: func(r *repository) {
			r.trust("bob", "bob", "")
			reviewed("bob", attested)(r)
		}},
		"that does not count, by who wrote none": {log: reviewed("rev", attested), want: "!" + wrong},
		"by who wrote the commit below, which the ledger does not know": {log: func(r *repository) {
			r.trust("bob", "bob", "")
			r.prove("m0", "b2")
			r.pass("b2", "bob", "review:code", r.id("m0"))
			r.reach("b2", promotable)
		}},
		"by who wrote the commit below, which the ledger knows just now": {log: func(r *repository) {
			r.trust("bob", "bob", "")
			r.prove("m0", "b2")
			r.pass("b2", "bob", "review:code", r.id("m0"))
			r.reach("b2", promotable)
			r.now = r.now.Add(time.Hour)
			r.learn("b1")
		}, after: 30 * time.Second, want: later},
		"by who wrote the commit below, which the ledger knows since": {log: func(r *repository) {
			r.trust("bob", "bob", "")
			r.prove("m0", "b2")
			r.pass("b2", "bob", "review:code", r.id("m0"))
			r.reach("b2", promotable)
			r.learn("b1")
		}, want: "!" + wrong},
		"without a clone":                        {log: reviewed("rev", promotable), noClone: true, want: noClone},
		"without a clone, of too low a state":    {log: reviewed("rev", attested), noClone: true, want: noClone},
		"in a clone without the commit below":    {log: reviewed("rev", promotable), without: []string{"b1"}, want: lacking},
		"in a clone without the commit":          {log: reviewed("rev", promotable), without: []string{"b2"}, want: lacking},
		"in a clone without the base":            {log: reviewed("rev", promotable), without: []string{"m0"}},
		"without a clone, and one of the commit": {log: reviewedToo, noClone: true},
		"without a clone, of too high a state":   {log: tooHigh, noClone: true, want: "!" + wrong},
		"before a deployment":                    {log: deploys},
		"before a deployment, without a clone":   {log: deploys, noClone: true, want: noClone},
		"before a deployment, by one of them": {log: func(r *repository) {
			r.prove("m0", "b1", "b2")
			byBob(r)
		}, want: "!it was DEPLOYED"},
		"before a deployment, by one known since": {log: func(r *repository) {
			r.prove("m0", "b2")
			byBob(r)
			r.prove("b1")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			test.contract, test.tip = excluding, "b2"
			test.run(t)
		})
	}
}

// reviewedToo has a review of changes and one of the commit alone, which suffices.
func reviewedToo(r *repository) {
	r.prove("m0", "b1", "b2")
	r.pass("b2", "rev", "review:code", r.id("m0"))
	r.pass("b2", "ops", "review:code", "")
	r.reach("b2", promotable)
}

// tooHigh has a review of changes, and the state of a deployment.
func tooHigh(r *repository) {
	r.prove("m0", "b1", "b2")
	r.pass("b2", "ann", "review:code", r.id("m0"))
	r.reach("b2", promotable)
}
