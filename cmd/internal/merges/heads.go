package merges

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
)

// headRefs returns the refs at which clones and forges have heads of branches, as patterns.
func headRefs() []string {
	return []string{remotes, "refs/pull/*/head", "refs/merge-requests/*/head", "refs/pull-requests/*/from", "refs/changes"}
}

// queueRefs returns those of merge queues and trains.
func queueRefs() []string {
	return []string{remotes + "gh-readonly-queue", "refs/heads/gh-readonly-queue", "refs/merge-requests/*/train"}
}

const remotes = "refs/remotes/origin/"

// readHeads reads the heads of branches: those of the query and those of the clone, the latest first.
func (f *finder) readHeads(ctx context.Context, g gitrepo.Repo) error {
	refs, err := f.refs(ctx, g, headRefs())
	if err != nil {
		return err
	}
	f.named = append(slices.Clone(f.query.Heads), refs...)
	list := slices.Clone(f.named)
	seen := make(map[string]bool)
	list = slices.DeleteFunc(list, func(h Head) bool {
		isDouble := seen[h.SHA] || f.main[h.SHA]
		seen[h.SHA] = true
		return isDouble
	})
	if len(list) > maxHeads {
		f.undecided(fmt.Errorf("%d heads of branches were not searched: only the latest %d are", len(list)-maxHeads,
			maxHeads))
		list = list[:maxHeads]
	}
	return f.readBranches(ctx, list)
}

// refs lists refs of the clone, those with the latest commits first.
func (f *finder) refs(ctx context.Context, g gitrepo.Repo, patterns []string) ([]Head, error) {
	args := []string{"for-each-ref", "--sort=-committerdate", "--count=" + strconv.Itoa(10*maxHeads),
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
		list = append(list, Head{name, fields[0]})
	}
	return list, nil
}

// readBranches reads the commits of branches that the clone has and the mainline lacks.
func (f *finder) readBranches(ctx context.Context, heads []Head) error {
	ids := make([]string, len(heads))
	for i, h := range heads {
		ids[i] = h.SHA
	}
	present, err := f.Present(ctx, ids)
	if err != nil {
		return err
	}
	heads = slices.DeleteFunc(heads, func(h Head) bool { return !present[h.SHA] })
	if len(heads) == 0 {
		return nil
	}

	args := []string{"--topo-order"}
	for _, h := range heads {
		args = append(args, h.SHA)
	}
	list, err := f.log(ctx, append(args, "^"+f.query.Mainline)...)
	if err != nil {
		return err
	}
	for _, h := range heads {
		if b := newBranch(h, list); len(b.commits) > 0 {
			f.branches = append(f.branches, b)
		}
	}
	return f.readTouched(ctx)
}

// newBranch returns the branch with a head, from the commits that the mainline lacks, the latest first.
func newBranch(h Head, latestFirst []commit) *branch {
	b := &branch{sha: h.SHA, name: h.Branch, patches: make(map[string]bool)}
	reached := map[string]bool{h.SHA: true}
	for _, c := range latestFirst {
		if !reached[c.sha] {
			continue
		}
		b.commits = append(b.commits, c)
		if len(c.parents) < 2 {
			b.patches[c.patch] = true
		}
		for _, parent := range c.parents {
			reached[parent] = true
		}
	}
	return b
}

// readTouched reads what the branches change since their merge bases with the mainline.
func (f *finder) readTouched(ctx context.Context) error {
	for _, b := range f.branches {
		base, err := f.MergeBase(ctx, f.query.Mainline, b.sha)
		if err != nil {
			return err
		}
		if base == "" {
			continue
		}
		if b.touched, err = f.difference(ctx, base, b.sha); err != nil {
			return err
		}
	}
	return nil
}

// similar returns the branches that change some of the same files as a commit, or have it, the most similar first.
func (f *finder) similar(c commit, t touched) []*branch {
	common := make(map[*branch]int)
	var list []*branch
	for _, b := range f.branches {
		n := 0
		for name := range t {
			if b.touched[name] {
				n++
			}
		}
		if n > 0 || b.patches[c.patch] {
			common[b] = 2*n - len(b.touched)
			list = append(list, b)
		}
	}
	slices.SortStableFunc(list, func(a, b *branch) int { return cmp.Compare(common[b], common[a]) })
	return list
}

// difference reads what changes between two commits.
func (f *finder) difference(ctx context.Context, from, to string) (touched, error) {
	out, err := f.Read(ctx, "diff-tree", "-r", "--raw", "--no-abbrev", "--no-renames", from, to)
	if err != nil {
		return nil, err
	}
	t := make(touched)
	for line := range strings.Lines(out) {
		meta, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		fields := strings.Fields(meta) // old mode, new mode, old blob, new blob, status
		if len(fields) != 5 {
			continue
		}
		t[path] = true
		if fields[4] == "M" {
			t[fields[2]+" "+fields[3]] = true
		}
	}
	return t, nil
}

// oldNames returns the names that files which the mainline has renamed lately had before, of those that are touched.
func (f *finder) oldNames(ctx context.Context, t touched) (touched, error) {
	if f.renamed == nil {
		f.renamed = make(map[string]string)
		out, err := f.Read(ctx, "log", "--first-parent", "--diff-merges=first-parent", "--max-count="+
			strconv.Itoa(maxCommits), "--format=", "-M", "--diff-filter=R", "--name-status", f.query.Mainline)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			if fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(fields) == 3 {
				f.renamed[fields[2]] = fields[1]
			}
		}
	}
	old := make(touched)
	for name := range t {
		if before := f.renamed[name]; before != "" {
			old[before] = true
		}
	}
	return old, nil
}

// update returns the parents of a commit that merges the mainline into a branch: exactly one is on the mainline.
func (f *finder) update(c commit) (parent, source string, ok bool) {
	if len(c.parents) != 2 || f.main[c.parents[0]] == f.main[c.parents[1]] {
		return "", "", false
	}
	parent, source = sides(c, f.main[c.parents[1]])
	return parent, source, true
}

// below returns the commits of a branch that updates with nothing between them have made into its head.
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

// earlier returns the heads that the branches with a head have had, the latest first.
func (f *finder) earlier(head string) (list []string) {
	names := make(map[string]bool)
	for _, h := range f.named {
		if h.SHA == head && h.Branch != "" {
			names[h.Branch] = true
		}
	}
	for _, h := range f.named {
		if names[h.Branch] && h.SHA != head {
			list = append(list, h.SHA)
		}
	}
	return list
}

// rebases returns those steps of a path, by index, that are the last of several commits of a branch.
func (f *finder) rebases(path []step) map[int][]rebase {
	result := make(map[int][]rebase)
	for _, b := range f.branches {
		for last := len(path) - 1; last > 0; last-- {
			first := last
			for first >= 0 && path[first].source == "" && b.patches[path[first].patch] {
				first--
			}
			if last-first > 1 && path[first+1].parent != "" {
				result[last] = append(result[last], rebase{path[first+1].parent, b.sha})
			}
			last = min(last, first+1)
		}
	}
	return result
}
