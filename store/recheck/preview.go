package recheck

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Rereading is a recorded statement whose outcome differs by the rules of this release.
type Rereading struct {
	ID            string // of the attestation
	Org, Repo     string
	Commit        string
	PredicateType string
	Before, After attestation.Outcome
}

// previewRows is how many statements one read maps.
const previewRows = 500

// PreviewMapping calls visit with each statement whose outcome differs by the rules of this release, in the order of
// their recording. It writes nothing.
func (re *Rechecker) PreviewMapping(ctx context.Context, visit func(Rereading)) error {
	for after, done := int64(0), false; !done; {
		_, err := txn.ReadLoose(ctx, re.db, txn.ForWrite(""), func(rd txn.Reader) (_ struct{}, err error) {
			list, err := txn.All(rd, scanPreviewed, selectPreviewed, after, attestation.MappingVersion, previewRows)
			for i := 0; i < len(list) && err == nil; i++ {
				after = list[i].id
				err = list[i].remap(rd, visit)
			}
			done = len(list) < previewRows
			return struct{}{}, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A previewed is a statement with the outcome to which earlier rules have mapped it.
type previewed struct {
	id    int64
	shown Rereading
	row   attestation.Recorded
}

const selectPreviewed = `
SELECT a.id, a.attestation_id, o.name, r.name, r.web_url, c.sha, t.uri, p.name, a.slot, a.status, a.duration_ms,
  a.finished_at, a.recorded_at
FROM attestations a /*+ordered*/ JOIN repos r ON r.id = a.repo_id /*+ordered*/ JOIN orgs o ON o.id = r.org_id
  /*+ordered*/ JOIN commits c ON c.id = a.commit_id /*+ordered*/ JOIN predicates p ON p.id = a.predicate_id
  /*+ordered*/ JOIN predicate_types t ON t.id = a.type_id
WHERE a.id > ? AND a.mapping_version < ? ORDER BY a.id LIMIT ?`

func scanPreviewed(row txn.Scanner) (p previewed, err error) {
	s, r := &p.shown, &p.row
	err = row.Scan(&p.id, &s.ID, &s.Org, &s.Repo, &r.WebURL, &s.Commit, &s.PredicateType, &r.Outcome.Predicate,
		&r.Outcome.Slot, &r.Outcome.Result.Status, &r.Outcome.Result.DurationMS, &r.Outcome.FinishedAt, &r.RecordedAt)
	r.Commit, r.PredicateType = s.Commit, s.PredicateType
	return p, err
}

// remap maps the statement, and calls visit if its outcome differs. That of an envelope that was pruned stays.
func (p *previewed) remap(rd txn.Reader, visit func(Rereading)) (err error) {
	if p.row.Envelope, err = facts.Envelope(rd, p.id); facts.IsPruned(err) {
		return nil
	}
	if err != nil {
		return err
	}
	p.shown.Before, p.shown.After = p.row.Outcome, attestation.Remap(p.row).Outcome
	if p.shown.Before != p.shown.After {
		visit(p.shown)
	}
	return nil
}

// An UnreadType is how many statements of a type in an org state no outcome, although others of the type do.
type UnreadType struct {
	Org, Type    string
	Attestations int64
}

// UnreadTypes returns the types of statements that have their type as predicate, as attestation.Unread gives it.
func UnreadTypes(rd txn.Reader, limit int) (list []UnreadType, err error) {
	err = rd.Each(func(row txn.Scanner) error {
		var u UnreadType
		err := row.Scan(&u.Org, &u.Type, &u.Attestations)
		if err == nil && attestation.IsUnderstood(u.Type) && len(list) < limit {
			list = append(list, u)
		}
		return err
	}, `
SELECT o.name, p.name, p.attestations FROM predicates p JOIN orgs o ON o.id = p.org_id
WHERE p.name LIKE '%://%' AND p.attestations > 0 AND o.deleted_at = 0 ORDER BY o.name, p.name`)
	return list, err
}
