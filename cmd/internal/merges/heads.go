package merges

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger"
)

// headRefs returns the refs at which clones and forges have heads of branches, as patterns.
func headRefs() []string {
	return []string{remotes, "refs/pull/*/head", "refs/merge-requests/*/head", "refs/pull-requests/*/from", "refs/changes"}
}

// queueRefs returns those of merge queues and trains.
func queueRefs() []string {
	return []string{remotes + queueBranches, "refs/heads/" + queueBranches, "refs/merge-requests/*/train"}
}

const (
	remotes       = "refs/remotes/origin/"
	queueBranches = "gh-readonly-queue/"
)

// readNamed reads which heads branches have or had, as the query and the clone say, of those that the clone has.
func (f *finder) readNamed(ctx context.Context, g gitrepo.Repo) error {
	refs, err := f.refs(ctx, g, headRefs())
	if err != nil {
		return err
	}
	f.named = slices.Concat(f.query.Heads, slices.DeleteFunc(refs, func(h Head) bool {
		return h.Branch == "HEAD" || h.Branch == f.query.Branch || strings.HasPrefix(h.Branch, queueBranches)
	}))
	f.named = slices.DeleteFunc(f.named, func(h Head) bool { return !ledger.IsCommit(h.SHA) })
	ids := make([]string, len(f.named))
	for i, h := range f.named {
		ids[i] = h.SHA
	}
	present, err := f.Present(ctx, ids)
	if err != nil {
		return err
	}

	f.named = slices.DeleteFunc(f.named, func(h Head) bool { return !present[h.SHA] })
	for i := range f.named {
		if f.named[i].Branch == f.query.Branch {
			f.named[i].Branch = "" // anybody may register a commit as the mainline's
		}
	}
	return nil
}

// readHeads reads the commits of the branches with a head. If there are too many, the ones with evidence come first,
// and then the latest.
func (f *finder) readHeads(ctx context.Context) error {
	list := slices.Clone(f.named)
	slices.SortStableFunc(list, func(a, b Head) int { return cmp.Compare(b.Evidence, a.Evidence) })
	seen := make(map[string]bool)
	list = slices.DeleteFunc(list, func(h Head) bool {
		isNone := seen[h.SHA] || f.main[h.SHA]
		seen[h.SHA] = true
		return isNone
	})

	return f.readBranches(ctx, f.atMost(list))
}

// atMost cuts a list of heads, which begins with those that have been reviewed, to the limit. Half of it is for others:
// the heads that updates make are new.
func (f *finder) atMost(list []Head) []Head {
	excess := len(list) - f.limits.heads
	if excess <= 0 {
		return list
	}
	f.undecided(fmt.Errorf("%d heads of branches were not searched: only the latest %d are", excess, f.limits.heads))
	reviewed := slices.IndexFunc(list, func(h Head) bool { return h.Evidence < Reviewed })
	if reviewed < 0 {
		reviewed = len(list)
	}
	first := min(reviewed, max(f.limits.heads/2, f.limits.heads-(len(list)-reviewed)))
	return slices.Concat(list[:first], list[reviewed:reviewed+f.limits.heads-first])
}

// refs lists refs of the clone, those with the latest commits first.
func (f *finder) refs(ctx context.Context, g gitrepo.Repo, patterns []string) ([]Head, error) {
	args := []string{"for-each-ref", "--sort=-committerdate", "--count=" + strconv.Itoa(10*f.limits.heads),
		"--format=%(objectname) %(objecttype) %(refname)"}
	out, err := g.Read(ctx, append(args, patterns...)...)
	if err != nil {
		return nil, err
	}
	var list []Head
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[1] != "commit" {
			continue
		}
		name, isBranch := strings.CutPrefix(fields[2], remotes)
		if !isBranch {
			name = ""
		}
		list = append(list, Head{Branch: name, SHA: fields[0]})
	}
	return list, nil
}

