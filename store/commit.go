package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
)

// Register records what its pusher says of a commit, makes it known where it
// was not, and derives its state again where that changes what applies to it.
// Members that the registration leaves out keep what an earlier one said. What
// names a branch is its tip from then on. It returns the commit's record without
// its changes, and with the strongest overlaps.
func (s *Store) Register(ctx context.Context, org, repo, sha string, n ledger.Registration) (v ledger.Commit, created bool, err error) {
	p, err := s.prospect(ctx, org, repo, sha, n)
	if err != nil {
		return v, false, err
	}
	var ahead *look
	if p.tip.Branch != "" {
		if ahead, err = s.lookAhead(ctx, p); err != nil {
			return v, false, err
		}
	}
	done, err := write(ctx, s, func(t *tx) (registered, error) { return t.register(org, repo, sha, n, ahead) })
	if err != nil {
		return v, false, err
	}
	v, err = read(ctx, s, func(rd reader) (ledger.Commit, error) { return rd.registered(done) })
	return v, done.created, err
}

// registered is what has come of a registration.
type registered struct {
	repo    repoRow
	radar   tipResult
	created bool
}

func (t *tx) register(org, repo, sha string, n ledger.Registration, ahead *look) (done registered, err error) {
	if done.repo, err = t.findRepo(org, repo); err != nil {
		return done, err
	}
	d, err := t.deriver(done.repo)
	if err != nil {
		return done, err
	}
	c, isNew, err := t.findOrAddCommit(d, sha)
	if err != nil {
		return done, err
	}
	done.created = isNew
	if err := checkAuthor(c, n.Author); err != nil {
		return done, err
	}
	if !isNew {
		s, err := t.gatherOne(d, c)
		if err != nil {
			return done, err
		}
		if err := t.settleDue(s); err != nil {
			return done, err
		}
	}
	if err := t.flush(); err != nil {
		return done, err
	}
	if err := t.describeCommit(c.id, n); err != nil {
		return done, err
	}
	done.radar, err = t.registerTip(d, c, isNew, n, ahead)
	return done, err
}

// registered reads the record of a commit for the answer to its registration.
func (rd reader) registered(done registered) (ledger.Commit, error) {
	c, err := scanCommit(rd.Row(selectCommit+"WHERE id = ?", done.radar.commit))
	if err != nil {
		return c.row, fmt.Errorf("read commit: %w", err)
	}
	if done.radar.looked {
		c.row.Overlaps, c.row.OverlapsTruncated = done.radar.counts(), done.radar.more
	}
	if err := rd.completeCommit(done.repo, &c); err != nil {
		return c.row, err
	}
	radar, err := rd.result(done.radar, asSide(c.row.CommitSummary), answeredPairs)
	c.row.Radar = &radar
	return c.row, err
}

// answeredPairs is how many overlaps the answer to a registration holds.
const answeredPairs = 20

// registerTip has the radar look at a commit of which a registration says
// something, and derives its state again.
func (t *tx) registerTip(d *deriver, c *commitRow, isNew bool, said ledger.Registration, ahead *look) (tipResult, error) {
	known, err := said, error(nil)
	if !isNew {
		if known, err = t.registrationOf(c.id); err != nil {
			return tipResult{}, err
		}
	}
	result, err := t.track(d, c, said, known, ahead)
	if err != nil {
		return result, err
	}
	cause := ledger.Cause{Type: ledger.CauseCommit, ID: c.sha}
	if c.state >= ledger.Promotable && result.blocked(d.contract.Radar) {
		if cause, err = t.cause(c, result); err != nil {
			return result, err
		}
	}
	t.again(cause, c.id)
	return result, t.drain(d)
}

// registrationOf reads what is known of a commit by its registrations.
func (rd reader) registrationOf(commitID int64) (n ledger.Registration, err error) {
	err = rd.Row("SELECT branch, target, base FROM commits WHERE id = ?", commitID).Scan(&n.Branch, &n.Target, &n.Base)
	if err != nil {
		return n, fmt.Errorf("read commit: %w", err)
	}
	d, err := rd.findDetails(commitID)
	n.Parents, n.Ancestors, n.Contained, n.Changes = d.parents, d.ancestors, d.contained, d.changes
	return n, err
}

// checkAuthor refuses to change the author of a commit: git cannot, and a
// review by the author must not come to count because somebody says so.
func checkAuthor(c *commitRow, n ledger.Author) error {
	known := func(before, now string) bool { return now == "" || before == "" || before == now }
	if known(c.author.Name, n.Name) && known(c.author.Email, n.Email) {
		return nil
	}
	return ledger.FieldErrorf(ledger.CodeInvalidField, "author", "the commit is registered as by %s <%s>: a commit's author cannot change", c.author.Name, c.author.Email)
}

