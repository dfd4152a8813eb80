package e2e_test

import "github.com/ledgerd/ledgerd/ledger/attestation"

// A mergeKind is a way in which a branch comes to the mainline.
type mergeKind struct {
	name string
	// lengths are those of the branches that are made of a mainline without merges, by turns.
	lengths []int
	// isQueue reports whether the job runs before the mainline moves.
	isQueue bool
	merge   func(l *lane, m merging)
}

// A merging is a branch that comes to the mainline.
type merging struct {
	n     int
	tip   string // of the branch
	files string // the tree that the mainline has afterwards
}

func mergeKinds() []mergeKind {
	usual := []int{1, 1, 2, 1}
	return []mergeKind{
		{name: "merge", lengths: usual, merge: (*lane).byMerge},
		{name: "squash", lengths: usual, merge: (*lane).bySquash},
		{name: "rebase", lengths: []int{2, 1, 3, 2}, merge: (*lane).byRebase},
		{name: "update", lengths: usual, merge: (*lane).byUpdate},
		{name: "queue", lengths: usual, isQueue: true, merge: (*lane).byQueue},
		{name: "stack", lengths: []int{2, 2, 3}, merge: (*lane).byStack},
	}
}

// byMerge makes a merge commit.
func (l *lane) byMerge(m merging) {
	l.reviewBranch(m)
	c := l.git.commit(m.files, "Merge", l.main, m.tip)
	l.happened(attestation.Merged, c, m.tip, l.main)
	l.forward(c)
}

// bySquash makes one commit of a branch.
func (l *lane) bySquash(m merging) {
	l.reviewBranch(m)
	l.squash(m)
}

func (l *lane) squash(m merging) {
	c := l.git.commit(m.files, "Squash", l.main)
	l.happened(attestation.Squashed, c, m.tip, l.main)
	l.forward(c)
}

// byRebase puts the commits of a branch on the mainline. What git cannot rebase is squashed by hand.
func (l *lane) byRebase(m merging) {
	l.reviewBranch(m)
	last := l.git.rebase(m.tip, l.main)
	if last == "" {
		l.squash(m)
		return
	}
	if l.git.tree(last) != m.files { // somebody has edited it
		last = l.git.copy(last, m.files, l.git.git("rev-parse", last+"^"))
	}
	kind := attestation.Rebased
	if l.git.git("rev-parse", last+"^") == l.main {
		kind = attestation.Squashed
	}
	l.happened(kind, last, m.tip, l.main)
	l.forward(last)
}

// byUpdate merges the mainline into a branch after its review, or rebases the branch, once or twice. Then it is merged
// or squashed.
func (l *lane) byUpdate(m merging) {
	l.reviewBranch(m)
	heads := []string{m.tip}
	for _, onto := range l.updates(m) {
		head := heads[len(heads)-1]
		updated, kind := l.update(m, head, onto)
		if updated == "" {
			continue
		}
		l.pushed(m, updated)
		l.happened(kind, updated, head, onto)
		if kind == attestation.Rebased {
			heads = heads[:0] // the claims of the mainline are about the new head
		}
		heads = append(heads, updated)
		if m.n%2 == 0 {
			l.state("test", "ci", updated, true, "")
		}
		l.note(l.kind.name+": branch", updated)
	}

	head := heads[len(heads)-1]
	if m.n%2 == 0 {
		l.squash(merging{m.n, head, m.files})
	} else {
		c := l.git.commit(m.files, "Merge", l.main, head)
		l.happened(attestation.Merged, c, head, l.main)
		l.forward(c)
	}
	for _, source := range heads[:len(heads)-1] {
		kind := attestation.Squashed
		if m.n%2 != 0 {
			kind = attestation.Rebased
		}
		l.happened(kind, l.main, source, l.tips[len(l.tips)-2])
	}
}

// updates returns the commits of the mainline with which a branch is updated: the tip, an earlier one, or both.
func (l *lane) updates(m merging) (list []string) {
	if before := len(l.tips) - 2; before >= 0 && m.n%3 > 0 {
		list = append(list, l.tips[before])
	}
	if m.n%3 != 1 {
		list = append(list, l.main)
	}
	return list
}

// update brings a commit of the mainline to a branch. It returns "" if the branch has it.
func (l *lane) update(m merging, head, onto string) (updated string, kind attestation.MergeKind) {
	if _, has := l.git.try(nil, "merge-base", "--is-ancestor", onto, head); has {
		return "", ""
	}
	if m.n%5 == 4 {
		if rebased := l.git.rebase(head, onto); rebased != "" {
			return rebased, attestation.Rebased
		}
	}
	tree := l.git.cleanTree(onto, head)
	if tree == "" { // somebody resolves the conflict
		tree = m.files
	}
	return l.git.commit(tree, "Update", head, onto), attestation.Updated
}

// byQueue makes the commits of a queue, which tests them.
func (l *lane) byQueue(m merging) {
	if m.n%2 == 0 {
		l.bySquash(m)
	} else {
		l.byMerge(m)
	}
	l.state("test", "ci", l.main, true, "")
}

// byStack reviews a branch that is built on another one with the tip of that as its base. A squash of both to the
// mainline does not have the review; once the lower one is merged, that of the upper one does.
func (l *lane) byStack(m merging) {
	lower := l.git.git("rev-parse", m.tip+"^")
	lowerTree := l.git.cleanTree(l.main, lower)
	if _, isOn := l.git.try(nil, "merge-base", "--is-ancestor", lower, l.main); isOn || lowerTree == "" {
		l.bySquash(m)
		return
	}
	l.pushed(m, m.tip)
	l.state("test", "ci", m.tip, true, "")
	l.state("review", "reviewer", m.tip, true, lower)
	if both := l.git.cleanTree(l.main, m.tip); both != "" {
		both = l.git.commit(both, "Squash of both", l.main)
		l.happened(attestation.Squashed, both, m.tip, l.main)
		l.decoy = &decoy{name: "stack: squash of both", commit: both, parent: l.main, source: m.tip}
	}

	at := merging{m.n, lower, lowerTree}
	if l.reviewBranch(at); m.n%3 != 1 {
		c := l.git.commit(lowerTree, "Merge of the lower one", l.main, lower)
		l.happened(attestation.Merged, c, lower, l.main)
		l.forward(c)
	} else {
		l.squash(at)
	}
	l.squash(m)
}
