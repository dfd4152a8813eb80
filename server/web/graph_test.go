package web_test

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A gitCommit is a commit of a history's graph, as its commit object describes it.
type gitCommit struct {
	id      string
	object  []byte
	tree    string
	parents []string
	author  ledger.Author
	others  []ledger.Author // the committer and co-authors
}

// drawGraph makes the commits of the history: few, with fewer trees. A commit has some of
// those before it as parents. If it is about a merge, they are a base, a branch and the two
// merged or squashed.
func (h *history) drawGraph() {
	r := h.rnd
	for i := range pick(r, 2, 2, 3, 4) {
		var parents []string
		for _, parent := range h.graph {
			if one(r, 2) {
				parents = append(parents, parent.id)
			}
		}
		h.addCommit(strings.Repeat(pick(r, "a1", "a1", "b2"), 20), parents, i)
	}

	switch {
	case h.updating:
		h.drawUpdates()
	case h.merging:
		h.graph = nil
		h.addCommit(strings.Repeat("a1", 20), nil, 0)
		base := h.graph[0].id
		h.addCommit(strings.Repeat("b2", 20), []string{base}, 1)
		h.addCommit(strings.Repeat(pick(r, "b2", "c3", "c3"), 20), []string{base, h.graph[1].id}[:pick(r, 1, 2)], 2)
	}
}

// addCommit adds a commit with a number to the graph.
func (h *history) addCommit(tree string, parents []string, number int) {
	r := h.rnd
	c := gitCommit{
		tree: tree, parents: parents,
		author: pick(r, ledger.Author{Name: "Ann", Email: "ann@acme.example"},
			ledger.Author{Name: "BOB", Email: "b@acme.example"}, ledger.Author{Name: "Zoe", Email: "z@acme.example"}),
		others: []ledger.Author{{Name: pick(r, "ci", "Somebody", "Zoe"), Email: "x@acme.example"}},
	}
	message := fmt.Sprintf("Commit %d of %s", number, h.repo)
	if one(r, 4) {
		message += "\n\nCo-authored-by: " + pick(r, "Ann <a@acme.example>", "SEC <s@acme.example>")
		c.others = append(c.others, ledger.CoAuthors(message)...)
	}
	c.write(message, h.clock.now())
	h.graph = append(h.graph, c)
}

// write writes the commit object.
func (c *gitCommit) write(message string, at time.Time) {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", c.tree)
	for _, parent := range c.parents {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	fmt.Fprintf(&b, "author %s <%s> %d +0000\n", c.author.Name, c.author.Email, at.Unix())
	fmt.Fprintf(&b, "committer %s <%s> %d +0000\n\n%s\n", c.others[0].Name, c.others[0].Email, at.Unix(), message)
	c.object = []byte(b.String())
	sum := sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(c.object), c.object))
	c.id = hex.EncodeToString(sum[:])
}

func (h *history) git(commit string) *gitCommit {
	return &h.graph[slices.IndexFunc(h.graph, func(c gitCommit) bool { return c.id == commit })]
}

// prove notes what the object of a commit says. Earlier claims no longer count.
func (h *history) prove(commit string, k *known) {
	c := h.git(commit)
	k.object, k.Proven = c, true
	k.author, k.others = c.author, c.others
}

// reach returns a commit and its ancestors, as far as they are known.
func (h *history) reach(sha string) map[string]bool {
	found := map[string]bool{sha: true}
	if k := h.facts[sha]; k != nil && k.Proven {
		for _, parent := range k.object.parents {
			maps.Copy(found, h.reach(parent))
		}
	}
	return found
}

// spans says who wrote the commits that the reviews of a commit are about, by their bases.
func (h *history) spans(sha string, evidence []policy.Evidence) map[string]*authors.Authorship {
	spans := make(map[string]*authors.Authorship)
	for _, e := range evidence {
		ofHead, ofBase := h.reach(sha), h.reach(e.Base)
		if e.Base == "" || !ofHead[e.Base] {
			continue
		}

		span := &authors.Authorship{Proven: true}
		for id := range ofHead {
			if ofBase[id] {
				continue
			}
			k := h.facts[id]
			if k == nil || !k.Proven {
				span = nil
				break
			}
			span.Authors = append(append(span.Authors, k.object.author), k.object.others...)
		}

		if span != nil {
			span.AuthorPeople, span.KnownAuthors = h.peopleNamed(span.Authors)
			spans[e.Base] = span
		}
	}
	return spans
}

// contained says which of the bases a commit contains.
func (h *history) contained(commit string, bases map[string]*authors.Authorship) map[string]bool {
	contained := make(map[string]bool)
	for base := range bases {
		contained[base] = h.reach(commit)[base]
	}
	return contained
}

// side says what a claim rests on.
func (h *history) side(commit string, c mergeClaim, bases map[string]*authors.Authorship) *policy.Side {
	side := &policy.Side{Commit: c.parent}
	if c.refused != "" {
		side.Refused = c.refused
		return side
	}
	parent := h.facts[c.parent]
	h.inherit(c.parent, parent)
	side.Met = h.contract.Met(parent.Facts)
	side.Bases = h.contained(c.parent, bases)
	if c.Kind == string(attestation.Squashed) || c.Kind == string(attestation.Rebased) {
		side.Wrote = h.writersOfMerge(commit, c)
	}
	return side
}

