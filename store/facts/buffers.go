package facts

import (
	"fmt"
	"strconv"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// buffers holds the rows that a write inserts, by table. Their ids are assigned
// before, so rows can refer to other buffered rows.
type buffers struct {
	commits      *sqldb.Rows // new commits
	updated      *sqldb.Rows // changed commits in the same state
	moved        *sqldb.Rows // changed commits in a new state
	attestations *sqldb.Rows
	envelopes    *sqldb.Rows
	verdicts     *sqldb.Rows
	latest       *sqldb.Rows
	exceptions   *sqldb.Rows
	changes      *sqldb.Rows
	treeLatest   *sqldb.Rows
	treeVersions *sqldb.Rows
	mergeSources *sqldb.Rows // their versions
	artifacts    *sqldb.Rows
}

func newBuffers() *buffers {
	const commits = `
INSERT INTO commits (id, repo_id, sha, state, state_since, registered_at, policy_version, expires,
  attestations, newest, basis, distrusts, failing_since, standing, gap) VALUES `
	return &buffers{
		commits: sqldb.NewRows(commits, "", 15),
		updated: sqldb.NewRows(commits, `
ON CONFLICT (id) DO UPDATE SET policy_version = excluded.policy_version, expires = excluded.expires,
  attestations = excluded.attestations, newest = excluded.newest, basis = excluded.basis,
  distrusts = excluded.distrusts, gap = excluded.gap`, 15),
		moved: sqldb.NewRows(commits, `
ON CONFLICT (id) DO UPDATE SET state = excluded.state, state_since = excluded.state_since,
  policy_version = excluded.policy_version, expires = excluded.expires,
  attestations = excluded.attestations, newest = excluded.newest, basis = excluded.basis,
  distrusts = excluded.distrusts, failing_since = excluded.failing_since, standing = excluded.standing,
  gap = excluded.gap`, 15),
		attestations: sqldb.NewRows(`
INSERT INTO attestations (id, previous, attestation_id, repo_id, commit_id, predicate_id, type_id,
  mapping_version, slot, signer_id, key_id, status, duration_ms, recorded_at, payload_digest,
  identity_id, emails, while_promotable, event_id, aged_from, finished_at, assertion, reason, base) VALUES `, "", 24),
		envelopes: sqldb.NewRows("INSERT INTO envelopes (attestation_id, body, payload, payload_at, assertion) VALUES ", "",
			5),
		verdicts: sqldb.NewRows("INSERT INTO verdicts (attestation_id, expression_id, verdict, error) VALUES ", `
ON CONFLICT (attestation_id, expression_id) DO NOTHING`, 4),
		latest: sqldb.NewRows("INSERT INTO latest (commit_id, predicate_id, slot, signer_id, attestation_id) VALUES ", `
ON CONFLICT (commit_id, predicate_id, slot, signer_id) DO UPDATE SET attestation_id = excluded.attestation_id`, 5),
		exceptions: sqldb.NewRows(`
INSERT INTO exceptions (attestation_id, repo_id, commit_id, requirement, reason, ends_at) VALUES `, "", 6),
		changes: sqldb.NewRows("INSERT INTO change_records (attestation_id, paths) VALUES ", "", 2),
		treeLatest: sqldb.NewRows(`
INSERT INTO tree_latest (tree_id, predicate_id, slot, signer_id, stated, attestation_id, commit_id, failed) VALUES `, `
ON CONFLICT (tree_id, predicate_id, slot, signer_id, stated) DO UPDATE SET attestation_id = excluded.attestation_id,
  commit_id = excluded.commit_id, failed = excluded.failed`, 8),
		treeVersions: sqldb.NewRows("INSERT INTO trees (id, version, commits) VALUES ", `
ON CONFLICT (id) DO UPDATE SET version = trees.version + excluded.version`, 3),
		mergeSources: sqldb.NewRows("INSERT INTO merge_sides (commit_id, version) VALUES ", `
ON CONFLICT (commit_id) DO UPDATE SET version = merge_sides.version + excluded.version`, 2),
		artifacts: sqldb.NewRows(`
INSERT INTO artifacts (org_id, digest, commit_id, identity_id, signer_id, is_build, attestation_id) VALUES `, `
ON CONFLICT (org_id, digest, commit_id, identity_id, signer_id, is_build)
DO UPDATE SET attestation_id = excluded.attestation_id WHERE `+maybeDisowned(), 7),
	}
}

// maybeDisowned is true of a link by a statement that may lose it when it is mapped by the rules of this release.
func maybeDisowned() string {
	return "(SELECT mapping_version FROM attestations WHERE id = artifacts.attestation_id) < " +
		strconv.Itoa(attestation.MappingVersion)
}

// all returns the buffers in insertion order: rows only refer to rows in earlier
// buffers.
func (b *buffers) all() [13]*sqldb.Rows {
	return [...]*sqldb.Rows{
		b.commits, b.updated, b.moved, b.attestations, b.envelopes, b.verdicts, b.latest, b.exceptions,
		b.changes, b.treeLatest, b.treeVersions, b.mergeSources, b.artifacts,
	}
}

// flush writes the rows.
func (b *buffers) flush(t *txn.Tx) error {
	for _, rows := range b.all() {
		if err := rows.Flush(t.Conn); err != nil {
			return fmt.Errorf("write rows: %w", err)
		}
	}
	return nil
}

// reset drops all rows.
func (b *buffers) reset() {
	for _, rows := range b.all() {
		rows.Reset()
	}
}

// inherited is the evidence recorded in a write that other commits inherit. It is written
// by flush.
type inherited struct {
	latest map[TreeKey]TreeRow
	// trees and sources are those whose evidence has changed, with how often.
	trees, sources map[int64]int64
}

// A TreeKey is the key of the table tree_latest.
type TreeKey struct {
	Tree, Predicate int64
	Slot            string
	Signer          int64
	Stated          bool
}

// A TreeRow is the rest of a row of tree_latest: an attestation, and its commit.
type TreeRow struct {
	Attestation, Commit int64
	Failed              bool
}

// countChange notes that a tree or a source has changed once more.
func countChange(changes *map[int64]int64, id int64) {
	if *changes == nil {
		*changes = make(map[int64]int64)
	}
	(*changes)[id]++
}

// bufferTo adds the rows to the buffers, and forgets them.
func (in *inherited) bufferTo(rows *buffers) {
	for key, row := range in.latest {
		rows.treeLatest.Add(key.Tree, key.Predicate, key.Slot, key.Signer, key.Stated, row.Attestation,
			row.Commit, row.Failed)
	}
	for id, times := range in.trees {
		rows.treeVersions.Add(id, times, int64(0))
	}
	for id, times := range in.sources {
		rows.mergeSources.Add(id, times)
	}
	clear(in.latest)
	clear(in.trees)
	clear(in.sources)
}
