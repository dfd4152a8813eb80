package lists

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Commit returns a commit, given its full id or a prefix that is unique in the repo.
func (li *Lists) Commit(ctx context.Context, org, repo, prefix string) (ledger.Commit, error) {
	return li.CommitFor(ctx, org, repo, prefix, "", "")
}

// CommitFor is like Commit, but answers for one target branch: the requirements are
// evaluated as if the commit was meant for that branch alone, and TargetState is set. If
// target is empty, it is the same as Commit. With an environment, Delivery is set if the policy asks for it.
func (li *Lists) CommitFor(ctx context.Context, org, repo, prefix, target, environment string,
) (v ledger.Commit, err error) {
	err = li.states.Fresh(ctx, org, func(isLast bool) error {
		v, err = li.commitFor(ctx, org, repo, prefix, target, environment, !isLast)
		return err
	})
	return v, err
}

func (li *Lists) commitFor(
	ctx context.Context, org, repo, prefix, target, environment string, fresh bool,
) (ledger.Commit, error) {
	return txn.Read(ctx, li.db, txn.ByOrg(org), func(rd txn.Reader) (v ledger.Commit, err error) {
		r, err := rd.FindRepo(org, repo)
		if err != nil {
			return v, err
		}
		c, err := facts.FindCommit(rd, r, prefix)
		if err != nil {
			return v, err
		}
		changes := facts.AskClaimedChanges(rd, c.ID)
		if err := li.CompleteCommit(rd, r, &c, About{target, environment}, fresh); err != nil {
			return v, err
		}
		c.Row.Changes, c.Row.Paths, err = changes()
		return c.Row, err
	})
}

// The maximum number of attestations and of transitions in a commit record.
const (
	newestAttestations = 100
	MaxTransitions     = 100
)

// About says what the record of a commit is asked for.
type About struct {
	// Target is the one branch for which it is evaluated; empty for all that it is meant for.
	Target string
	// Environment is the one for which the delivery is asked; empty for none.
	Environment string
}

// CompleteCommit adds to a listed commit the rest of its record, except the changes. If
// target is not empty, it answers for that branch.
func (li *Lists) CompleteCommit(rd txn.Reader, r txn.Repo, c *txn.Keyed[ledger.Commit], about About,
	fresh bool) error {
	asked := li.askRecord(rd, r, c)
	details, err := asked.lineage()
	if err != nil {
		return err
	}
	v := &c.Row
	v.Parents, v.Ancestors, v.Contained = details.Parents, details.Ancestors, details.Contained
	v.Org, v.Repo, v.Target = r.Org, r.Name, cmp.Or(v.Target, r.DefaultBranch)

	d, err := li.facts.Deriver(rd, r)
	if err != nil {
		return err
	}
	if err := li.addVerdict(rd, d, c, asked, about, fresh); err != nil {
		return err
	}
	if err := li.addViolations(rd, r, c.ID, v); err != nil {
		return err
	}

	attestations, err := asked.attestations()
	if err != nil {
		return err
	}
	if err := facts.MarkDistrusted(rd, r, attestations.Rows); err != nil {
		return err
	}
	v.Attestations = attestations.Data()
	d.Contract.NoteDistrusted(v.Requirements, v.Attestations)

	tip, isTip, err := asked.tip()
	if err != nil {
		return err
	}
	switch {
	case v.Overlaps != nil: // just set from a scan
	case isTip:
		err = overlaps.Lister(rd, d).AddOverlaps(&v.CommitSummary, c.ID)
	default:
		v.Overlaps = overlaps.NoOverlaps()
	}
	if err != nil {
		return err
	}

	v.InFlight, v.Withdrawn = tip.InFlightAt(d.Contract.Radar, rd.Now), tip.Flight == radarindex.Withdrawn
	transitions, err := asked.transitions()
	v.Transitions = transitions.Data()
	slices.Reverse(v.Transitions)
	return err
}

// The answers are what is asked for every commit record. Each is taken once.
type answers struct {
	lineage      func() (facts.Details, error)
	row          func() (*facts.CommitRow, error)
	latest       func() ([]facts.Latest, error)
	attestations func() (txn.Section[ledger.AttestationRecord], error)
	corrections  func() ([]ledger.Correction, error)
	tip          func() (radarindex.Tip, bool, error)
	transitions  func() (txn.Section[ledger.Transition], error)
}

