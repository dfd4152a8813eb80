package merges

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// explainPath finds the sources of commits that follow each other on the mainline or in a queue, oldest first.
func (f *finder) explainPath(ctx context.Context, path []step) error {
	rebased := f.rebases(path)
	for i, s := range path {
		if s.source != "" {
			if err := f.explainMerge(ctx, s); err != nil {
				return err
			}
			continue
		}
		isRebase, err := f.explainRebases(ctx, s, rebased[i])
		if err == nil && !isRebase && s.parent != "" {
			err = f.explainSquash(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// explainMerge claims a merge to the mainline, and how the source came about.
func (f *finder) explainMerge(ctx context.Context, s step) error {
	sources, err := f.explainSource(ctx, s.source, s.parent)
	if err != nil {
		return err
	}
	if _, err := f.try(ctx, attestation.Merged, s.sha, s.source, s.parent); err != nil {
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
	found, err := f.trySquash(ctx, s, f.similar(s.commit, touched))
	if err != nil || found {
		return err
	}
	if touched, err = f.oldNames(ctx, touched); err != nil || len(touched) == 0 {
		return err
	}
	_, err = f.trySquash(ctx, s, f.similar(s.commit, touched))
	return err
}

// trySquash claims a commit as the squash of the most similar branches. It reports whether git confirms any.
func (f *finder) trySquash(ctx context.Context, s step, list []*branch) (found bool, err error) {
	for _, b := range list[:min(len(list), maxTries)] {
		ok, err := f.explainOnto(ctx, attestation.Squashed, s.sha, s.parent, b.sha)
		if err != nil {
			return false, err
		}
		found = found || ok
	}
	if len(list) > maxTries && !found {
		f.undecided(fmt.Errorf("commit %s may be a squash of %d branches, and not of the %d most similar (claim it "+
			"with 'ledgerd attest --squash-of')", ledger.Short(s.sha), len(list), maxTries))
	}
	return found, nil
}

// explainRebases claims a commit as the last of branches that were rebased. It reports whether git confirms any.
func (f *finder) explainRebases(ctx context.Context, s step, list []rebase) (found bool, err error) {
	for _, r := range list[:min(len(list), maxTries)] {
		ok, err := f.explainOnto(ctx, attestation.Rebased, s.sha, r.onto, r.source)
		if err != nil {
			return false, err
		}
		found = found || ok
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

// try adds a claim if git confirms it and it is not made yet. It reports whether git confirms it.
func (f *finder) try(ctx context.Context, kind attestation.MergeKind, commit, source, parent string) (bool, error) {
	if commit == source || source == parent {
		return false, nil
	}
	key := claimKey{commit, source}
	if ok, found := f.tried[key]; found {
		return ok, nil
	}
	if f.query.IsClaimed != nil {
		if ok, err := f.query.IsClaimed(ctx, commit, source); err != nil || ok {
			f.tried[key] = ok
			return ok, err
		}
	}

	m, err := f.Check(ctx, gitrepo.Merge{Kind: kind, Commit: commit, Source: source, Parent: parent})
	switch {
	case gitrepo.IsNoMerge(err):
		f.tried[key] = false
	case gitrepo.IsIncomplete(err):
		f.tried[key] = false
		f.undecided(err)
	case err != nil:
		return false, err
	default:
		f.tried[key] = true
		f.Claims = append(f.Claims, m)
	}
	return f.tried[key], nil
}

// explainSource claims how a commit that comes to the mainline came about: by updates from it, or from earlier heads of
// its branch, or, if the forge has made it for a merge, from a branch. It returns the commits that were its sources,
// the nearest first. parent is the commit of the mainline that it comes to.
func (f *finder) explainSource(ctx context.Context, source, parent string) ([]string, error) {
	if list, found := f.sources[source]; found {
		return list, nil
	}
	f.sources[source] = nil
	list, err := f.log(ctx, "--topo-order", source, "^"+parent)
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
	isHead := slices.ContainsFunc(f.named, func(h Head) bool { return h.SHA == source })
	var path []step
	for _, c := range slices.Backward(commits) {
		if len(c.parents) != 1 || isHead {
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

// explainUpdates claims the merges of the mainline into a branch, oldest first. commits are those of the branch, the
// latest first.
func (f *finder) explainUpdates(ctx context.Context, commits []commit) error {
	for _, c := range slices.Backward(commits) {
		if parent, source, ok := f.update(c); ok {
			if _, err := f.try(ctx, attestation.Updated, c.sha, source, parent); err != nil {
				return err
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

	for _, source := range earlier[:min(len(earlier), maxTries)] {
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
		if err := f.explainUpdates(ctx, b.commits); err != nil {
			return err
		}
		if _, err := f.explainEarlier(ctx, b.sha, f.query.Mainline); err != nil {
			return err
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
	for _, tip := range tips[:min(len(tips), maxCommits)] {
		list, err := f.log(ctx, "--first-parent", tip.SHA, "^"+f.query.Mainline)
		if err != nil {
			return err
		}
		if len(list) == 0 || len(list) > maxCommits || len(list[len(list)-1].parents) == 0 ||
			!f.main[list[len(list)-1].parents[0]] {
			continue // it does not follow the mainline
		}

		var path []step
		for _, c := range slices.Backward(list) {
			s := step{commit: c}
			s.parent, s.source = sides(c, false)
			path = append(path, s)
		}
		if err := f.explainPath(ctx, path); err != nil {
			return err
		}
	}
	return nil
}
