package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Commit returns a commit, given its full id or a prefix that is unique in the repo.
func (s *Store) Commit(ctx context.Context, org, repo, prefix string) (ledger.Commit, error) {
	return read(ctx, s, byOrg(org), func(rd reader) (v ledger.Commit, err error) {
		r, err := rd.findRepo(org, repo)
		if err != nil {
			return v, err
		}
		c, err := rd.findCommit(r, prefix)
		if err != nil {
			return v, err
		}
		if c.row.Changes, err = rd.findChanges(c.id); err != nil {
			return v, err
		}
		return c.row, rd.completeCommit(r, &c)
	})
}

// newestAttestations is the maximum number of attestations in a commit record.
const newestAttestations = 100

// completeCommit adds to a listed commit the rest of its record, except the changes.
func (rd reader) completeCommit(r repoRow, c *keyed[ledger.Commit]) error {
	details, err := rd.findLineage(c.id)
	if err != nil {
		return err
	}
	v := &c.row
	v.Parents, v.Ancestors, v.Contained = details.parents, details.ancestors, details.contained
	v.Org, v.Repo, v.Target = r.org, r.name, cmp.Or(v.Target, r.defaultBranch)

	d, err := rd.deriver(r)
	if err != nil {
		return err
	}
	s, err := rd.gatherOne(d, listedRow(c.id, &v.CommitSummary))
	if err != nil {
		return err
	}
	v.Requirements = d.contract.Derive(s.facts, rd.now).Requirements
	v.PolicyVersion = r.policyVersion

	newest := attestationQuery{repo: r, commit: c.id, fits: v.Attested <= newestAttestations, limit: newestAttestations}
	attestations, err := newest.run(rd)
	if err != nil {
		return err
	}
	v.Attestations = make([]ledger.AttestationRecord, len(attestations))
	for i, a := range attestations {
		v.Attestations[i] = a.row
	}

	tip, isTip, err := rd.findTip(c.id)
	if err != nil {
		return err
	}
	switch {
	case v.Overlaps != nil: // just set from a scan
	case isTip:
		err = rd.lister(d).addOverlaps(&v.CommitSummary, c.id)
	default:
		v.Overlaps = noOverlaps()
	}
	if err != nil {
		return err
	}

	v.InFlight = tip.InFlightAt(d.contract.Radar, rd.now)
	v.Transitions, err = all(rd, scanTransition,
		"SELECT from_state, to_state, at, cause_type, cause_id FROM transitions WHERE commit_id = ? ORDER BY event", c.id)
	return err
}

// listedRow returns the commitRow of a listed commit.
func listedRow(id int64, v *ledger.CommitSummary) *commitRow {
	return &commitRow{
		id: id, state: v.State, attestations: v.Attested,
		branch: v.Branch, target: v.Target, author: v.Author,
	}
}

func scanTransition(row scanner) (ledger.Transition, error) {
	var t ledger.Transition
	err := row.Scan(&t.From, &t.To, &t.At, &t.Cause.Type, &t.Cause.ID)
	return t, err
}

// A CommitFilter selects the commits of a list. Empty fields do not filter.
type CommitFilter struct {
	Query
	State  *ledger.State
	Branch string
	Author string // a name or an email address
	// InFlight selects only the commits in flight.
	InFlight bool
	// Standing adds to each commit its missing requirements and its overlaps.
	Standing bool
}

// Commits lists a repo's commits, the last registered first.
func (s *Store) Commits(
	ctx context.Context, org, repo string, f CommitFilter,
) (ledger.Page[ledger.CommitSummary], error) {
	before, err := f.after(1 << 62)
	if err != nil {
		return ledger.Page[ledger.CommitSummary]{}, err
	}

	return read(ctx, s, byOrg(org), func(rd reader) (list ledger.Page[ledger.CommitSummary], err error) {
		d, err := rd.deriverOf(org, repo)
		if err != nil {
			return list, err
		}

		query, args := f.sql(d, before, rd.now)
		rows, err := all(rd, scanCommit, query, args...)
		if err != nil {
			return list, fmt.Errorf("read commits: %w", err)
		}

		summaries := make([]keyed[ledger.CommitSummary], len(rows))
		for i, row := range rows {
			row.row.Org, row.row.Repo = d.repo.org, d.repo.name
			row.row.Target = cmp.Or(row.row.Target, d.repo.defaultBranch)
			summaries[i] = keyed[ledger.CommitSummary]{row.id, row.row.CommitSummary}
		}
		if f.Standing {
			err = rd.addStanding(d, summaries[:min(len(summaries), f.Limit)])
		}
		return page(summaries, f.Limit), err
	})
}

// sql returns the query for a page of commits with row ids below before, and one more
// row.
func (f CommitFilter) sql(d *deriver, before int64, now ledger.Time) (string, []any) {
	where, args := "WHERE repo_id = ? AND id < ?", []any{d.repo.id, before}
	if f.State != nil {
		where, args = where+" AND state = ?", append(args, *f.State)
	}
	if f.Branch != "" {
		where, args = where+" AND branch = ? AND branch <> ''", append(args, f.Branch)
	}
	if f.Author != "" {
		where, args = where+" AND (author_name = ? OR author_email = ?)", append(args, f.Author, f.Author)
	}
	if f.InFlight {
		where += " AND id IN (SELECT commit_id FROM tips WHERE repo_id = ? AND " + isInFlight + " AND opened_at >= ?)"
		args = append(args, d.repo.id, d.contract.Radar.Oldest(now))
	}
	return selectCommit + where + " ORDER BY id DESC LIMIT ?", append(args, f.Limit+1)
}

// addStanding adds to commits their missing requirements and their overlaps.
func (rd reader) addStanding(d *deriver, commits []keyed[ledger.CommitSummary]) error {
	subjects := make([]*subject, len(commits))
	for i := range commits {
		subjects[i] = &subject{commitRow: listedRow(commits[i].id, &commits[i].row), d: d}
	}
	if err := rd.gather(subjects); err != nil {
		return err
	}
	l := rd.lister(d)
	for i, s := range subjects {
		v := &commits[i].row
		v.Missing = policy.Missing(v.State, d.contract.Derive(s.facts, rd.now).Requirements)
		if err := l.addOverlaps(v, s.id); err != nil {
			return err
		}
	}
	return nil
}
