package boards

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An AttentionFilter selects what needs attention. Empty fields do not filter.
type AttentionFilter struct {
	txn.Query
	Kind attention.Kind
	Repo string
	// Admin adds what only admins may see: webhooks, and tokens that expire.
	Admin bool
}

// maxExplained limits the items of a page whose reasons are derived.
const maxExplained = 100

// Attention lists what needs attention in an org, the most urgent first. It examines a
// limited number of the newest candidates of each kind; the counts say if there may be more.
func (bo *Boards) Attention(ctx context.Context, org string, f AttentionFilter) (attention.List, error) {
	return txn.Read(ctx, bo.db, txn.ByOrg(org), func(rd txn.Reader) (list attention.List, err error) {
		l := &attentionList{Reader: rd, bo: bo, filter: f, derivers: bo.facts.Derivers()}
		if l.orgID, err = rd.OrgID(org); err != nil {
			return list, err
		}
		if f.Repo != "" {
			r, err := rd.FindRepo(org, f.Repo)
			if err != nil {
				return list, err
			}
			l.repoID = r.ID
		}
		cursors := rd.Listing("attention", l.orgID)
		position, err := cursors.Position(f.Query, len(attention.Key{}))
		if err != nil {
			return list, err
		}

		if err := l.collect(); err != nil {
			return list, fmt.Errorf("find what needs attention: %w", err)
		}
		list.Counts = l.counts()
		rows, more := l.page(position)
		if list.Data, err = l.explain(rows); err != nil {
			return list, fmt.Errorf("explain what needs attention: %w", err)
		}
		if more {
			list.NextCursor = cursors.Cursor(rows[len(rows)-1].key[:]...)
		}
		return list, nil
	})
}

// An attentionList reads a page of what needs attention.
type attentionList struct {
	txn.Reader
	bo       *Boards
	filter   AttentionFilter
	orgID    int64
	repoID   int64 // 0: of all repos
	derivers *facts.Derivers

	rows       []candidate
	violations int // the exact number of open ones
	more       map[attention.Kind]bool
	examined   int
}

// counts returns the number of candidates of each kind.
func (l *attentionList) counts() (counts []attention.Count) {
	for _, kind := range attention.Kinds() {
		if kind.NeedsAdmin() && !l.filter.Admin {
			continue
		}
		c := attention.Count{Kind: kind, More: l.more[kind]}
		for _, r := range l.rows {
			if r.Kind == kind {
				c.Count++
			}
		}
		if kind == attention.Violation {
			c.Count, c.More = l.violations, false
		}
		counts = append(counts, c)
	}
	return counts
}

// page returns the candidates of the page after a position. more reports whether others
// follow.
func (l *attentionList) page(position []int64) (rows []candidate, more bool) {
	for _, r := range l.rows {
		if (l.filter.Kind == "" || r.Kind == l.filter.Kind) &&
			(position == nil || r.key.Compare(attention.Key(position)) > 0) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b candidate) int { return a.key.Compare(b.key) })

	limit := min(l.filter.Limit, maxExplained)
	if len(rows) <= limit {
		return rows, false
	}
	return rows[:limit], true
}

