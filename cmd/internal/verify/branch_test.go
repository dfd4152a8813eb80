package verify

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A branch has a head with an inner commit that is not registered, on a base. It is squashed onto the base, merged into
// the squash as an update, and a second branch is squashed onto the first.
type branch struct {
	h                  *host
	base, head, squash string
	update             string
	head2, squash2     string
	inner              []lineage.Object
	trees              map[string]string
}

// newBranch registers the commits of a branch. pick picks their authors, and whether a squash has the tree of its
// branch.
func newBranch(h *host, pick func(...string) string) *branch {
	h.t.Helper()
	b := &branch{h: h, trees: make(map[string]string)}
	n, numbers := 0, make(map[string]int) // of trees, by commit
	commit := func(isRegistered bool, like string, parents ...string) string {
		n++
		tree := cmp.Or(numbers[like], n)
		id, object := storetest.ObjectOn(parents[0], tree, pick("ann", "bob", "eve"), n)
		for _, parent := range parents[1:] {
			object = bytes.Replace(object, []byte("\nauthor "), []byte("\nparent "+parent+"\nauthor "), 1)
			sum := sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(object), object))
			id = hex.EncodeToString(sum[:])
		}
		numbers[id], b.trees[id] = tree, fmt.Sprintf("%040x", tree)
		h.objects[id] = object
		if isRegistered {
			h.register(id, ledger.Registration{Object: object})
		} else {
			b.inner = append(b.inner, lineage.Object{Commit: id, Object: object})
		}
		return id
	}

	b.base = commit(true, "", commitID(8))
	b.head = commit(true, "", commit(false, "", b.base))
	b.squash = commit(true, pick("", b.head), b.base)
	b.update = commit(true, "", b.head, b.squash)
	b.head2 = commit(true, "", commit(false, "", b.squash))
	b.squash2 = commit(true, pick("", b.head2), b.squash)
	return b
}

// commits returns the registered commits.
func (b *branch) commits() []string {
	return []string{b.base, b.head, b.squash, b.update, b.head2, b.squash2}
}

// review returns a review of the changes of a commit since a base.
func (b *branch) review(commit, base string) []byte {
	b.h.t.Helper()
	payload, err := attestation.NewStatement("acme/api", commit, attestation.ResultPredicate{Predicate: "review:code",
		Result: ledger.Result{Status: ledger.Pass}, StartedOn: ledger.TimeOf(time.Now()), Base: base})
	must.OK(b.h.t, err)
	return payload
}

// claim returns one of the claims that are true: the squashes, the update, and the rebase that a squash is, too.
func (b *branch) claim(n int) []byte {
	b.h.t.Helper()
	c := []struct {
		kind                   attestation.MergeKind
		commit, source, parent string
	}{
		{attestation.Squashed, b.squash, b.head, b.base},
		{attestation.Rebased, b.squash, b.head, b.base},
		{attestation.Updated, b.update, b.head, b.squash},
		{attestation.Squashed, b.squash2, b.head2, b.squash},
	}[n]
	payload, err := attestation.NewMergeStatement(c.commit, attestation.Merge{Repo: "acme/api", Kind: c.kind,
		Source: attestation.MergedCommit{SHA: c.source}, Parent: attestation.MergedCommit{SHA: c.parent},
		Tree: b.trees[c.commit], StartedOn: ledger.TimeOf(time.Now())})
	must.OK(b.h.t, err)
	return payload
}

// merge brings both branches to the mainline, in an order in which evidence carries if no reviewer is an author. The
// objects of the inner commits come at some time, or not at all.
func (b *branch) merge(signers []func(), random *rand.Rand) {
	b.h.t.Helper()
	ann, ci, ops := signers[0], signers[2], signers[3]
	steps := []func(){
		func() { ci(); b.h.record(b.base, "test:go", ledger.Pass) },
		func() { ops(); b.h.record(b.base, "review:code", ledger.Pass) },
		func() { ci(); b.h.record(b.head, "test:go", ledger.Pass) },
		func() { ann(); must.Get(b.h.send(b.review(b.head, b.base)))(b.h.t) },
		func() { ops(); must.Get(b.h.send(b.review(b.head2, b.squash)))(b.h.t) },
		func() { ci(); must.Get(b.h.send(b.claim(random.IntN(2))))(b.h.t) },
		func() { ops(); b.h.record(b.squash, "deploy:prod", ledger.Pass) },
		func() { ci(); must.Get(b.h.send(b.claim(2)))(b.h.t) },
		func() { ci(); must.Get(b.h.send(b.claim(3)))(b.h.t) },
		func() { ops(); b.h.record(b.squash2, "deploy:prod", ledger.Pass) },
	}
	known := random.IntN(len(steps) + 3)
	for i, step := range steps {
		if i == known {
			must.Get(b.h.store.AddObjects(b.h.t.Context(), "acme", "api", lineage.Objects{Objects: b.inner}))(b.h.t)
		}
		step()
	}
}

// A host that changes what a state rests on in the history, and lets its own server derive the state, is found in a
// clone.
func TestStatesThatDoNotFollowFromTheHistory(t *testing.T) {
	for name, test := range map[string]struct {
		reviewer string // of the head
		tree     string // that is claimed of the squash; empty for the right one
		plant    string // a statement that changes the database
		of       func(b *branch) string
	}{
		"an author of a commit below the head, who reviewed": {
			reviewer: "bob", plant: "DELETE FROM ancestors", of: func(b *branch) string { return b.head },
		},
		"a claim that does not agree with the object": {
			reviewer: "rev", tree: commitID(99), plant: "UPDATE merges SET reason = ''",
			of: func(b *branch) string { return b.squash },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			signers := make(map[string]func())
			for _, name := range []string{"ci", "rev", "bob"} {
				_, signers[name] = h.addSigner("cn=" + name + ",ou=x,o=acme")
			}
			h.setPolicy(`{"requirements":[{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true,
				"covers":"change","carry":["merge"],"carry_signers":["cn=ci"]}]}`)
			authors := []string{"ann", "bob", "ann"}
			b := newBranch(h, func(...string) string {
				authors = append(authors, "ann")
				author := authors[0]
				authors = authors[1:]
				return author
			})
			must.Get(h.store.AddObjects(t.Context(), "acme", "api", lineage.Objects{Objects: b.inner}))(t)
			if test.tree != "" {
				b.trees[b.squash] = test.tree
			}
			signers["rev"]()
			h.record(b.base, "review:code", ledger.Pass)
			signers["ci"]()
			must.Get(h.send(b.claim(0)))(t)
			h.change(test.plant)
			signers[test.reviewer]()
			must.Get(h.send(b.review(b.head, b.base)))(t)
			must.OK(t, h.store.Settle(t.Context()))
			h.sign()

			record := must.Get(h.admin.Commit(t.Context(), "acme", "api", test.of(b)))(t)
			if record.State != ledger.Promotable {
				t.Fatalf("the planted state is %s", record.State)
			}
			r := inClone(rederiving(t), h).verify(newSite(t, h), repo(t))
			want(t, r, verify.CheckDerivation, verify.Failed,
				test.of(b)+": it is PROMOTABLE, and its evidence makes it ATTESTED")
			r = rederiving(t).verify(newSite(t, h), repo(t))
			wantVerified(t, r)
			want(t, r, verify.CheckDerivation, verify.NotChecked, "run it in a clone of the repo")
		})
	}
}