// findOrAddCommit returns a commit of the deriver's repo, and whether it is new.
func (t *tx) findOrAddCommit(d *deriver, sha string) (c *commitRow, created bool, err error) {
	c, err = scanCommitRow(t.Row(selectCommitRow+"WHERE repo_id = ? AND sha = ?", d.repo.id, sha))
	if !errors.Is(err, sql.ErrNoRows) {
		return c, false, err
	}
	s, err := t.addCommit(d, sha)
	if err != nil {
		return nil, false, err
	}
	return s.commitRow, true, nil
}

func (t *tx) describeCommit(id int64, n ledger.Registration) error {
	_, err := t.Exec(`
UPDATE commits SET branch = coalesce(nullif(?, ''), branch), target = coalesce(nullif(?, ''), target), base = coalesce(nullif(?, ''), base),
  author_name = coalesce(nullif(?, ''), author_name), author_email = coalesce(nullif(?, ''), author_email),
  message = coalesce(nullif(?, ''), message), committed_at = coalesce(nullif(?, 0), committed_at)
WHERE id = ?`, n.Branch, n.Target, n.Base, n.Author.Name, n.Author.Email, n.Message, n.CommittedAt, id)
	if err != nil {
		return fmt.Errorf("update commit: %w", err)
	}
	if n.Parents == nil && n.Ancestors == nil && n.Contained == nil && n.Changes == nil {
		return nil
	}
	d, err := t.findDetails(id)
	if err != nil {
		return err
	}
	d.merge(n)
	return t.saveDetails(id, d)
}

// mergedRegistration is registrationOf as another registration will make it.
func (rd reader) mergedRegistration(commitID int64, n ledger.Registration) (ledger.Registration, error) {
	known, err := rd.registrationOf(commitID)
	if err != nil {
		return n, err
	}
	d := details{known.Parents, known.Ancestors, known.Contained, known.Changes}
	d.merge(n)
	n.Branch, n.Base = cmp.Or(n.Branch, known.Branch), cmp.Or(n.Base, known.Base)
	n.Parents, n.Ancestors, n.Contained, n.Changes = d.parents, d.ancestors, d.contained, d.changes
	return n, nil
}

// details is the long part of a commit's registration.
type details struct {
	parents, ancestors, contained []string
	changes                       []ledger.Change
}

func (d *details) merge(n ledger.Registration) {
	if n.Parents != nil {
		d.parents = n.Parents
	}
	if n.Ancestors != nil {
		d.ancestors = n.Ancestors
	}
	if n.Contained != nil {
		d.contained = n.Contained
	}
	if n.Changes != nil {
		d.changes = n.Changes
	}
}

func (rd reader) findDetails(commitID int64) (details, error) {
	d, err := rd.findLineage(commitID)
	if err != nil {
		return d, err
	}
	d.changes, err = rd.findChanges(commitID)
	return d, err
}

// findLineage reads the details but for the changes, which may be long.
func (rd reader) findLineage(commitID int64) (d details, err error) {
	err = rd.Each(func(row scanner) error {
		var parents, ancestors, contained []byte
		if err := row.Scan(&parents, &ancestors, &contained); err != nil {
			return err
		}
		return errors.Join(json.Unmarshal(parents, &d.parents), json.Unmarshal(ancestors, &d.ancestors), json.Unmarshal(contained, &d.contained))
	}, "SELECT parents, ancestors, contained FROM commit_details WHERE commit_id = ?", commitID)
	if err != nil {
		return d, fmt.Errorf("read commit details: %w", err)
	}
	return d, nil
}

func (t *tx) saveDetails(commitID int64, d details) error {
	var columns [4][]byte
	for i, v := range []any{d.parents, d.ancestors, d.contained, d.changes} {
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode commit details: %w", err)
		}
		columns[i] = text
	}
	if d.changes == nil {
		columns[3] = nil
	}
	_, err := t.Exec(`
INSERT INTO commit_details (commit_id, parents, ancestors, contained, changes) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (commit_id) DO UPDATE SET parents = excluded.parents, ancestors = excluded.ancestors,
  contained = excluded.contained, changes = excluded.changes`,
		commitID, columns[0], columns[1], columns[2], columns[3])
	if err != nil {
		return fmt.Errorf("save commit details: %w", err)
	}
	return nil
}

// The id comes last, for the cursor.
const selectCommit = `
SELECT sha, state, state_since, registered_at, branch, target, author_name, author_email, message, committed_at, attestations, base, policy_version, id
FROM commits `

func scanCommit(row scanner) (keyed[ledger.Commit], error) {
	var c keyed[ledger.Commit]
	v := &c.row
	err := row.Scan(&v.SHA, &v.State, &v.StateSince, &v.RegisteredAt, &v.Branch, &v.Target, &v.Author.Name, &v.Author.Email,
		&v.Message, &v.CommittedAt, &v.Attested, &v.Base, &v.PolicyVersion, &c.id)
	return c, err
}

