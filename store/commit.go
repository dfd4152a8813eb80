package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
)

// Register records what its pusher says of a commit, makes it known where it
// was not, and derives its state anew where that changes what applies to it.
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
	var r repoRow
	var result tipResult
	err = s.write(ctx, func(t *tx) error {
		if r, err = findRepo(t.conn, org, repo); err != nil {
			return err
		}
		c, isNew, err := t.findOrAddCommit(r, sha)
		if err != nil {
			return err
		}
		created = isNew
		if err := checkAuthor(c, n.Author); err != nil {
			return err
		}
		d, err := s.deriver(t.conn, r)
		if err != nil {
			return err
		}
		if c, _, err = t.settleDue(d, c); err != nil {
			return err
		}
		if err := t.describeCommit(c.id, n); err != nil {
			return err
		}
		result, err = t.registerTip(d, c, isNew, n, ahead)
		return err
	})
	if err != nil {
		return v, created, err
	}
	err = s.read(ctx, func(c *conn) error {
		v, err = s.registered(c, r, result)
		return err
	})
	return v, created, err
}

// registered reads the record of a commit for the answer to its registration.
func (s *Store) registered(conn *conn, r repoRow, result tipResult) (ledger.Commit, error) {
	c, err := scanCommit(conn.row(selectCommit+"WHERE id = ?", result.commit))
	if err != nil {
		return c.row, fmt.Errorf("read commit: %w", err)
	}
	if result.looked {
		c.row.Overlaps, c.row.OverlapsTruncated = result.counts(), result.more
	}
	if err := s.completeCommit(conn, r, &c); err != nil {
		return c.row, err
	}
	radar, err := result.tell(conn, asSide(c.row.CommitSummary), answeredPairs)
	c.row.Radar = &radar
	return c.row, err
}

// answeredPairs is how many overlaps the answer to a registration holds.
const answeredPairs = 20

