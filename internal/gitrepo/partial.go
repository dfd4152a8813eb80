package gitrepo

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

// maxArgs limits the paths on one git command line, in bytes.
const maxArgs = 24 << 10

// partialChanges returns the changes from one tree to another in a partial clone:
// all paths, and the hunks of files whose old and new content it has. Git needs
// content to find files that were renamed and changed. If it lacks some, only
// unchanged files count as renamed.
func (o *objectStore) partialChanges(ctx context.Context, from, to string) ([]radar.Change, error) {
	renames := exactAndSimilar
	changes, err := o.raw(ctx, rawDiff(renames, from, to))
	if err != nil {
		renames = exactOnly
		if changes, err = o.raw(ctx, rawDiff(renames, from, to)); err != nil {
			return nil, err
		}
	}

	complete, err := o.withContent(ctx, changes)
	if err != nil {
		return nil, err
	}
	for _, paths := range batchPaths(complete) {
		patched, err := o.record(ctx, patchDiff(renames, from, to, paths...))
		if err != nil {
			return nil, err
		}
		for _, p := range patched {
			if c := complete[p.Path]; c != nil && c.OldPath == p.OldPath && c.OldBlob == p.OldBlob && c.Blob == p.Blob {
				c.Hunks, c.Binary = p.Hunks, p.Binary
			}
		}
	}
	return changes, nil
}

func (o *objectStore) raw(ctx context.Context, diff []string) ([]radar.Change, error) {
	return o.stream(ctx, diff, (*diffReader).readRaw)
}

// withContent returns the changes that can have hunks and whose old and new content
// this clone has, by path.
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

	complete := make(map[string]*radar.Change)
	for i := range changes {
		if c := &changes[i]; isTextChange(c) && c.OldBlob != c.Blob && present[c.OldBlob] && present[c.Blob] {
			complete[c.Path] = c
		}
	}
	return complete, nil
}

// batchPaths returns the old and new paths of the changes, in lists that fit on one
// command line.
func batchPaths(changes map[string]*radar.Change) [][]string {
	var lists [][]string
	room := 0 // in the last list, in bytes
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
