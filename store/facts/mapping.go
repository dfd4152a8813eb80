package facts

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy/linking"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// mapRows and mapBytes limit the statements that one write maps.
	mapRows  = 200
	mapBytes = 4 << 20
	// linkedBytes is what linking an artifact counts as.
	linkedBytes = 4 << 10
)

// mappingCause is why commits are settled whose statements have another outcome by the rules of this release.
func mappingCause() ledger.Cause {
	return ledger.Cause{Type: ledger.CauseUpgrade, ID: strconv.Itoa(attestation.MappingVersion)}
}

// ResumeMapping reads whether all statements are mapped by the rules of this release.
func (fa *Facts) ResumeMapping(ctx context.Context) error {
	isMapped, err := txn.ReadLoose(ctx, fa.db, txn.ForWrite(""), func(rd txn.Reader) (isMapped bool, err error) {
		return isMapped, rd.Row(`
SELECT NOT EXISTS (SELECT 1 FROM orgs o JOIN backlog b ON b.org_id = o.id AND b.kind = 'map')
  AND NOT EXISTS (SELECT 1 FROM repos WHERE mapping_version < ?)`, attestation.MappingVersion).Scan(&isMapped)
	})
	fa.setMapped(isMapped)
	return err
}

// PlanMapping has the statements of all repos mapped by the rules of this release, if another one mapped them.
func (fa *Facts) PlanMapping(ctx context.Context) error {
	return fa.db.WriteFor(ctx, nil, func(t *txn.Tx) error {
		const earlier = "WHERE mapping_version < ?"
		err := fa.jobs.LaterFor(t,
			"FROM repos "+earlier+" AND EXISTS (SELECT 1 FROM attestations WHERE repo_id = repos.id)",
			backlog.Map, 0, mappingCause(), attestation.MappingVersion)
		if err != nil {
			return err
		}
		repos, err := t.Exec("UPDATE repos SET mapping_version = ?, "+
			"remapped_to = (SELECT coalesce(max(id), 0) FROM attestations) "+earlier,
			attestation.MappingVersion, attestation.MappingVersion)
		if err != nil {
			return fmt.Errorf("note by which rules statements are mapped: %w", err)
		}
		if repos > 0 {
			fa.db.Log.InfoContext(ctx, "mapping the recorded statements by the rules of this release",
				"rules", attestation.MappingVersion, "repos", repos)
		}
		return nil
	})
}

// MapNext maps the next statements of a repo that were recorded by earlier rules, newest first, and has their
// commits settled.
func (fa *Facts) MapNext(t *txn.Tx, j *backlog.Job) (done bool, err error) {
	return fa.MapSome(t, j, mapRows)
}

// MapSome maps the next statements of a repo, up to the given number.
func (fa *Facts) MapSome(t *txn.Tx, j *backlog.Job, rows int) (done bool, err error) {
	list, err := earlierMapped(t, j, rows)
	if err != nil {
		return false, fmt.Errorf("read attestations: %w", err)
	}

	for i, bytes := 0, 0; i < len(list); i++ {
		a := &list[i]
		size, changed, err := fa.remapOne(t, a)
		if err != nil {
			return false, fmt.Errorf("attestation %s: %w", a.public, err)
		}
		j.Position = a.id
		if changed {
			if err := fa.jobs.Later(t, j.Repo, backlog.Settle, a.commitID, mappingCause()); err != nil {
				return false, err
			}
		}
		if bytes += size; bytes > mapBytes {
			return false, nil
		}
	}
	return len(list) < rows, nil
}

// earlierMapped reads the next attestations of a repo that were mapped by earlier rules.
func earlierMapped(t *txn.Tx, j *backlog.Job, limit int) ([]mappedRow, error) {
	from := ledger.Time(math.MaxInt64)
	if j.Position != 0 {
		if err := t.Row("SELECT recorded_at FROM attestations WHERE id = ?", j.Position).Scan(&from); err != nil {
			return nil, err
		}
	}
	return txn.All(t.Reader, scanMapped, selectMapped, j.Repo, from, j.Position, attestation.MappingVersion, limit)
}

