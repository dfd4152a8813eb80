package store

import (
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// What waited in the tables of an earlier release waits in the backlog, and is done.
func TestMigrationCarriesOverWhatWaits(t *testing.T) {
	path := UnpackV5(t)
	s := must.Get(Open(t.Context(), path, Options{NoCopy: true}))(t)
	must.OK(t, s.Settle(t.Context()))
	must.OK(t, s.Close())
	db := readRaw(t, path)
	must.Get(db.Exec(undoBacklog))(t)
	must.Get(db.Exec(`
INSERT INTO reevaluations (repo_id, version, done) VALUES (1, 1, 3);
INSERT INTO rederivations (repo_id, cause_type, cause_id, done) VALUES (2, 'identity', 'idn_1', 5);
INSERT INTO inheritances (tree_id, source_id, cause_type, cause_id, done, again) VALUES (7, 0, 'carry', 'att_1', 2, 1),
  (0, 2, 'carry', 'att_2', 0, 0);
UPDATE commits SET tree_id = 7 WHERE id = 1;
INSERT INTO violations (id, repo_id, org_id, commit_id, predicate_id, attestation_id, state, opened_at, missing)
SELECT a.id, a.repo_id, 1, a.commit_id, a.predicate_id, a.id, 1, 1, '[]' FROM attestations a WHERE a.id IN (1, 2);
INSERT INTO closings (repo_id, predicate_id, commit_id, up_to, closed_at, closed_how, closed_by)
SELECT repo_id, predicate_id, 0, id, 17, 'deployment', 'att_3' FROM violations WHERE id = 1;
INSERT INTO closings (repo_id, predicate_id, commit_id, up_to, closed_at, closed_how, closed_by)
SELECT repo_id, predicate_id, commit_id, id, 18, 'rollback', 'att_4' FROM violations WHERE id = 2;
INSERT INTO distrusts (identity_id, org_id, since, repo_id, at, attestation_id)
SELECT identity_id, org_id, 1, 1, 1, 4 FROM identities WHERE org_id = 1 ORDER BY id LIMIT 1;
UPDATE orgs SET distrusting = 1;
UPDATE repos SET keep_events = 1 WHERE id = 1;
UPDATE repos SET keep_envelopes = 1 WHERE id = 2;
INSERT INTO prunings (repo_id, envelopes_at, envelope, events_seq, radar_seq) VALUES (1, 1000, 3, 4, -1);
UPDATE commits SET expires = 1000 + id WHERE id IN (1, 2)`))(t)

	s = must.Get(Open(t.Context(), path, Options{NoCopy: true}))(t)
	defer s.Close()
	got := texts(t, db, `
SELECT concat_ws(' ', kind, repo_id, ref, org_id, cause_type, position, CASE WHEN since < 2000 THEN since END)
FROM backlog WHERE kind NOT IN ('log', 'settle') ORDER BY kind, repo_id, ref`)
	want := []string{"close 1 1 1 deployment 0 17", "distrust 1 1 1 identity 4", "distrust 2 1 1 identity 0",
		"excuse 1 2 1 rollback 0 18", "expire 1 0 1  0 1001", "merges 1 2 1 carry 0", "prune 1 1 1  3", "prune 1 2 1  5",
		"prune 1 3 1  0", "prune 2 1 1  0", "prune 2 2 1  0", "prune 2 3 1  0", "tree 1 7 1 carry 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}

	must.OK(t, s.Settle(t.Context()))
	if left := texts(t, db, "SELECT kind FROM backlog WHERE kind NOT IN ('expire', 'prune')"); len(left) > 0 {
		t.Errorf("jobs of %q are left", left)
	}
	closed := texts(t, db, "SELECT concat_ws(' ', closed_at, closed_how, closed_by) FROM violations ORDER BY id")
	if want := []string{"17 deployment att_3", "18 rollback att_4"}; !slices.Equal(closed, want) {
		t.Errorf("violations are closed as %q, want %q", closed, want)
	}
	if left := texts(t, db, "SELECT name FROM orgs WHERE distrusting <> 0"); len(left) > 0 {
		t.Errorf("the orgs %q are still said to have distrusted evidence", left)
	}
}