// askRecord asks for a commit record. Evidence is asked together with the rest only if it is little, because
// other reads must not wait for it.
func (li *Lists) askRecord(rd txn.Reader, r txn.Repo, c *txn.Keyed[ledger.Commit]) answers {
	newest := attestationQuery{
		facts: li.facts, repo: r, commit: c.ID, attested: c.Row.Attested, limit: newestAttestations,
	}
	asked := answers{lineage: facts.AskLineage(rd, c.ID), row: facts.AskCommitRow(rd, c.ID)}
	if c.Row.Attested <= txn.MaxExamined {
		asked.latest, asked.attestations = facts.AskLatest(rd, c.ID), newest.askCommit(rd)
	} else {
		asked.latest = func() ([]facts.Latest, error) { return facts.AskLatest(rd, c.ID)() }
		asked.attestations = func() (txn.Section[ledger.AttestationRecord], error) { return newest.readCommit(rd) }
	}
	asked.corrections = facts.AskCorrections(rd, c.ID)
	asked.tip = facts.AskTip(rd, c.ID)
	asked.transitions = askTransitions(rd, c.ID, math.MaxInt64, MaxTransitions)
	return asked
}

// addVerdict adds to a commit what the policy says of it, and what it rests on. If target
// is not empty, it answers for that branch.
func (li *Lists) addVerdict(
	rd txn.Reader, d *facts.Deriver, c *txn.Keyed[ledger.Commit], asked answers, about About, fresh bool,
) error {
	row, err := asked.row()
	if err != nil {
		return err
	}
	s, err := li.facts.GatherAsked(rd, d, row, asked.latest)
	if err != nil {
		return err
	}

	isDue := s.IsOutdated() || s.HasExpired(rd.Now)
	if isDue && fresh {
		return &states.Outdated{Commit: c.ID}
	}

	v := &c.Row
	if v.Writers, err = row.Claims.DecodeWriters(); err != nil {
		return err
	}
	v.Targets, v.SigningKeys = row.ClaimedTargets(), row.Claims.Keys()
	v.Proven, v.Tree = row.IsProven(), row.Tree
	if v.Corrections, err = asked.corrections(); err != nil {
		return err
	}
	if row.Merged&facts.IsMerge != 0 {
		if err := li.facts.AddMerges(rd, c.ID, v); err != nil {
			return err
		}
	}

	if target := about.Target; target != "" {
		s.Facts.Targets, s.Facts.Target = []string{target}, target
	}
	if v.Delivery, err = li.Ships(rd, s, about.Environment); err != nil {
		return err
	}
	v.Deliveries = deliveries(d.Contract)
	derived := d.Contract.Derive(s.Facts, rd.Now)
	switch {
	case about.Target != "":
		v.TargetState = &derived.State
	case isDue && !s.IsUnevaluated():
		v.State = derived.State
	}
	v.Standing, v.RolledBack = derived.Standing, derived.RolledBack
	v.Requirements, v.PolicyVersion = derived.Requirements, d.Repo.PolicyVersion
	return li.noteEarlier(rd, s, v.Requirements)
}

// askTransitions asks for a page of a commit's transitions before an event, and returns the function that takes
// the answer, newest first. The row id of its rows is that of their event.
func askTransitions(
	rd txn.Reader, commitID, before int64, limit int,
) func() (txn.Section[ledger.Transition], error) {
	return txn.AskPage(rd.Conn, scanTransition, limit, `
SELECT event, from_state, to_state, at, cause_type, cause_id FROM transitions
WHERE commit_id = ? AND event < ? ORDER BY event DESC LIMIT ?`, commitID, before)
}

func scanTransition(row txn.Scanner) (txn.Keyed[ledger.Transition], error) {
	var t txn.Keyed[ledger.Transition]
	err := row.Scan(&t.ID, &t.Row.From, &t.Row.To, &t.Row.At, &t.Row.Cause.Type, &t.Row.Cause.ID)
	return t, err
}

// Transitions lists the transitions of a commit, newest first, given its full id or a
// prefix that is unique in the repo.
func (li *Lists) Transitions(
	ctx context.Context, org, repo, prefix string, q txn.Query,
) (ledger.Page[ledger.Transition], error) {
	return txn.Read(ctx, li.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.Page[ledger.Transition], err error) {
		r, err := rd.FindRepo(org, repo)
		if err != nil {
			return list, err
		}
		c, err := facts.FindCommit(rd, r, prefix)
		if err != nil {
			return list, err
		}
		l := rd.Listing("transitions", c.ID)
		before, err := l.After(q, math.MaxInt64)
		if err != nil {
			return list, err
		}
		p, err := askTransitions(rd, c.ID, before, q.Limit)()
		return p.Page(l), err
	})
}

// A CommitFilter selects the commits of a list. Empty fields do not filter.
type CommitFilter struct {
	txn.Query
	State  *ledger.State
	Branch string
	// Author is a name or an e-mail address, or, if no author has exactly that, a part of
	// one, in any case.
	Author string
	// Text selects commits that have it in the beginning of their message, their branch or
	// their author's name or email address, or at the beginning of their id. ASCII letters
	// match in any case.
	Text string
	// InFlight selects only the commits in flight.
	InFlight bool
	// Standing adds to each commit its missing requirements and its overlaps.
	Standing bool
}

