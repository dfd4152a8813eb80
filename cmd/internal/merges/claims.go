package merges

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// explainPath finds the sources of commits that follow each other on the mainline or in a queue, oldest first.
func (f *finder) explainPath(ctx context.Context, path []step) error {
	rebased := f.rebases(path)
	for i, s := range path {
		if s.parent != "" {
			f.Ranges = append(f.Ranges, Range{s.sha, s.parent})
		}
		if err := f.settle(ctx, f.explainStep(ctx, s, rebased[i])); err != nil {
			return err
		}
	}
	return nil
}

// explainStep finds the sources of a commit. rebased are the branches of which it may be the last commit.
func (f *finder) explainStep(ctx context.Context, s step, rebased []rebase) error {
	if s.source != "" {
		return f.explainMerge(ctx, s)
	}
	isRebase, err := f.explainRebases(ctx, s, rebased)
	if err == nil && !isRebase && s.parent != "" {
		err = f.explainSquash(ctx, s)
	}
	return err
}

// explainMerge claims a merge to the mainline, and how the source came about.
func (f *finder) explainMerge(ctx context.Context, s step) error {
	sources, sourceErr := f.explainSource(ctx, s.source, s.parent)
	_, err := f.try(ctx, attestation.Merged, s.sha, s.source, s.parent)
	if err := errors.Join(sourceErr, err); err != nil {
		return err
	}
	return f.passOn(ctx, attestation.Rebased, s.sha, s.parent, sources)
}

// explainSquash claims a commit with one parent as the squash of the branches that have its changes.
func (f *finder) explainSquash(ctx context.Context, s step) error {
	touched, err := f.difference(ctx, s.parent, s.sha)
	if err != nil {
		return err
	}
	found, err := f.trySquash(ctx, s, touched)
	if err != nil || found {
		return err
	}
	if touched, err = f.oldNames(ctx, touched); err != nil || len(touched) == 0 {
		return err
	}
	_, err = f.trySquash(ctx, s, touched)
	return err
}

// trySquash claims a commit as the squash of the branches that are the most similar to it. It reports whether git
// confirms any.
func (f *finder) trySquash(ctx context.Context, s step, t touched) (found bool, err error) {
	list, err := f.similar(ctx, s.commit, t)
	if err != nil {
		return false, err
	}
	tried := list[:min(len(list), f.limits.tries)]
	likeness := 0 // of the least similar one that git confirms; of a source that changes the same files, it is not less

	for _, c := range tried {
		ok, err := f.explainOnto(ctx, attestation.Squashed, s.sha, s.parent, c.SHA)
		if err != nil {
			return false, err
		}
		if ok && (!found || c.likeness < likeness) {
			found, likeness = true, c.likeness
		}
	}

	more := slices.DeleteFunc(list[len(tried):], func(c candidate) bool { return c.likeness < likeness })
	if len(more) > 0 {
		f.undecided(fmt.Errorf("commit %s may be a squash of any of %d branches, and only the %d most similar were "+
			"checked (claim others with 'ledgerd attest --squash-of')", ledger.Short(s.sha), len(tried)+len(more), len(tried)))
	}
	return found, nil
}

// explainRebases claims a commit as the last of branches that were rebased. It reports whether git confirms any.
func (f *finder) explainRebases(ctx context.Context, s step, list []rebase) (found bool, err error) {
	for _, r := range list[:min(len(list), f.limits.tries)] {
		ok, err := f.explainOnto(ctx, attestation.Rebased, s.sha, r.onto, r.source)
		if err != nil {
			return false, err
		}
		found = found || ok
	}
	if more := len(list) - f.limits.tries; more > 0 {
		f.undecided(fmt.Errorf("commit %s may be a rebase of %d more branches than the %d that were checked",
			ledger.Short(s.sha), more, f.limits.tries))
	}
	return found, nil
}

// explainOnto claims that a commit brings a source to the mainline, and how the source came about. It reports whether
// git confirms it.
func (f *finder) explainOnto(ctx context.Context, kind attestation.MergeKind, commit, parent, source string) (bool,
	error) {
	at := len(f.Claims)
	ok, err := f.try(ctx, kind, commit, source, parent)
	if err != nil || !ok {
		return false, err
	}
	own := f.Claims[at:len(f.Claims):len(f.Claims)]
	f.Claims = f.Claims[:at:at] // those about the source are older
	sources, err := f.explainSource(ctx, source, parent)
	f.Claims = append(f.Claims, own...)
	if err != nil {
		return false, err
	}
	return true, f.passOn(ctx, kind, commit, parent, sources)
}

