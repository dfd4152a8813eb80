package merges

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
)

// A candidate is a branch that may be the source of a commit.
type candidate struct {
	*branch
	likeness int
}

// similar returns the branches that change some of the same files as a commit, or have it. Those that come first are
// by turns the most similar ones and the most similar ones with evidence, so that nobody can push copies of a branch
// before the one that was reviewed. Of branches without evidence, each tree is there once.
func (f *finder) similar(ctx context.Context, c commit, t touched) ([]candidate, error) {
	if err := f.readTouched(ctx); err != nil {
		return nil, err
	}
	var list []candidate
	for _, b := range f.branches {
		if f.contains(b, c) {
			continue
		}
		n := 0
		for name := range t {
			if b.touched[name] {
				n++
			}
		}
		if n > 0 || b.patches[c.patch] {
			list = append(list, candidate{b, 2*n - len(b.touched)})
		}
	}

	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.likeness, a.likeness), cmp.Compare(b.Evidence, a.Evidence))
	})
	trees := make(map[string]bool)
	list = slices.DeleteFunc(list, func(c candidate) bool {
		if c.Evidence != NoEvidence {
			return false
		}
		isCopy := trees[c.tree]
		trees[c.tree] = true
		return isCopy
	})
	evident := slices.Clone(list)
	slices.SortStableFunc(evident, func(a, b candidate) int { return cmp.Compare(b.Evidence, a.Evidence) })
	return byTurns(evident, list), nil
}

// contains reports whether a branch begins at a commit of the mainline, or later: then it was not merged there. Without
// this, the first search would spend all checks on pairs of old commits and new branches.
func (f *finder) contains(b *branch, c commit) bool {
	at, isOnPath := f.places[c.sha]
	base, isKnown := f.places[b.base]
	return isOnPath && isKnown && base >= at
}

// byTurns returns the candidates of two lists of the same ones, by turns from each.
func byTurns(a, b []candidate) (list []candidate) {
	seen := make(map[*branch]bool, len(a))
	for i := range a {
		for _, c := range []candidate{a[i], b[i]} {
			if !seen[c.branch] {
				seen[c.branch] = true
				list = append(list, c)
			}
		}
	}
	return list
}

// readTouched reads once what the branches change since their merge bases with the mainline.
func (f *finder) readTouched(ctx context.Context) error {
	if f.touchRead {
		return nil
	}
	f.touchRead = true
	for _, b := range f.branches {
		if err := f.settle(ctx, f.readTouchedBy(ctx, b)); err != nil {
			return err
		}
	}
	return nil
}

func (f *finder) readTouchedBy(ctx context.Context, b *branch) error {
	base, err := f.MergeBase(ctx, f.query.Mainline, b.SHA)
	if err != nil || base == "" {
		return err
	}
	b.base = base
	b.touched, err = f.difference(ctx, base, b.SHA)
	return err
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
		out, err := f.Read(ctx, "log", "--first-parent", "--diff-merges=first-parent", "--max-count="+
			strconv.Itoa(f.limits.commits), "--format=", "-M", "--diff-filter=R", "--name-status", f.query.Mainline)
		if err != nil {
			return nil, err
		}
		f.renamed = make(map[string]string)
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