// Commits lists a repo's commits, the last registered first. Their messages are cut to the
// subject.
func (li *Lists) Commits(
	ctx context.Context, org, repo string, f CommitFilter,
) (ledger.Page[ledger.CommitSummary], error) {
	return txn.Read(ctx, li.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.Page[ledger.CommitSummary], err error) {
		d, err := li.facts.DeriverOf(rd, org, repo)
		if err != nil {
			return list, err
		}
		l := rd.Listing("commits", d.Repo.ID)
		before, err := l.After(f.Query, math.MaxInt64)
		if err != nil {
			return list, err
		}
		isPart, err := isPartOfAuthors(rd, d.Repo, f.Author)
		if err != nil {
			return list, err
		}
		p, err := txn.RunAll(rd.Conn, f.walks(d, rd.Now, isPart), []any{before}, f.Limit)
		if err != nil {
			return list, fmt.Errorf("list commits: %w", err)
		}

		for i := range p.Rows {
			v := &p.Rows[i].Row
			v.Org, v.Repo, v.Target = d.Repo.Org, d.Repo.Name, cmp.Or(v.Target, d.Repo.DefaultBranch)
		}
		if f.Standing {
			if err := li.addStanding(rd, d, &p); err != nil {
				return list, err
			}
		}
		return p.Page(l), nil
	})
}

// isPartOfAuthors reports whether no author of a repo's commits has exactly this name or
// address.
func isPartOfAuthors(rd txn.Reader, r txn.Repo, author string) (isPart bool, err error) {
	if author == "" {
		return false, nil
	}
	err = rd.Row(`
SELECT NOT EXISTS (SELECT 1 FROM commits /*+index commits_by_author_name*/
    WHERE repo_id = ? AND author_name <> '' AND author_name = ?)
  AND NOT EXISTS (SELECT 1 FROM commits /*+index commits_by_author_email*/
    WHERE repo_id = ? AND author_email <> '' AND author_email = ?)`, r.ID, author, r.ID, author).Scan(&isPart)
	if err != nil {
		return false, fmt.Errorf("look up author: %w", err)
	}
	return isPart, nil
}

// walks returns the walks by which the list is read. isPart reports whether the author is
// only a part of a name or an address.
func (f CommitFilter) walks(d *facts.Deriver, now ledger.Time, isPart bool) []txn.Walk[ledger.CommitSummary] {
	walks := f.indexed(d, now, isPart)
	if f.Text == "" {
		return walks
	}
	for i := range walks {
		w := &walks[i]
		w.Filter += ` AND (lower(substr(c.message, 1, ` + SubjectBytes + `)) LIKE ? ESCAPE '!' OR
  lower(c.branch) LIKE ? ESCAPE '!' OR
  lower(c.author_name) LIKE ? ESCAPE '!' OR lower(c.author_email) LIKE ? ESCAPE '!' OR
  substr(c.sha, 1, ?) = ?)`
		text, part := txn.LowerASCII(f.Text), txn.Containing(f.Text)
		w.FilterArgs = append(slices.Clip(w.FilterArgs), part, part, part, part, len(text), text)
	}
	return walks
}