// Commit returns the record of a commit, named by its whole id or a prefix
// that no other commit of the repo has.
func (s *Store) Commit(ctx context.Context, org, repo, prefix string) (ledger.Commit, error) {
	return read(ctx, s, func(rd reader) (v ledger.Commit, err error) {
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

// findChanges reads the change record of a commit; nil if it came without one.
func (rd reader) findChanges(commitID int64) (changes []ledger.Change, err error) {
	err = rd.Each(func(row scanner) error {
		var text []byte
		if err := row.Scan(&text); err != nil {
			return err
		}
		changes, err = decodeChanges(text)
		return err
	}, "SELECT changes FROM commit_details WHERE commit_id = ?", commitID)
	if err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	return changes, nil
}

func (rd reader) findCommit(r repoRow, prefix string) (keyed[ledger.Commit], error) {
	// "g" sorts behind every hex digit: the range holds what begins with prefix.
	found, err := all(rd, scanCommit, selectCommit+"WHERE repo_id = ? AND sha >= ? AND sha < ? ORDER BY sha LIMIT 2", r.id, prefix, prefix+"g")
	switch {
	case err != nil:
		return keyed[ledger.Commit]{}, fmt.Errorf("find commit: %w", err)
	case len(found) == 0:
		return keyed[ledger.Commit]{}, ledger.Errorf(ledger.CodeNotFound, "%s/%s has no commit %s", r.org, r.name, prefix)
	case len(found) > 1 && found[0].row.SHA != prefix:
		return keyed[ledger.Commit]{}, ledger.Errorf(ledger.CodeAmbiguousCommit, "several commits of %s/%s begin with %s, %s and %s among them: give more digits",
			r.org, r.name, prefix, found[0].row.SHA, found[1].row.SHA)
	}
	return found[0], nil
}

// newestAttestations is how many of them a commit record holds.
const newestAttestations = 100

// completeCommit adds to a commit as it is listed what else its record holds,
// but for its changes.
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

	newest := attestationQuery{repo: r, commit: c.id, few: v.Attested <= newestAttestations, limit: newestAttestations}
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
	case v.Overlaps != nil: // they have just been found
	case isTip:
		err = rd.lister(d).addOverlaps(&v.CommitSummary, c.id)
	default:
		v.Overlaps = noOverlaps()
	}
	if err != nil {
		return err
	}
	v.InFlight = tip.Flies(d.contract.Radar, rd.now)
	v.Transitions, err = all(rd, scanTransition,
		"SELECT from_state, to_state, at, cause_type, cause_id FROM transitions WHERE commit_id = ? ORDER BY event", c.id)
	return err
}

// listedRow returns what a derivation needs to know of a commit that was listed.
func listedRow(id int64, v *ledger.CommitSummary) *commitRow {
	return &commitRow{id: id, state: v.State, attestations: v.Attested, branch: v.Branch, target: v.Target, author: v.Author}
}

func scanTransition(row scanner) (ledger.Transition, error) {
	var t ledger.Transition
	err := row.Scan(&t.From, &t.To, &t.At, &t.Cause.Type, &t.Cause.ID)
	return t, err
}

// A CommitFilter says which commits a list holds. Empty members do not filter.
type CommitFilter struct {
	Query
	State  *ledger.State
	Branch string
	Author string // a name or an e-mail address
	// InFlight leaves only the tips that the radar compares others with.
	InFlight bool
	// Standing has each commit come with what it is missing and its overlaps.
	Standing bool
}

// Commits lists a repo's commits, those registered last first.
func (s *Store) Commits(ctx context.Context, org, repo string, f CommitFilter) (ledger.Page[ledger.CommitSummary], error) {
	before, err := f.after(1 << 62)
	if err != nil {
		return ledger.Page[ledger.CommitSummary]{}, err
	}
	return read(ctx, s, func(rd reader) (list ledger.Page[ledger.CommitSummary], err error) {
		r, err := rd.findRepo(org, repo)
		if err != nil {
			return list, err
		}
		d, err := rd.deriver(r)
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
			row.row.Org, row.row.Repo = r.org, r.name
			row.row.Target = cmp.Or(row.row.Target, r.defaultBranch)
			summaries[i] = keyed[ledger.CommitSummary]{row.id, row.row.CommitSummary}
		}
		if f.Standing {
			err = rd.addStanding(d, summaries[:min(len(summaries), f.Limit)])
		}
		return page(summaries, f.Limit), err
	})
}

// sql returns the query for the page of commits before an id, and one row more.
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

// addStanding adds to commits what each is missing, and its overlaps.
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
		v.Missing = ledger.Missing(v.State, d.contract.Derive(s.facts, rd.now).Requirements)
		if err := l.addOverlaps(v, s.id); err != nil {
			return err
		}
	}
	return nil
}