// collect reads the candidates.
func (l *attentionList) collect() error {
	l.more = make(map[attention.Kind]bool)
	repos, more, err := troubledRepos(l.Reader, l.orgID, l.repoID)
	if err != nil {
		return err
	}
	if more {
		for _, kind := range attention.Kinds() {
			l.more[kind] = true
		}
	}

	steps := []func() error{
		l.addViolations,
		func() error { return l.eachRepo(repos, attention.Failed, isFailing, l.addFailing) },
		func() error { return l.eachRepo(repos, attention.Review, isAttested, l.addWaiting) },
		func() error { return l.eachRepo(repos, attention.Conflict, hasConflicts, l.addConflicts) },
		func() error { return l.eachRepo(repos, attention.Expiring, hasEnding, l.addExceptions) },
		func() error { return l.eachRepo(repos, attention.Expiring, isExpiring, l.addEvidence) },
	}
	if l.filter.Admin {
		steps = append(steps, func() error { return l.eachRepo(repos, attention.Webhook, hasWebhooks, l.addWebhooks) })
	}
	if l.repoID == 0 {
		steps = append(steps, l.addIdentities)
	}
	if l.repoID == 0 && l.filter.Admin {
		steps = append(steps, l.addTokens)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	l.more[attention.Lapsed] = l.more[attention.Failed] // they are examined together
	return nil
}

func isFailing(r troubledRepo) bool    { return r.failing }
func isAttested(r troubledRepo) bool   { return r.attested }
func hasConflicts(r troubledRepo) bool { return r.conflicting }
func hasEnding(r troubledRepo) bool    { return r.ending }
func isExpiring(r troubledRepo) bool   { return r.expiring }
func hasWebhooks(r troubledRepo) bool  { return r.webhooks }

// eachRepo calls add for the repos that match. Each examines its share of the rows, and
// returns whether there may be more.
func (l *attentionList) eachRepo(
	repos []troubledRepo, kind attention.Kind, matches func(troubledRepo) bool,
	add func(d *facts.Deriver, limit int) (examined int, more bool, err error),
) error {
	matching := slices.DeleteFunc(slices.Clone(repos), func(r troubledRepo) bool { return !matches(r) })
	rest := maxCandidates
	for n, r := range matching {
		if rest <= 0 {
			l.more[kind] = true
			break
		}
		d, err := l.derivers.Of(l.Reader, r.id)
		if err != nil {
			return err
		}

		share := max(minShare, rest/(len(matching)-n))
		if l.examined += share; l.examined > txn.WindowRows {
			if err := l.Long(); err != nil {
				return err
			}
		}
		examined, more, err := add(d, share)
		if err != nil {
			return err
		}
		rest, l.more[kind] = rest-examined, l.more[kind] || more
		l.examined += examined - share
	}
	return nil
}

// add adds a candidate with the row id of its source.
func (l *attentionList) add(i attention.Item, source, id int64, repoID, commitID int64) {
	l.rows = append(l.rows, candidate{Item: i, repoID: repoID, commitID: commitID,
		key: attention.KeyOf(i, id*numberOfSources+source)})
}

func (l *attentionList) addViolations() error {
	const columns = states.SelectViolation + ", r.name, v.commit_id FROM violations v "
	query := columns + "/*+index violations_open_by_org*/" + states.JoinViolation + `
/*+ordered*/ JOIN repos r ON r.id = v.repo_id AND r.deleted_at = 0
WHERE v.org_id = ? AND v.closed_at = 0 ORDER BY v.id DESC LIMIT ?`
	by, count := l.orgID, `SELECT o.open_violations - coalesce((SELECT sum(r.open_violations)
  FROM repos r /*+index repos_deleted*/ WHERE r.org_id = o.id AND r.deleted_at > 0), 0) FROM orgs o WHERE o.id = ?`
	if l.repoID != 0 {
		query = columns + "/*+index violations_open_by_repo*/" + states.JoinViolation + `
/*+ordered*/ JOIN repos r ON r.id = v.repo_id WHERE v.repo_id = ? AND v.closed_at = 0 ORDER BY v.id DESC LIMIT ?`
		by, count = l.repoID, "SELECT open_violations FROM repos WHERE id = ?"
	}
	if err := l.Row(count, by).Scan(&l.violations); err != nil {
		return fmt.Errorf("count violations: %w", err)
	}
	if l.violations == 0 {
		return nil
	}

	err := l.EachLong(func(row txn.Scanner) error {
		var repo string
		var commitID int64
		v, err := l.bo.states.ScanViolation(l.Reader, row, &repo, &commitID)
		v.Row.Repo = repo
		l.add(attention.ViolationItem(v.Row), fromViolation, v.ID, 0, commitID)
		return err
	}, query, by, maxCandidates)
	if err != nil {
		return fmt.Errorf("read violations: %w", err)
	}
	return nil
}

func (l *attentionList) addFailing(d *facts.Deriver, limit int) (examined int, more bool, err error) {
	list, more, err := failing(l.Reader, d.Repo, limit)
	l.addCommits(d, list)
	return len(list), more, err
}

func (l *attentionList) addWaiting(d *facts.Deriver, limit int) (examined int, more bool, err error) {
	list, more, err := waiting(l.Reader, d.Repo, limit)
	l.addCommits(d, list)
	return len(list), more, err
}

func (l *attentionList) addCommits(d *facts.Deriver, list []presentRow) {
	for _, c := range list {
		i, _ := c.Needs(l.Now)
		l.add(i, fromCommit, c.id, d.Repo.ID, c.id)
	}
}

func (l *attentionList) addConflicts(d *facts.Deriver, limit int) (examined int, more bool, err error) {
	list, more, err := conflicting(l.Reader, d, limit)
	radarSettings := d.Contract.Radar
	for _, c := range list {
		i := attention.ConflictItem(c.since, radarSettings.Blocks() && radar.High >= radarSettings.Block)
		l.add(i.Onto(c.onto, c.count, c.truncated), fromCommit, c.commitID, d.Repo.ID, c.commitID)
	}
	return limit, more, err
}

func (l *attentionList) addWebhooks(d *facts.Deriver, limit int) (examined int, more bool, err error) {
	err = l.Each(func(row txn.Scanner) error {
		var failures int64
		var w outbound.Webhook
		var id int64
		err := row.Scan(&id, &w.ID, &w.URL, &w.Active, &w.Description, &w.CreatedAt, &w.DisabledReason, &w.DisabledAt,
			&w.FailingSince, &failures)
		w.Repo = d.Repo.Name

		if i, ok := attention.WebhookItem(w, failures); ok {
			l.add(i, fromWebhook, id, 0, 0)
		}
		examined++
		return err
	}, `
SELECT w.id, w.webhook_id, w.url, w.active, w.description, w.created_at, w.disabled_reason, w.disabled_at,
  w.failing_since, w.failures
FROM webhooks w /*+index webhooks_troubled*/ WHERE w.repo_id = ? AND `+isTroubled+" ORDER BY w.id DESC LIMIT ?",
		d.Repo.ID, limit)
	if err != nil {
		return 0, false, fmt.Errorf("read webhooks: %w", err)
	}
	return examined, examined == limit, nil
}

func (l *attentionList) addExceptions(d *facts.Deriver, limit int) (examined int, more bool, err error) {
	w, err := l.bo.lists.ExceptionWalk(l.Reader, d.Repo, lists.ExceptionFilter{Active: true})
	if err != nil {
		return 0, false, err
	}
	w.Stop = []any{int64(l.Now.Add(attention.ExceptionSoon)), int64(math.MaxInt64)}
	rows, err := w.Run(l.Conn, []any{int64(l.Now), int64(math.MaxInt64)}, limit, limit)
	if err != nil {
		return 0, false, fmt.Errorf("read exceptions: %w", err)
	}
	p, err := l.bo.lists.Judge(l.Reader, d, w, rows, true)
	if err != nil {
		return 0, false, err
	}

	commits := make(map[int64]int64, len(rows.Rows))
	for _, x := range rows.Rows {
		commits[x.ID] = x.Row.CommitID
	}
	for _, x := range p.Rows {
		if i, ok := attention.ExceptionItem(x.Row, l.Now); ok {
			l.add(i, fromException, x.ID, d.Repo.ID, commits[x.ID])
		}
	}
	return rows.Examined, p.End != nil, nil
}

// addEvidence adds the commits of a repo that are in flight or run, and whose evidence expires soon,
// the earliest first.
func (l *attentionList) addEvidence(d *facts.Deriver, limit int) (examined int, more bool, err error) {
	err = l.EachLong(func(row txn.Scanner) error {
		var id int64
		var state, standing ledger.State
		var until ledger.Time
		var matters bool
		err := row.Scan(&id, &state, &standing, &until, &matters)
		examined++
		if err != nil || !matters {
			return err
		}

		isException := func(r candidate) bool { return r.commitID == id && r.Until == until }
		i, ok := attention.EvidenceItem(min(state, standing), until, l.Now)
		if ok && !slices.ContainsFunc(l.rows, isException) {
			l.add(i, fromEvidence, id, d.Repo.ID, id)
		}
		return nil
	}, `
SELECT c.id, c.state, c.standing, c.expires,
  EXISTS (SELECT 1 FROM tips t WHERE t.commit_id = c.id AND t.`+facts.IsInFlight+`)
  OR c.standing < 4 AND `+facts.Runs("c.id")+`
FROM commits c /*+index commits_expiring_by_repo*/
WHERE c.repo_id = ? AND c.expires > 0 AND c.expires > ? AND c.expires <= ? ORDER BY c.expires LIMIT ?`,
		d.Repo.ID, l.Now, l.Now.Add(attention.EvidenceSoon), limit)
	if err != nil {
		return 0, false, fmt.Errorf("read commits whose evidence expires: %w", err)
	}
	return examined, examined == limit, nil
}

func (l *attentionList) addIdentities() error {
	rows := 0
	err := l.Each(func(row txn.Scanner) error {
		var id int64
		var n identity.Identity
		err := row.Scan(&id, &n.ID, &n.Kind, &n.DN, &n.NotAfter, &n.CreatedAt)
		if i, ok := attention.IdentityItem(n, l.Now); ok {
			l.add(i, fromIdentity, id, 0, 0)
		}
		rows++
		return err
	}, `
SELECT id, identity_id, kind, dn, not_after, created_at FROM identities /*+index identities_expiring*/
WHERE org_id = ? AND revoked_at = 0 AND not_after > 0 AND not_after >= ? AND not_after <= ? ORDER BY not_after LIMIT ?`,
		l.orgID, l.Now.Add(-attention.IdentityEnded), l.Now.Add(attention.IdentitySoon), maxCandidates)
	if err != nil {
		return fmt.Errorf("read identities: %w", err)
	}
	l.more[attention.Expiring] = l.more[attention.Expiring] || rows == maxCandidates
	return nil
}

func (l *attentionList) addTokens() error {
	rows := 0
	err := l.Each(func(row txn.Scanner) error {
		var id int64
		var t ledger.Token
		err := row.Scan(&id, &t.ID, &t.Name, &t.CreatedAt, &t.ExpiresAt)
		if i, ok := attention.TokenItem(t, l.Now); ok {
			l.add(i, fromToken, id, 0, 0)
		}
		rows++
		return err
	}, `
SELECT id, token_id, name, created_at, expires_at FROM tokens /*+index tokens_expiring*/
WHERE org_id = ? AND revoked_at = 0 AND rule_id = 0 AND is_sign_in = 0 AND expires_at > 0 AND expires_at > ?
  AND expires_at <= ?
ORDER BY expires_at LIMIT ?`,
		l.orgID, l.Now, l.Now.Add(attention.TokenSoon), maxCandidates)
	if err != nil {
		return fmt.Errorf("read tokens: %w", err)
	}

	l.more[attention.Expiring] = l.more[attention.Expiring] || rows == maxCandidates
	return nil
}

// explain returns the items of candidates. It derives the requirements of those commits of
// which the reason is not known, and omits those that need no attention after all.
func (l *attentionList) explain(rows []candidate) ([]attention.Item, error) {
	commits, err := l.summaries(rows)
	if err != nil {
		return nil, err
	}
	derived := make(map[int64]*facts.Commit)
	byRepo := make(map[int64][]int64)
	for _, r := range rows {
		if r.commitID != 0 && r.Reason == "" && !slices.Contains(byRepo[r.repoID], r.commitID) {
			byRepo[r.repoID] = append(byRepo[r.repoID], r.commitID)
		}
	}
	for repoID, ids := range byRepo {
		d, err := l.derivers.Of(l.Reader, repoID)
		if err != nil {
			return nil, err
		}
		subjects, err := l.bo.states.ReadCommits(l.Reader, d, ids)
		if err != nil {
			return nil, err
		}
		for _, s := range subjects {
			derived[s.ID] = s
		}
	}

	items := make([]attention.Item, 0, len(rows))
	for _, r := range rows {
		i, ok := r.Item, true
		if r.commitID != 0 {
			i = i.Of(commits[r.commitID])
		}
		if s := derived[r.commitID]; s != nil && r.Reason == "" {
			derived := s.Deriver.Contract.Derive(s.Facts, l.Now)
			i, ok = i.Explain(derived.Standing, derived.Requirements)
		}
		if ok {
			items = append(items, i)
		}
	}
	return items, nil
}

// summaries reads what identifies the commits of candidates.
func (l *attentionList) summaries(rows []candidate) (map[int64]attention.Summary, error) {
	var ids []any
	for _, r := range rows {
		if r.commitID != 0 {
			ids = append(ids, r.commitID)
		}
	}

	commits := make(map[int64]attention.Summary, len(ids))
	err := l.EachIn(func(row txn.Scanner) error {
		var id int64
		var c attention.Summary
		err := row.Scan(&id, &c.Repo, &c.SHA, &c.Branch, &c.Subject)
		c.Subject = ledger.Subject(c.Subject)
		commits[id] = c
		return err
	}, `
SELECT c.id, r.name, c.sha, c.branch, substr(c.message, 1, `+lists.SubjectBytes+`)
FROM commits c JOIN repos r ON r.id = c.repo_id WHERE c.id IN `, 1, ids)
	if err != nil {
		return nil, fmt.Errorf("read commits: %w", err)
	}
	return commits, nil
}