// readBranches reads the commits of branches that the mainline lacks.
func (f *finder) readBranches(ctx context.Context, heads []Head) error {
	if len(heads) == 0 {
		return nil
	}
	var args []string
	for _, h := range heads {
		args = append(args, h.SHA)
	}
	list, err := f.branchLog(ctx, f.limits.older, args...)
	if err != nil {
		return err
	}

	isCut := len(list) == f.limits.older // one branch may be all of it
	long := 0
	for _, h := range heads {
		if isCut {
			if list, err = f.branchLog(ctx, f.limits.branch+1, h.SHA); err != nil {
				return err
			}
		}

		b := newBranch(h, list, f.limits.branch)
		if len(b.commits) > 0 {
			f.branches = append(f.branches, b)
		}
		if len(b.commits) == f.limits.branch {
			long++
		}
	}

	if long > 0 {
		f.undecided(fmt.Errorf("branches at least %d commits ahead of %s: %d; only their latest commits were searched",
			f.limits.branch, f.query.Branch, long))
	}
	return nil
}

// branchLog reads commits that the mainline lacks, at most a number of them, the latest first.
func (f *finder) branchLog(ctx context.Context, most int, heads ...string) ([]commit, error) {
	args := append([]string{"--topo-order", "--max-count=" + strconv.Itoa(most)}, heads...)
	return f.log(ctx, append(args, "^"+f.query.Mainline)...)
}

// newBranch returns the branch with a head, and the latest of its commits that the mainline lacks, up to a number.
func newBranch(h Head, latestFirst []commit, most int) *branch {
	b := &branch{Head: h, patches: make(map[string]bool)}
	reached := map[string]bool{h.SHA: true}
	for _, c := range latestFirst {
		if !reached[c.sha] || len(b.commits) == most {
			continue
		}
		if c.sha == h.SHA {
			b.tree = c.tree
		}
		b.commits = append(b.commits, c)
		if len(c.parents) < 2 {
			b.singles++
			b.patches[c.patch] = true
		}
		for _, parent := range c.parents {
			reached[parent] = true
		}
	}
	return b
}

// update returns the parents of a commit that merges the mainline into a branch: exactly one is on the mainline.
func (f *finder) update(c commit) (parent, source string, ok bool) {
	if len(c.parents) != 2 || f.main[c.parents[0]] == f.main[c.parents[1]] {
		return "", "", false
	}
	parent, source = sides(c, f.main[c.parents[1]])
	return parent, source, true
}

// below returns the earlier heads of a branch from which consecutive updates led to its head, the newest first.
func (f *finder) below(head string, commits []commit) (list []string) {
	for _, c := range commits {
		if c.sha != head {
			continue
		}
		_, source, ok := f.update(c)
		if !ok {
			break
		}
		list = append(list, source)
		head = source
	}
	return list
}

// earlier returns the heads that the branches with a head have had, those with evidence first, and then the latest.
func (f *finder) earlier(head string) (list []string) {
	names := make(map[string]bool)
	for _, h := range f.named {
		if h.SHA == head && h.Branch != "" {
			names[h.Branch] = true
		}
	}
	var heads []Head
	for _, h := range f.named {
		if names[h.Branch] && h.SHA != head {
			heads = append(heads, h)
		}
	}
	slices.SortStableFunc(heads, func(a, b Head) int { return cmp.Compare(b.Evidence, a.Evidence) })
	for _, h := range heads {
		list = append(list, h.SHA)
	}
	return list
}

// rebases returns those steps of a path, by index, that are the last of several commits of a branch.
func (f *finder) rebases(path []step) map[int][]rebase {
	result := make(map[int][]rebase)
	for _, b := range f.branches {
		for last := len(path) - 1; last > 0; last-- {
			first := last
			for first >= 0 && last-first < b.singles && path[first].source == "" && b.patches[path[first].patch] {
				first--
			}
			if last-first > 1 && path[first+1].parent != "" {
				result[last] = append(result[last], rebase{path[first+1].parent, b.SHA})
			}
			last = min(last, first+1)
		}
	}
	return result
}
