package cmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// What the ledger takes of one commit at most.
const (
	maxAncestors = 500
	maxChanges   = 10_000
	maxMessage   = 64 << 10 // bytes
)

// addHistory adds what lies between the base and the commit: the commits, and
// what they change. A commit without a base changes all that it holds, unless
// the clone is shallow: then nobody here knows, and it comes without changes.
func (g gitRepo) addHistory(ctx context.Context, sha string, r *ledger.Registration) error {
	from, since := r.Base, []string{"^" + r.Base}
	if r.Base == "" {
		shallow, err := g.isShallow(ctx)
		if err != nil || shallow {
			return err
		}
		if from, err = g.emptyTree(ctx); err != nil {
			return err
		}
		since = nil
	}
	args := append([]string{"rev-list", "--max-count=" + strconv.Itoa(maxAncestors), sha}, since...)
	out, err := g.run(ctx, args...)
	if err != nil {
		return err
	}
	r.Ancestors = strings.Fields(out)
	if out, err = g.diff(ctx, from, sha); err != nil {
		return err
	}
	if r.Changes, err = parseRawDiff(out); err != nil {
		return fmt.Errorf("git diff-tree of %s: %w", short(sha), err)
	}
	if len(r.Changes) > maxChanges {
		r.Changes = nil
	}
	return nil
}

// diff returns what changed between two trees, in git's raw format. A partial
// clone lacks the content that tells a changed file with a new name from
// another: there only files that did not change otherwise count as renamed.
func (g gitRepo) diff(ctx context.Context, from, to string) (string, error) {
	tree := func(renames string) (string, error) {
		return g.run(ctx, "diff-tree", "-r", renames, "--ignore-submodules=none", "--raw", "-z", "--no-abbrev", from, to)
	}
	out, err := tree("-M50%")
	if err == nil {
		return out, nil
	}
	if exact, exactErr := tree("-M100%"); exactErr == nil {
		return exact, nil
	}
	return "", err
}

func (g gitRepo) isShallow(ctx context.Context) (bool, error) {
	answer, err := g.line(ctx, "rev-parse", "--is-shallow-repository")
	return answer == "true", err
}

// emptyTree returns the id of the tree without entries, which depends on the
// repository's hash function.
func (g gitRepo) emptyTree(ctx context.Context) (string, error) {
	format, err := g.line(ctx, "rev-parse", "--show-object-format")
	if format == "sha256" {
		return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321", err
	}
	return "4b825dc642cb6eb9a060e54bf8d69288fbee4904", err
}

// parseRawDiff reads what git diff-tree --raw -z prints: for each change
// ":<old mode> <mode> <old blob> <blob> <status>" NUL path NUL, and for a
// rename the old path before the new one.
func parseRawDiff(out string) ([]ledger.Change, error) {
	changes := []ledger.Change{}
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for len(fields) > 1 {
		meta := strings.Fields(strings.TrimPrefix(fields[0], ":"))
		if len(meta) != 5 {
			return nil, fmt.Errorf("%q is not a change in git's raw format", fields[0])
		}
		c := ledger.Change{
			OldMode: unlessZero(meta[0]),
			Mode:    unlessZero(meta[1]),
			OldBlob: unlessZero(meta[2]),
			Blob:    unlessZero(meta[3]),
			Status:  meta[4][:1],
			Path:    strings.ToValidUTF8(fields[1], "\uFFFD"),
		}
		fields = fields[2:]
		if c.Status == "R" {
			if len(fields) == 0 {
				return nil, fmt.Errorf("the rename of %q has no new path", c.Path)
			}
			c.OldPath, c.Path = c.Path, strings.ToValidUTF8(fields[0], "\uFFFD")
			fields = fields[1:]
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// unlessZero returns a mode or an object id, empty where git writes zeros for
// what is not there.
func unlessZero(s string) string {
	if strings.Trim(s, "0") == "" {
		return ""
	}
	return s
}