// indexed returns the walks for all of the filter but Text.
func (f CommitFilter) indexed(d *facts.Deriver, now ledger.Time, isPart bool) []txn.Walk[ledger.CommitSummary] {
	where, args := "", []any(nil)
	if f.State != nil {
		where, args = where+" AND c.state = ?", append(args, *f.State)
	}
	if f.Branch != "" {
		where, args = where+" AND c.branch = ?", append(args, f.Branch)
	}
	byAuthor, author := "c.author_name = ? OR c.author_email = ?", any(f.Author)
	if isPart {
		byAuthor = "lower(c.author_name) LIKE ? ESCAPE '!' OR lower(c.author_email) LIKE ? ESCAPE '!'"
		author = txn.Containing(f.Author)
	}

	switch {
	case f.InFlight:
		w := commitWalk(d, "tips t /*+index tips_in_flight*/", "t.repo_id = ? AND t."+facts.IsInFlight)
		w.Joins, w.Keys = " /*+ordered*/ JOIN commits c ON c.id = t.commit_id", []string{"t.commit_id"}
		w.Filter, w.FilterArgs = " AND t.opened_at >= ?"+where, append([]any{d.Contract.Radar.Oldest(now)}, args...)
		if f.Author != "" {
			w.Filter, w.FilterArgs = w.Filter+" AND ("+byAuthor+")", append(w.FilterArgs, author, author)
		}
		return []txn.Walk[ledger.CommitSummary]{w}

	case isPart:
		w := commitWalk(d, "commits c /*+index commits_by_repo*/", "c.repo_id = ?")
		w.Filter, w.FilterArgs = where+" AND ("+byAuthor+")", append(args, author, author)
		return []txn.Walk[ledger.CommitSummary]{w}

	case f.Author != "":
		walks := make([]txn.Walk[ledger.CommitSummary], 2)
		for i, column := range []string{"author_name", "author_email"} {
			walks[i] = commitWalk(d, "commits c /*+index commits_by_"+column+"*/",
				"c.repo_id = ? AND c."+column+" <> '' AND c."+column+" = ?", f.Author)
			walks[i].Filter, walks[i].FilterArgs = where, args
		}
		return walks

	case f.Branch != "":
		w := commitWalk(d, "commits c /*+index commits_by_branch*/",
			"c.repo_id = ? AND c.branch <> '' AND c.branch = ?", f.Branch)
		if f.State != nil {
			w.Filter, w.FilterArgs = " AND c.state = ?", []any{*f.State}
		}
		return []txn.Walk[ledger.CommitSummary]{w}

	case f.State != nil:
		return []txn.Walk[ledger.CommitSummary]{commitWalk(d, "commits c /*+index commits_by_state*/",
			"c.repo_id = ? AND c.state = ?", *f.State)}
	}
	return []txn.Walk[ledger.CommitSummary]{commitWalk(d, "commits c /*+index commits_by_repo*/", "c.repo_id = ?")}
}

// commitWalk returns a walk of a repo's commits by an index, the newest first, without a
// filter. args are the parameters of where after the repo.
func commitWalk(d *facts.Deriver, from, where string, args ...any) txn.Walk[ledger.CommitSummary] {
	return txn.Walk[ledger.CommitSummary]{
		From: from, Where: where, Args: append([]any{d.Repo.ID}, args...),
		Keys: []string{"c.id"}, Key: txn.IDOf[ledger.CommitSummary], Down: true,
		Columns: SummaryColumns, Scan: ScanSummary,
	}
}

// SummaryColumns are the columns of a commit c in a list. Of the message, they have what
// contains the subject.
const SummaryColumns = `c.sha, c.state, c.state_since, c.registered_at, c.branch, c.target, c.author_name,
  c.author_email, substr(c.message, 1, ` + SubjectBytes + `), c.committed_at, c.attestations, c.id`

// ScanSummary scans a row of the SummaryColumns.
func ScanSummary(row txn.Scanner) (txn.Keyed[ledger.CommitSummary], error) {
	return ScanSummaryAnd(row)
}

// ScanSummaryAnd scans the SummaryColumns and further columns.
func ScanSummaryAnd(row txn.Scanner, more ...any) (txn.Keyed[ledger.CommitSummary], error) {
	var c txn.Keyed[ledger.CommitSummary]
	v := &c.Row
	err := row.Scan(append([]any{&v.SHA, &v.State, &v.StateSince, &v.RegisteredAt, &v.Branch, &v.Target,
		&v.Author.Name, &v.Author.Email, &v.Message, &v.CommittedAt, &v.Attested, &c.ID}, more...)...)
	v.Message = ledger.Subject(v.Message)
	return c, err
}

// addStanding adds to the commits of a page their missing requirements and their overlaps.
// It ends the page early if that examines many rows. A page has at least one commit.
func (li *Lists) addStanding(rd txn.Reader, d *facts.Deriver, p *txn.Section[ledger.CommitSummary]) error {
	ids := make([]int64, len(p.Rows))
	for i := range p.Rows {
		ids[i] = p.Rows[i].ID
	}
	subjects, err := li.states.ReadCommits(rd, d, ids)
	if err != nil {
		return err
	}

	l := overlaps.Lister(rd, d)
	for i, s := range subjects {
		v := &p.Rows[i].Row
		derived := d.Contract.Derive(s.Facts, rd.Now)
		reached := v.State
		if s.KeepsStanding() && ledger.Lapsed(v.State, derived.Standing) {
			running, err := facts.IsRunning(rd, s.ID)
			if err != nil {
				return err
			}
			if running {
				reached = derived.Standing
			}
		}
		v.Missing = policy.Missing(reached, derived.Requirements)
		if err := l.AddOverlaps(v, s.ID); err != nil {
			return err
		}
		if l.Examined >= txn.MaxExamined && i+1 < len(p.Rows) {
			p.Rows = p.Rows[:i+1]
			p.End = txn.IDOf(p.Rows[i])
			return nil
		}
	}
	return nil
}