// A mappedRow is an attestation with the outcome to which earlier rules mapped it.
type mappedRow struct {
	id, commitID, orgID           int64
	predicateID, typeID, signerID int64
	slot, public, sha, identity   string
	webURL                        string
	recordedAt                    ledger.Time
	result                        ledger.Result
}

const selectMapped = `
SELECT a.id, a.commit_id, r.org_id, a.predicate_id, a.type_id, a.signer_id, a.slot, a.attestation_id, c.sha,
  a.identity_id, r.web_url, a.status, a.duration_ms, a.recorded_at
FROM attestations a /*+index attestations_by_time*/ /*+ordered*/ JOIN commits c ON c.id = a.commit_id
  /*+ordered*/ JOIN repos r ON r.id = a.repo_id
WHERE a.repo_id = ? AND (a.recorded_at, a.id) < (?, ?) AND a.mapping_version < ?
ORDER BY a.recorded_at DESC, a.id DESC LIMIT ?`

func scanMapped(row txn.Scanner) (a mappedRow, err error) {
	return a, row.Scan(&a.id, &a.commitID, &a.orgID, &a.predicateID, &a.typeID, &a.signerID, &a.slot, &a.public, &a.sha,
		&a.identity, &a.webURL, &a.result.Status, &a.result.DurationMS, &a.recordedAt)
}

// remapOne maps a statement. It returns the size of its envelope, and whether its outcome
// has changed. That of an envelope that was pruned stays.
func (fa *Facts) remapOne(t *txn.Tx, a *mappedRow) (size int, changed bool, err error) {
	before := LatestKey{Commit: a.commitID, Predicate: a.predicateID, Slot: a.slot, Signer: a.signerID}
	envelope, err := Envelope(t.Reader, a.id)
	if IsPruned(err) {
		_, err := t.Exec("UPDATE attestations SET mapping_version = ? WHERE id = ?", attestation.MappingVersion, a.id)
		if err == nil {
			changed, err = fa.remapLatest(t, a, before, before, a.result)
		}
		return 0, changed, err
	}
	if err != nil {
		return 0, false, err
	}
	uri, err := fa.signers.PredicateType(t.Reader, a.typeID)
	if err != nil {
		return 0, false, err
	}
	name, err := fa.signers.Predicate(t.Reader, a.predicateID)
	if err != nil {
		return 0, false, err
	}

	m := attestation.Remap(attestation.Recorded{
		Envelope: envelope, PredicateType: uri, Commit: a.sha, WebURL: a.webURL, RecordedAt: a.recordedAt,
		Outcome: attestation.Outcome{Predicate: name, Slot: a.slot, Result: a.result},
	})
	o := m.Outcome
	predicateID, err := fa.signers.RowFor(t, signers.PredicateOf(a.orgID, o.Predicate), identity.DN{})
	if err != nil {
		return 0, false, err
	}
	_, err = t.Exec(`
UPDATE attestations SET predicate_id = ?, slot = ?, status = ?, duration_ms = ?, finished_at = ?, mapping_version = ?
WHERE id = ?`, predicateID, o.Slot, string(o.Result.Status), o.Result.DurationMS, o.FinishedAt,
		attestation.MappingVersion, a.id)
	if err != nil {
		return 0, false, err
	}

	if err := linkRecorded(t, a, linking.Builds(o.Predicate, o.Result.Status), m.Artifacts.Digests); err != nil {
		return 0, false, fmt.Errorf("link artifacts: %w", err)
	}
	if err := unlink(t, a, m.Disowned); err != nil {
		return 0, false, fmt.Errorf("unlink artifacts: %w", err)
	}
	after := LatestKey{Commit: a.commitID, Predicate: predicateID, Slot: o.Slot, Signer: a.signerID}
	if changed, err = fa.remapLatest(t, a, before, after, o.Result); err != nil {
		return 0, false, err
	}
	if err := recount(t, a, predicateID); err != nil {
		return 0, false, fmt.Errorf("count: %w", err)
	}
	return len(envelope) + (len(m.Artifacts.Digests)+len(m.Disowned))*linkedBytes, changed, nil
}