// passOn claims that a commit also brings the sources of its source, since evidence carries over one claim only.
func (f *finder) passOn(
	ctx context.Context, kind attestation.MergeKind, commit, parent string, sources []string,
) error {
	for _, source := range sources {
		if _, err := f.try(ctx, kind, commit, source, parent); err != nil {
			return err
		}
	}
	return nil
}

// try adds a claim if its parent is on the mainline or in a queue, if git confirms it, and if it is not made yet. It
// reports whether the commit is known to have the source.
func (f *finder) try(ctx context.Context, kind attestation.MergeKind, commit, source, parent string) (bool, error) {
	claim, both := Claim{kind, source, parent}, pair{commit, source}
	if commit == source || source == parent || !f.main[parent] && !f.queued[parent] || f.refuted[claimKey{commit, claim}] {
		return false, nil
	}
	if f.confirmed[both] {
		return true, nil
	}
	made, err := f.claimsOf(ctx, commit)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(made, func(m Claim) bool { return f.isKept(m, claim) }) {
		f.confirmed[both] = true
		return true, nil
	}
	if f.isEnough(commit, len(made)) {
		return false, nil
	}

	m, err := f.Check(ctx, gitrepo.Merge{Kind: kind, Commit: commit, Source: source, Parent: parent})
	if err == nil {
		f.confirmed[both] = true
		f.claimed[commit]++
		f.Claims = append(f.Claims, m)
		return true, nil
	}
	f.refuted[claimKey{commit, claim}] = true
	if gitrepo.IsNoMerge(err) {
		return false, nil
	}
	return false, f.settle(ctx, err)
}

// isKept reports whether a claim that was made stays, although a search has found another one of the same commit: it is
// the same, or it is about a commit of the mainline before the one that was found. A search that begins within a rebase
// sees only its last commits, and the ledger takes the later of two claims about a source.
func (f *finder) isKept(made, found Claim) bool {
	if made == found {
		return true
	}
	isOnto := made.Kind == attestation.Rebased &&
		(found.Kind == attestation.Rebased || found.Kind == attestation.Squashed)
	at, isOnPath := f.places[made.Parent]
	return isOnto && made.Source == found.Source && f.main[made.Parent] && (!isOnPath || at < f.places[found.Parent])
}

// isEnough reports whether a commit has all the claims that it may have, or the search has made all checks that it may.
// made is the number of claims that were made before.
func (f *finder) isEnough(commit string, made int) bool {
	n := made + f.claimed[commit]
	switch {
	case f.full[commit] || f.checks > f.limits.checks:
		return true // which was noted
	case n >= f.limits.claims:
		f.full[commit] = true
		f.undecided(fmt.Errorf("commit %s may have more sources than the %d that are claimed", ledger.Short(commit), n))
		return true
	}
	if f.checks++; f.checks > f.limits.checks {
		f.undecided(fmt.Errorf("more than %d pairs of commits may be merges: the others were not checked", f.limits.checks))
		return true
	}
	return false
}

// explainSource claims how a commit that comes to the mainline came about: by updates from it, or from earlier heads of
// its branch, or, if the forge has made it for a merge, from a branch. It returns the commits that were its sources,
// the nearest first. parent is the commit of the mainline that it comes to.
func (f *finder) explainSource(ctx context.Context, source, parent string) ([]string, error) {
	if list, found := f.sources[source]; found {
		return list, nil
	}
	f.sources[source] = nil
	list, err := f.log(ctx, "--topo-order", "--max-count="+strconv.Itoa(f.limits.branch), source, "^"+parent)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if err := f.explainUpdates(ctx, list); err != nil {
		return nil, err
	}
	earlier, err := f.explainEarlier(ctx, source, parent)
	if err != nil {
		return nil, err
	}
	made, err := f.explainMade(ctx, source, list)
	f.sources[source] = slices.Concat(f.below(source, list), earlier, made)
	return f.sources[source], err
}