// writersOfMerge says who wrote a squash, or any commit of a rebase.
func (h *history) writersOfMerge(commit string, c mergeClaim) *authors.Authorship {
	wrote := &authors.Authorship{Proven: true}
	for id := range h.reach(commit) {
		switch o := h.facts[id]; {
		case id != commit && c.Kind == string(attestation.Squashed), h.reach(c.parent)[id]:
		case o == nil || !o.Proven:
			return new(authors.Authorship) // anybody may have
		default:
			wrote.Authors = append(append(wrote.Authors, o.object.author), o.object.others[1:]...)
		}
	}
	wrote.AuthorPeople, wrote.KnownAuthors = h.peopleNamed(wrote.Authors)
	return wrote
}

// inherit sets which evidence may carry to a commit: all of the commits with the same tree,
// and all of those that it merges. Of a person's claims about a source, the latest counts.
func (h *history) inherit(commit string, k *known) {
	k.Sources, k.Carried, k.Spans = nil, nil, h.spans(commit, k.Evidence)
	for _, id := range slices.Sorted(maps.Keys(h.facts)) {
		o := h.facts[id]
		s := policy.Source{
			Commit: id, SameTree: k.Proven && o.Proven && k.object.tree == o.object.tree,
			Authorship: authors.Authorship{
				Authors: o.Authors, AuthorPeople: o.AuthorPeople, KnownAuthors: o.KnownAuthors, Proven: o.Proven,
			},
			Spans: h.spans(id, o.Evidence),
		}
		if s.SameTree {
			for _, parent := range k.object.parents {
				for base, is := range h.contained(parent, s.Spans) {
					if s.Bases == nil {
						s.Bases = make(map[string]bool)
					}
					old, ok := s.Bases[base]
					s.Bases[base] = is && (old || !ok)
				}
			}
		}
		latest := make(map[int64]mergeClaim)
		for _, c := range k.claims {
			if c.source == id {
				latest[c.person] = c
			}
		}
		for _, c := range slices.SortedFunc(maps.Values(latest), func(a, b mergeClaim) int {
			return cmp.Compare(a.Attestation, b.Attestation)
		}) {
			c.Side = h.side(commit, c, s.Spans)
			s.Claims = append(s.Claims, c.MergeClaim)
		}
		if id == commit || !s.SameTree && len(s.Claims) == 0 {
			continue
		}

		k.Sources = append(k.Sources, s)
		for _, e := range o.Evidence {
			e.Source = len(k.Sources)
			k.Carried = append(k.Carried, e)
		}
	}
}

// look reads a commit at once. Whatever has happened to the commits from which evidence
// carries, the record and its state are those of now.
func (h *history) look() {
	h.replace()
	commit := h.commit()
	if h.updating {
		h.settle() // a change of the mainline takes effect step by step
	}
	if k := h.facts[commit]; k != nil {
		h.note("look at %s", commit[36:])
		h.derive(commit, k)
		h.compareRecord(commit, k)
	}
}

// admitThief adds an identity of the history. Its signers are another person than all
// others.
func (h *history) admitThief(seed uint64) {
	dn := fmt.Sprintf("cn=thief-%d,ou=dev,o=acme", seed)
	h.thief = h.signer(dn)
	h.people[dn], h.admitted = int64(1000+seed), h.clock.time()
}

// distrust makes evidence by the thief not count since some time. It is as if it had not
// been recorded, but its commits were signed.
func (h *history) distrust(since ledger.Time) {
	for i, err := range h.host.Identities(h.t.Context(), "acme") {
		must.OK(h.t, err)
		if i.DN == h.thief.dn {
			must.OK(h.t, h.host.DistrustIdentity(h.t.Context(), "acme", i.ID, since))
		}
	}
	h.note("%s is distrusted since %s", h.thief.dn, since)

	person := h.people[h.thief.dn]
	h.thief = nil
	for _, k := range h.facts {
		distrusted := make(map[string]bool)
		k.Evidence = slices.DeleteFunc(slices.Clone(k.Evidence), func(e policy.Evidence) bool {
			distrusted[e.Attestation] = e.Person == person && e.RecordedAt >= since
			return distrusted[e.Attestation]
		})
		k.claims = slices.DeleteFunc(slices.Clone(k.claims), func(c mergeClaim) bool {
			return distrusted[c.Attestation]
		})
	}
	h.isReplacing = true
	h.replace()
}

// replace has the background replace distrusted evidence of a tree: until then, it counts as failed.
func (h *history) replace() {
	if h.isReplacing && h.sharesTree() {
		h.settle()
	}
}

// sharesTree reports whether any two commits are known to have the same tree.
func (h *history) sharesTree() bool {
	trees := make(map[string]bool)
	for _, k := range h.facts {
		if k.Proven && trees[k.object.tree] {
			return true
		}
		if k.Proven {
			trees[k.object.tree] = true
		}
	}
	return false
}

