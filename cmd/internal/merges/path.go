package merges

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger"
)

// log reads commits, as git log lists them.
func (f *finder) log(ctx context.Context, args ...string) ([]commit, error) {
	args = append([]string{"log", "-z", "--no-show-signature", "--format=%H%n%P%n%an%n%ae%n%at%n%s"}, args...)
	out, err := f.Read(ctx, args...)
	if err != nil {
		return nil, err
	}
	var list []commit
	for text := range strings.SplitSeq(out, "\x00") {
		fields := strings.SplitN(text, "\n", 3)
		if len(fields) != 3 {
			continue
		}
		list = append(list, commit{fields[0], strings.Fields(fields[1]), fields[2]})
	}
	return list, nil
}

// newCommits returns the commits of the mainline that no search has handled, oldest first.
func (f *finder) newCommits(ctx context.Context) ([]step, error) {
	path, err := f.steps(ctx, f.query.Mainline)
	if err != nil {
		return nil, err
	}
	for i, s := range path {
		if f.query.IsDone == nil {
			break
		}
		done, err := f.query.IsDone(ctx, s.sha)
		if err != nil {
			return nil, err
		}
		if done {
			path = path[:i]
			break
		}
	}

	slices.Reverse(path)
	if len(path) > 0 && path[0].parent == "" {
		if shallow, err := f.IsShallow(ctx); err != nil || shallow {
			f.undecided(fmt.Errorf("the clone ends at %s: %w", ledger.Short(path[0].sha), gitrepo.ErrDeepen))
			return path, err
		}
	}
	return path, nil
}

// steps returns the last commits of the mainline, the latest first, and reads which commits are on it.
func (f *finder) steps(ctx context.Context, tip string) (path []step, err error) {
	f.main = make(map[string]bool)
	for tip != "" && len(path) < maxCommits {
		list, err := f.log(ctx, "--first-parent", "--max-count="+strconv.Itoa(maxCommits-len(path)), tip)
		if err != nil {
			return nil, err
		}

		tip = ""
		for _, c := range list {
			s := step{commit: c}
			swapped, err := f.isSwapped(ctx, c)
			if err != nil {
				return nil, err
			}
			if s.parent, s.source = sides(c, swapped); swapped {
				tip = s.parent
			}
			path = append(path, s)
			f.main[c.sha] = true
			if swapped {
				break
			}
		}
	}
	if len(path) == 0 {
		return nil, nil
	}
	return path, f.readOlder(ctx, path[len(path)-1].parent)
}

// maxOlder is how many commits of the mainline a branch may be behind.
const maxOlder = 20_000

// readOlder adds a commit of the mainline and those before it.
func (f *finder) readOlder(ctx context.Context, tip string) error {
	if tip == "" {
		return nil
	}
	out, err := f.Read(ctx, "rev-list", "--first-parent", "--max-count="+strconv.Itoa(maxOlder), tip)
	for sha := range strings.FieldsSeq(out) {
		f.main[sha] = true
	}
	return err
}

// sides returns the parent of a commit that is on the mainline, and the other one.
func sides(c commit, swapped bool) (parent, source string) {
	switch {
	case len(c.parents) == 0:
		return "", ""
	case len(c.parents) != 2:
		return c.parents[0], ""
	case swapped:
		return c.parents[1], c.parents[0]
	}
	return c.parents[0], c.parents[1]
}

// isSwapped reports whether the second parent of a merge is the one that was on the mainline: it has an earlier tip
// of the mainline that the first one lacks, and not the other way round. So it is if somebody has merged the mainline
// into a branch, and moved the mainline forward to that.
func (f *finder) isSwapped(ctx context.Context, c commit) (bool, error) {
	if len(c.parents) != 2 || len(f.query.Tips) == 0 || slices.Contains(f.query.Tips, c.parents[0]) {
		return false, nil
	}
	out, err := f.Read(ctx, "rev-list", "--left-right", "--max-count="+strconv.Itoa(maxOlder),
		c.parents[0]+"..."+c.parents[1])
	left, right := false, false
	for line := range strings.FieldsSeq(out) {
		if slices.Contains(f.query.Tips, line[1:]) {
			left, right = left || line[0] == '<', right || line[0] == '>'
		}
	}
	return right && !left, err
}
