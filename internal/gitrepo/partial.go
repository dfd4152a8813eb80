package gitrepo

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

// maxArgs is how many bytes of paths one git command gets.
const maxArgs = 24 << 10

// partOf returns what a partial clone can tell of the changes from one tree to
// another: all paths, and hunks where it has both contents of a file. The
// content that it lacks tells a changed file with a new name from another: where
// git asks for it, only files that did not change otherwise count as renamed.
func (o *objectStore) partOf(ctx context.Context, from, to string) ([]radar.Change, error) {
	renames := exactAndAlike
	changes, err := o.raw(ctx, rawDiff(renames, from, to))
	if err != nil {
		renames = exactOnly
		if changes, err = o.raw(ctx, rawDiff(renames, from, to)); err != nil {
			return nil, err
		}
	}
	here, err := o.withContent(ctx, changes)
	if err != nil {
		return nil, err
	}
	for _, paths := range portions(here) {
		known, err := o.record(ctx, patchDiff(renames, from, to, paths...))
		if err != nil {
			return nil, err
		}
		for _, k := range known {
			if c := here[k.Path]; c != nil && c.OldPath == k.OldPath && c.OldBlob == k.OldBlob && c.Blob == k.Blob {
				c.Hunks, c.Binary = k.Hunks, k.Binary
			}
		}
	}
	return changes, nil
}

func (o *objectStore) raw(ctx context.Context, diff []string) ([]radar.Change, error) {
	return o.stream(ctx, diff, (*diffReader).readRaw)
}

// withContent returns, by path, the changes of files that could have hunks and
// whose contents are here.
func (o *objectStore) withContent(ctx context.Context, changes []radar.Change) (map[string]*radar.Change, error) {
	var ids []string
	for i := range changes {
		if c := &changes[i]; isTextChange(c) && c.OldBlob != c.Blob {
			ids = append(ids, c.OldBlob, c.Blob)
		}
	}
	present, err := o.present(ctx, "blob", ids)
	if err != nil {
		return nil, err
	}
	here := make(map[string]*radar.Change)
	for i := range changes {
		if c := &changes[i]; isTextChange(c) && c.OldBlob != c.Blob && present[c.OldBlob] && present[c.Blob] {
			here[c.Path] = c
		}
	}
	return here, nil
}

// portions returns the paths of the changes, old ones too, in lists that one
// command line can take.
func portions(changes map[string]*radar.Change) [][]string {
	var lists [][]string
	room := 0
	for path, c := range changes {
		size := len(path) + len(c.OldPath) + 2
		if room < size || lists == nil {
			lists, room = append(lists, nil), max(maxArgs, size)
		}
		room -= size
		last := &lists[len(lists)-1]
		*last = append(*last, path)
		if c.OldPath != "" {
			*last = append(*last, c.OldPath)
		}
	}
	return lists
}
