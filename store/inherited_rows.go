package store

// inherited is the evidence recorded in a write that other commits inherit. It is written
// by flush.
type inherited struct {
	latest map[treeKey]treeRow
	// trees and sources are those whose evidence has changed, with how often and why.
	trees, sources map[int64]change
}

// A treeKey is the key of the table tree_latest.
type treeKey struct {
	tree, predicate int64
	slot            string
	signer          int64
	stated          bool
}

// A treeRow is the rest of a row of tree_latest: an attestation, and its commit.
type treeRow struct {
	attestation, commit int64
	failed              bool
}

// A change of what commits of a repo inherit.
type change struct {
	times int64
	job   job // for the commits
}

// note notes that what j is about, a tree or a source, has changed.
func note(changes *map[int64]change, j job) {
	if *changes == nil {
		*changes = make(map[int64]change)
	}
	(*changes)[j.ref] = change{(*changes)[j.ref].times + 1, j}
}

// bufferTo adds the rows to the buffers, and forgets them. It reports whether there are any.
func (in *inherited) bufferTo(rows *buffers) bool {
	if len(in.trees)+len(in.sources) == 0 {
		return false
	}
	for key, row := range in.latest {
		rows.treeLatest.Add(key.tree, key.predicate, key.slot, key.signer, key.stated, row.attestation,
			row.commit, row.failed)
	}
	for id, change := range in.trees {
		rows.treeVersions.Add(id, change.times, int64(0))
		change.job.addTo(rows.jobs)
	}
	for id, change := range in.sources {
		rows.mergeSources.Add(id, change.times)
		change.job.addTo(rows.jobs)
	}
	clear(in.latest)
	clear(in.trees)
	clear(in.sources)
	return true
}