// TestNextReadKnowsOfDistrust distrusts a claim of a merge, by which evidence carries. It
// does so after different numbers of changes to that evidence.
func TestNextReadKnowsOfDistrust(t *testing.T) {
	for changes := range 4 {
		h := newAgreement(t).newHistory(uint64(changes))
		h.graph = nil
		h.addCommit(strings.Repeat("a1", 20), nil, 0)
		h.addCommit(strings.Repeat("b2", 20), nil, 1)
		h.addCommit(strings.Repeat("c3", 20), []string{h.graph[0].id}, 2)
		for _, c := range h.graph {
			h.register(c.id, ledger.Registration{Object: c.object})
		}
		h.changePolicy(`{"requirements":[{"state":"ATTESTED","predicate":"test:*",
			"carry":["tree","merge"],"carry_signers":["cn=thief*"]}]}`)
		base, branch, merged := h.graph[0], h.graph[1], h.graph[2]
		h.attest(base.id, "test:go", ledger.Pass)
		h.admitThief(1)
		thief := h.thief
		h.claimMerge(merged.id, attestation.Merge{Repo: "acme/" + h.repo, Kind: attestation.Squashed, Tree: merged.tree,
			Parent: attestation.MergedCommit{SHA: base.id}, Source: attestation.MergedCommit{SHA: branch.id}}, thief)
		h.thief = nil // who signs nothing else
		for range changes {
			h.attest(branch.id, "test:go", ledger.Pass)
		}

		h.settle()
		h.compareRecord(merged.id, h.facts[merged.id])
		h.thief = thief
		h.distrust(h.admitted)
		h.derive(merged.id, h.facts[merged.id])
		h.compareRecord(merged.id, h.facts[merged.id])
	}
}

// TestAuthorOfSourceUnderAnotherName has somebody review their own commit, which names them
// as a later identity with the same key does. The review does not carry.
func TestAuthorOfSourceUnderAnotherName(t *testing.T) {
	h := newAgreement(t).newHistory(1)
	h.graph = nil
	h.addCommit(strings.Repeat("d4", 20), nil, 0)
	h.addCommit(strings.Repeat("d4", 20), nil, 1)
	for i, name := range []string{"Robert", "Zoe"} {
		c := &h.graph[i]
		c.author, c.others = ledger.Author{Name: name, Email: "x@acme.example"}, []ledger.Author{{Name: "Zoe"}}
		c.write("By "+name, h.clock.now())
		h.register(c.id, ledger.Registration{Object: c.object})
	}
	h.changePolicy(`{"requirements":[
		{"state":"ATTESTED","predicate":"review:*","exclude_author":true,"carry":["tree"]}]}`)

	bob := h.signers[2]
	h.signers = []*signer{bob}
	h.attest(h.graph[0].id, "review:code", ledger.Pass)
	h.rename(bob, "cn=robert,ou=dev,o=acme")
	h.settle()
	if got := h.record(h.graph[1].id); got.State != ledger.Validating {
		t.Errorf("%s, want VALIDATING: %s", got.State, got.Requirements[0].Reason)
	}
}

// rename revokes the identity of a signer, and adds one with the same key and another name.
func (h *history) rename(s *signer, dn string) {
	for i, err := range h.host.Identities(h.t.Context(), "acme") {
		must.OK(h.t, err)
		if i.DN == s.dn {
			must.OK(h.t, h.host.RevokeIdentity(h.t.Context(), "acme", i.ID))
		}
	}
	n := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: must.PublicPEM(h.t, s.key.Public()), DN: dn,
		May: identity.Predicates{"*", "merge:*"}}
	_, err := h.host.AddIdentity(h.t.Context(), "acme", n)
	must.OK(h.t, err)
}

// Until the background has found what distrusted evidence of a tree had replaced, it blocks,
// also if a failure is accepted.
func TestDistrustedEvidenceOfATreeMeetsNothing(t *testing.T) {
	h := newAgreement(t).newHistory(1)
	h.graph = nil
	h.addCommit(strings.Repeat("d4", 20), nil, 0)
	h.addCommit(strings.Repeat("d4", 20), nil, 1)
	for _, c := range h.graph {
		h.register(c.id, ledger.Registration{Object: c.object})
	}
	h.changePolicy(`{"requirements":[
		{"state":"ATTESTED","predicate":"test:*","accept":["pass","fail"],"carry":["tree"]}]}`)
	h.admitThief(1)
	h.signers = []*signer{h.thief}
	h.attest(h.graph[0].id, "test:go", ledger.Pass)
	h.settle()

	for i, err := range h.host.Identities(t.Context(), "acme") {
		must.OK(t, err)
		if i.DN == h.thief.dn {
			must.OK(t, h.host.DistrustIdentity(t.Context(), "acme", i.ID, h.admitted))
		}
	}
	if got := h.record(h.graph[1].id); got.State >= ledger.Attested {
		t.Errorf("%s %+v", got.State, got.Requirements[0])
	}
}
