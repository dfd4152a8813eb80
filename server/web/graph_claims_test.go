package web_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A mergeClaim is a claim that a commit is a merge of a commit of the mainline with a source.
type mergeClaim struct {
	policy.MergeClaim
	source, parent string
	person         int64
	refused        string // why, as the ledger says
}

// drawUpdates makes the commits of a branch that is updated twice: the mainline m0 and m1, a branch t from m0, its
// update u, the squash s of t on m1, and the update v of u with s. Each has a tree of its own.
func (h *history) drawUpdates() {
	h.graph = nil
	add := func(parents ...int) {
		var ids []string
		for _, n := range parents {
			ids = append(ids, h.graph[n].id)
		}
		if one(h.rnd, 2) {
			slices.Reverse(ids)
		}
		h.addCommit(strings.Repeat(fmt.Sprintf("%02x", 0xa0+len(h.graph)), 20), ids, len(h.graph))
	}
	add()
	add(m0)
	add(m0)
	add(branchTip, m1)
	add(m1)
	add(update, squash)
}

// Positions in the graph of drawUpdates.
const (
	m0 = iota
	m1
	branchTip
	update
	squash
	secondUpdate
)

// claimUpdate claims what happened to the branch of drawUpdates.
func (h *history) claimUpdate(by *signer) {
	claim := pick(h.rnd,
		claimed{update, attestation.Updated, branchTip, m1},
		claimed{squash, attestation.Squashed, branchTip, m1},
		claimed{secondUpdate, attestation.Updated, update, squash},
		claimed{secondUpdate, attestation.Updated, branchTip, squash})
	c := h.graph[claim.commit]
	h.claimMerge(c.id, attestation.Merge{Repo: "acme/" + h.repo, Kind: claim.kind, Tree: c.tree,
		Parent: attestation.MergedCommit{SHA: h.graph[claim.parent].id},
		Source: attestation.MergedCommit{SHA: h.graph[claim.source].id}}, by)
}

// A claimed is a claim about commits of the graph, by their positions.
type claimed struct {
	commit         int
	kind           attestation.MergeKind
	source, parent int
}

// claim claims that a commit is a merge. Some claims are false.
func (h *history) claim() {
	r, commit := h.rnd, h.commit()
	if h.updating && !one(r, 4) {
		h.claimUpdate(h.anySigner(true))
		return
	}
	if h.merging && !one(r, 4) {
		commit = h.graph[2].id
	}
	c := h.git(commit)
	m := attestation.Merge{Repo: "acme/" + h.repo, Kind: pick(r, attestation.MergeKinds()...), Tree: c.tree,
		Parent: attestation.MergedCommit{SHA: h.commit()}, Source: attestation.MergedCommit{SHA: h.commit()}}
	if len(c.parents) > 0 && !one(r, 8) {
		m.Parent.SHA = c.parents[0]
	}
	if len(c.parents) == 2 && !one(r, 8) {
		m.Kind, m.Source.SHA = pick(r, attestation.Merged, attestation.Updated), c.parents[1]
		if one(r, 3) {
			m.Parent, m.Source = m.Source, m.Parent
		}
	}
	if len(c.parents) == 1 && !one(r, 8) {
		m.Kind, m.Source.SHA = attestation.Squashed, h.graph[1].id
	}

	if one(r, 10) {
		m.Tree = strings.Repeat("c3", 20)
	}
	if m.Parent != m.Source && m.Parent.SHA != commit && m.Source.SHA != commit { // others are refused
		h.claimMerge(commit, m, h.anySigner(true))
	}
}

func (h *history) claimMerge(commit string, m attestation.Merge, by *signer) {
	k := h.know(commit)
	before, isRefused := h.worth(commit, k), h.isRefused(m, k)
	h.clock.advance(time.Millisecond)
	m.FinishedOn = h.clock.time()
	payload, err := attestation.NewMergeStatement(commit, m)
	must.OK(h.t, err)
	rec := h.send(payload, by)
	h.note("%s is a %s of %s and %s, says %s; refused: %t", commit[36:], m.Kind, m.Parent.SHA[36:], m.Source.SHA[36:],
		rec.Identity, isRefused)

	e := h.evidence(rec, before)
	e.Slot = m.Source.SHA
	k.Evidence, k.Attested = append(k.Evidence, e), true
	h.learn(verdicts(rec.ID, false, false))
	noResult := policy.Verdict{Error: "no such key: result"}
	h.verdicts.Add(whereShort, rec.ID, noResult)
	k.claims = append(k.claims, mergeClaim{
		MergeClaim: policy.MergeClaim{
			Attestation: rec.ID, Kind: string(m.Kind), Signer: e.Signer, Person: e.Person, Individual: e.Individual,
		},
		source: m.Source.SHA, parent: m.Parent.SHA, person: e.Person, refused: h.refusal(commit, rec.ID, isRefused),
	})
	h.noteRegistered(h.know(m.Source.SHA))
	h.noteRegistered(h.know(m.Parent.SHA))
	h.derive(commit, k)
}

// refusal returns why the ledger says that nothing carries by a claim. It says so if it should.
func (h *history) refusal(commit, attestation string, isRefused bool) string {
	for _, c := range h.record(commit).Merges {
		if c.Attestation == attestation {
			if (c.Reason != "") != isRefused {
				h.t.Errorf("claim %s: refused because %q, want refused: %t", attestation, c.Reason, isRefused)
			}
			return c.Reason
		}
	}
	h.t.Errorf("the record of %s has no claim %s", commit, attestation)
	return ""
}

// isRefused reports whether a claim about a commit does not agree with the objects that are known.
func (h *history) isRefused(m attestation.Merge, k *known) bool {
	parent := h.facts[m.Parent.SHA]
	switch o := k.object; {
	case o == nil, parent == nil, !parent.Proven, m.Tree != o.tree:
		return true
	case m.Kind == attestation.Rebased:
		return !h.isFirstParent(m.Parent.SHA, o)
	case m.Kind == attestation.Squashed:
		return !slices.Equal(o.parents, []string{m.Parent.SHA})
	case len(o.parents) != 2 || !slices.Contains(o.parents, m.Parent.SHA):
		return true
	case m.Kind == attestation.Updated:
		branch := o.parents[0]
		if branch == m.Parent.SHA {
			branch = o.parents[1]
		}
		return !h.reach(branch)[m.Source.SHA]
	default:
		return !slices.Contains(o.parents, m.Source.SHA)
	}
}

// isFirstParent reports whether a commit is known to follow another one by first parents.
func (h *history) isFirstParent(sha string, c *gitCommit) bool {
	for len(c.parents) > 0 && c.parents[0] != sha {
		k := h.facts[c.parents[0]]
		if k == nil || !k.Proven {
			return false
		}
		c = k.object
	}
	return len(c.parents) > 0
}