// registerTip has the radar look at a commit of which a registration says
// something, and derives its state anew.
func (t *tx) registerTip(d deriver, c commitRow, isNew bool, said ledger.Registration, ahead *look) (tipResult, error) {
	known, err := said, error(nil)
	if !isNew {
		if known, err = registrationOf(t.conn, c.id); err != nil {
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
	return result, t.resettle(d, c.id, cause)
}

// registrationOf reads what is known of a commit by its registrations.
func registrationOf(c *conn, commitID int64) (n ledger.Registration, err error) {
	err = c.row("SELECT branch, target, base FROM commits WHERE id = ?", commitID).Scan(&n.Branch, &n.Target, &n.Base)
	if err != nil {
		return n, fmt.Errorf("read commit: %w", err)
	}
	d, err := findDetails(c, commitID)
	n.Parents, n.Ancestors, n.Contained, n.Changes = d.parents, d.ancestors, d.contained, d.changes
	return n, err
}

// checkAuthor refuses to change the author of a commit: git cannot, and a
// review by the author must not come to count because somebody says so.
func checkAuthor(c commitRow, n ledger.Author) error {
	known := func(before, now string) bool { return now == "" || before == "" || before == now }
	if known(c.author.Name, n.Name) && known(c.author.Email, n.Email) {
		return nil
	}
	return ledger.FieldErrorf(ledger.CodeInvalidField, "author", "the commit is registered as by %s <%s>: a commit's author cannot change", c.author.Name, c.author.Email)
}

// resettle reads a commit and its facts anew and settles it, unless Evaluate is
// about to.
func (t *tx) resettle(d deriver, commitID int64, cause ledger.Cause) error {
	c, err := scanCommitRow(t.row(selectCommitRow+"WHERE id = ?", commitID))
	if err != nil {
		return fmt.Errorf("read commit: %w", err)
	}
	if d.reevaluating && c.policyVersion != d.repo.policyVersion {
		return nil
	}
	f, err := d.facts(c)
	if err != nil {
		return err
	}
	_, err = t.settle(d, c, f, cause)
	return err
}

func (t *tx) findOrAddCommit(r repoRow, sha string) (c commitRow, created bool, err error) {
	c, err = scanCommitRow(t.row(selectCommitRow+"WHERE repo_id = ? AND sha = ?", r.id, sha))
	if !errors.Is(err, sql.ErrNoRows) {
		return c, false, err
	}
	c = commitRow{sha: sha, state: ledger.Draft, policyVersion: r.policyVersion}
	c.id, err = t.insert("INSERT INTO commits (repo_id, sha, state, state_since, registered_at, policy_version) VALUES (?, ?, ?, ?, ?, ?)",
		r.id, sha, c.state, t.now, t.now, r.policyVersion)
	if err != nil {
		return c, false, fmt.Errorf("insert commit: %w", err)
	}
	t.countState(r.id, c.state, 1)
	return c, true, nil
}

func (t *tx) describeCommit(id int64, n ledger.Registration) error {
	_, err := t.exec(`
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
	d, err := findDetails(t.conn, id)
	if err != nil {
		return err
	}
	d.merge(n)
	return t.saveDetails(id, d)
}

// mergedRegistration is registrationOf as another registration will make it.
func mergedRegistration(c *conn, commitID int64, n ledger.Registration) (ledger.Registration, error) {
	known, err := registrationOf(c, commitID)
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

func findDetails(c *conn, commitID int64) (details, error) {
	d, err := findLineage(c, commitID)
	if err != nil {
		return d, err
	}
	d.changes, err = findChanges(c, commitID)
	return d, err
}

// findLineage reads the details but for the changes, which may be long.
func findLineage(c *conn, commitID int64) (d details, err error) {
	err = c.each(func(row scanner) error {
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
	_, err := t.exec("INSERT OR REPLACE INTO commit_details (commit_id, parents, ancestors, contained, changes) VALUES (?, ?, ?, ?, ?)",
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
	var c keyed[ledger.Commit]
	err := s.read(ctx, func(conn *conn) error {
		r, err := findRepo(conn, org, repo)
		if err != nil {
			return err
		}
		if c, err = findCommit(conn, r, prefix); err != nil {
			return err
		}
		if c.row.Changes, err = findChanges(conn, c.id); err != nil {
			return err
		}
		return s.completeCommit(conn, r, &c)
	})
	return c.row, err
}

func findCommit(conn *conn, r repoRow, prefix string) (keyed[ledger.Commit], error) {
	// "g" sorts behind every hex digit: the range holds what begins with prefix.
	found, err := all(conn, scanCommit, selectCommit+"WHERE repo_id = ? AND sha >= ? AND sha < ? ORDER BY sha LIMIT 2", r.id, prefix, prefix+"g")
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
func (s *Store) completeCommit(conn *conn, r repoRow, c *keyed[ledger.Commit]) error {
	details, err := findLineage(conn, c.id)
	if err != nil {
		return err
	}
	v := &c.row
	v.Parents, v.Ancestors, v.Contained = details.parents, details.ancestors, details.contained
	v.Org, v.Repo, v.Target = r.org, r.name, cmp.Or(v.Target, r.defaultBranch)

	d, err := s.deriver(conn, r)
	if err != nil {
		return err
	}
	f, err := d.facts(commitRow{id: c.id, state: v.State, attestations: v.Attested, branch: v.Branch, target: v.Target, author: v.Author})
	if err != nil {
		return err
	}
	v.Requirements = d.contract.Derive(f, s.Now()).Requirements
	v.PolicyVersion = r.policyVersion

	newest := attestationQuery{repo: r, commit: c.id, limit: newestAttestations}
	attestations, err := newest.run(conn, s.names)
	if err != nil {
		return err
	}
	v.Attestations = make([]ledger.AttestationRecord, len(attestations))
	for i, a := range attestations {
		v.Attestations[i] = a.row
	}
	v.AttestationsURL = fmt.Sprintf("/v1/orgs/%s/repos/%s/attestations?commit=%s", r.org, r.name, v.SHA)
	if v.Overlaps == nil {
		if err := d.lister(s.Now()).addOverlaps(&v.CommitSummary, c.id); err != nil {
			return err
		}
	}
	tip, _, err := findTip(conn, c.id)
	if err != nil {
		return err
	}
	v.InFlight = tip.Flies(d.contract.Radar, s.Now())
	v.Transitions, err = all(conn, scanTransition, "SELECT from_state, to_state, at, cause_type, cause_id FROM transitions WHERE commit_id = ? ORDER BY event", c.id)
	return err
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
func (s *Store) Commits(ctx context.Context, org, repo string, f CommitFilter) (list ledger.Page[ledger.CommitSummary], err error) {
	before, err := f.after(1 << 62)
	if err != nil {
		return list, err
	}
	err = s.read(ctx, func(conn *conn) error {
		r, err := findRepo(conn, org, repo)
		if err != nil {
			return err
		}
		where, args := "WHERE repo_id = ? AND id < ?", []any{r.id, before}
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
			contract, err := s.contract(conn, r)
			if err != nil {
				return err
			}
			where += " AND id IN (SELECT commit_id FROM tips WHERE repo_id = ? AND flight = ? AND opened_at >= ?)"
			args = append(args, r.id, radarindex.InFlight, contract.Radar.Oldest(s.Now()))
		}
		rows, err := all(conn, scanCommit, selectCommit+where+" ORDER BY id DESC LIMIT ?", append(args, f.Limit+1)...)
		summaries := make([]keyed[ledger.CommitSummary], len(rows))
		for i, row := range rows {
			row.row.Org, row.row.Repo = r.org, r.name
			row.row.Target = cmp.Or(row.row.Target, r.defaultBranch)
			summaries[i] = keyed[ledger.CommitSummary]{row.id, row.row.CommitSummary}
		}
		if err == nil && f.Standing {
			err = s.addStanding(conn, r, summaries[:min(len(summaries), f.Limit)])
		}
		list = page(summaries, f.Limit)
		return err
	})
	return list, err
}

// addStanding adds to commits what each is missing, and its overlaps.
func (s *Store) addStanding(conn *conn, r repoRow, commits []keyed[ledger.CommitSummary]) error {
	d, err := s.deriver(conn, r)
	if err != nil {
		return err
	}
	now := s.Now()
	l := d.lister(now)
	for i := range commits {
		v := &commits[i].row
		f, err := d.facts(commitRow{id: commits[i].id, state: v.State, attestations: v.Attested, branch: v.Branch, target: v.Target, author: v.Author})
		if err != nil {
			return err
		}
		v.Missing = ledger.Missing(v.State, d.contract.Derive(f, now).Requirements)
		if err := l.addOverlaps(v, commits[i].id); err != nil {
			return err
		}
	}
	return nil
}