// remapLatest updates the latest evidence of a commit, and of others that inherit it. It reports whether
// that has changed.
func (fa *Facts) remapLatest(t *txn.Tx, a *mappedRow, before, after LatestKey, result ledger.Result) (changed bool,
	err error) {
	isNew, err := moveLatest(t, before, after, a.id, result.Status)
	if err != nil {
		return false, fmt.Errorf("update the latest: %w", err)
	}
	if before == after && result == a.result && !isNew {
		return false, nil
	}
	return true, fa.RemapInherited(t, mappingCause(), before, after)
}

// linkRecorded links the artifacts of a statement that an earlier release recorded. Newer
// statements may have linked them before. Older ones that are not mapped yet may lose their links.
func linkRecorded(t *txn.Tx, a *mappedRow, isBuild bool, digests []string) error {
	for _, digest := range digests {
		_, err := t.Exec(`
INSERT INTO artifacts (org_id, digest, commit_id, identity_id, signer_id, is_build, attestation_id)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (org_id, digest, commit_id, identity_id, signer_id, is_build)
DO UPDATE SET attestation_id = excluded.attestation_id
WHERE excluded.attestation_id < artifacts.attestation_id OR `+maybeDisowned(),
			a.orgID, DigestKey(digest), a.commitID, a.identity, a.signerID, isBuild, a.id)
		if err != nil {
			return err
		}
	}
	return nil
}

// unlink removes the links of a statement that is not about its commit by the rules of this release.
func unlink(t *txn.Tx, a *mappedRow, digests []string) error {
	for _, digest := range digests {
		_, err := t.Exec(`
DELETE FROM artifacts WHERE org_id = ? AND digest = ? AND commit_id = ? AND identity_id = ? AND signer_id = ?
  AND attestation_id = ?`, a.orgID, DigestKey(digest), a.commitID, a.identity, a.signerID, a.id)
		if err != nil {
			return err
		}
	}
	return nil
}

// recount counts an attestation for another predicate than before.
func recount(t *txn.Tx, a *mappedRow, predicateID int64) error {
	if predicateID == a.predicateID {
		return nil
	}
	if _, err := t.Exec("UPDATE predicates SET attestations = attestations - 1 WHERE id = ?", a.predicateID); err != nil {
		return err
	}
	_, err := t.Exec(`
UPDATE predicates SET attestations = attestations + 1, last_at = CASE WHEN last_at < ?1 THEN ?1 ELSE last_at END
WHERE id = ?2`, a.recordedAt, predicateID)
	return err
}

// moveLatest makes an attestation the latest for its present key, unless there is a newer
// one or it is distrusted, and no longer for the key that it had before. It reports whether the attestation
// was not the latest before.
func moveLatest(t *txn.Tx, before, after LatestKey, id int64, status ledger.Status) (isNew bool, err error) {
	removed, err := t.Exec(`
DELETE FROM latest WHERE commit_id = ? AND predicate_id = ? AND slot = ? AND signer_id = ? AND attestation_id = ?`,
		before.Commit, before.Predicate, before.Slot, before.Signer, id)
	if err != nil {
		return false, err
	}

	var other Retraced
	err = t.Row(`
SELECT a.id, a.status FROM latest l JOIN attestations a ON a.id = l.attestation_id
WHERE l.commit_id = ? AND l.predicate_id = ? AND l.slot = ? AND l.signer_id = ?`,
		after.Commit, after.Predicate, after.Slot, after.Signer).Scan(&other.ID, &other.Status)
	switch this := (Retraced{ID: id, Status: status}); {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return false, err
	case !this.IsLater(other):
		return false, nil
	}
	added, err := t.Exec(`
INSERT INTO latest (commit_id, predicate_id, slot, signer_id, attestation_id)
SELECT ?, ?, ?, ?, a.id FROM attestations a WHERE a.id = ? AND `+IsTrusted+`
ON CONFLICT (commit_id, predicate_id, slot, signer_id) DO UPDATE SET attestation_id = excluded.attestation_id`,
		after.Commit, after.Predicate, after.Slot, after.Signer, id)
	return added > removed, err
}