// explainMade claims a commit that no branch has had as the squash or the rebase of a branch. commits are those that it
// brings to the mainline, the latest first.
func (f *finder) explainMade(ctx context.Context, source string, commits []commit) (sources []string, err error) {
	if slices.ContainsFunc(f.named, func(h Head) bool { return h.SHA == source }) {
		return nil, nil
	}
	var path []step
	for _, c := range slices.Backward(commits) {
		if len(c.parents) != 1 {
			return nil, nil
		}
		path = append(path, step{commit: c, parent: c.parents[0]})
	}

	last := len(path) - 1
	at := len(f.Claims)
	isRebase, err := f.explainRebases(ctx, path[last], f.rebases(path)[last])
	if err == nil && !isRebase && len(path) == 1 {
		err = f.explainSquash(ctx, path[last])
	}
	for _, m := range f.Claims[at:] {
		if m.Commit == source {
			sources = append(sources, m.Source)
		}
	}
	return sources, err
}

// explainUpdates claims the merges of the mainline into a branch, oldest first, and the last of several as updates of
// what the first had, too. commits are those of the branch, the latest first.
func (f *finder) explainUpdates(ctx context.Context, commits []commit) error {
	for _, c := range slices.Backward(commits) {
		if parent, source, ok := f.update(c); ok {
			for _, source := range append([]string{source}, f.below(source, commits)...) {
				if _, err := f.try(ctx, attestation.Updated, c.sha, source, parent); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// explainEarlier claims a head of a branch as the rebase of its earlier heads. It returns those.
func (f *finder) explainEarlier(ctx context.Context, head, parent string) (sources []string, err error) {
	earlier := f.earlier(head)
	if len(earlier) == 0 {
		return nil, nil
	}
	onto, err := f.MergeBase(ctx, parent, head)
	if err != nil || onto == "" || onto == head {
		return nil, err
	}

	for _, source := range earlier[:min(len(earlier), f.limits.tries)] {
		ahead, err := f.MergeBase(ctx, source, head)
		if err != nil {
			return nil, err
		}
		if ahead == source || ahead == head {
			continue
		}
		ok, err := f.try(ctx, attestation.Rebased, head, source, onto)
		if err != nil {
			return nil, err
		}
		if ok {
			sources = append(sources, source)
		}
	}
	return sources, nil
}

// explainHeads claims the updates of branches that are not merged, and their rebases.
func (f *finder) explainHeads(ctx context.Context) error {
	for _, b := range slices.Backward(f.branches) {
		err := f.explainUpdates(ctx, b.commits)
		if err == nil {
			_, err = f.explainEarlier(ctx, b.SHA, f.query.Mainline)
		}
		if err := f.settle(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// addHeads adds the ranges of the heads that the ledger knows and the mainline lacks.
func (f *finder) addHeads(ctx context.Context) error {
	if err := f.readTouched(ctx); err != nil {
		return err
	}
	isKnown := make(map[string]bool)
	for _, h := range f.query.Heads {
		isKnown[h.SHA] = true
	}
	for _, b := range slices.Backward(f.branches) {
		if isKnown[b.SHA] && b.base != "" {
			f.Ranges = append(f.Ranges, Range{b.SHA, b.base})
		}
	}
	return nil
}

// explainQueues finds the sources of the commits in merge queues and trains, which follow the mainline.
func (f *finder) explainQueues(ctx context.Context, g gitrepo.Repo) error {
	tips, err := f.refs(ctx, g, queueRefs())
	if err != nil {
		return err
	}
	if more := len(tips) - f.limits.commits; more > 0 {
		f.undecided(fmt.Errorf("%d refs of queues were not searched: only the latest %d are", more, f.limits.commits))
	}
	for _, tip := range tips[:min(len(tips), f.limits.commits)] {
		if err := f.settle(ctx, f.explainQueue(ctx, tip.SHA)); err != nil {
			return err
		}
	}
	return nil
}

// explainQueue finds the sources of the commits in a queue. It is a no-op if they do not follow the mainline.
func (f *finder) explainQueue(ctx context.Context, tip string) error {
	list, err := f.log(ctx, "--first-parent", "--max-count="+strconv.Itoa(f.limits.commits), tip, "^"+f.query.Mainline)
	if err != nil || len(list) == 0 {
		return err
	}
	first := list[len(list)-1]
	if len(first.parents) == 0 || !f.main[first.parents[0]] {
		return nil
	}
	var path []step
	for _, c := range slices.Backward(list) {
		s := step{commit: c}
		s.parent, s.source = sides(c, false)
		path = append(path, s)
		f.queued[c.sha] = true
	}
	return f.explainPath(ctx, path)
}
