package boards

import (
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attention"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Limits of what a list of items that need attention examines.
const (
	MaxAttentionRepos = 1000 // the oldest repos of an org
	maxCandidates     = 500  // rows for each kind of item
	minShare          = 10   // rows for each repo
)

// A candidate is an item that needs attention. Those of commits have no reason yet.
type candidate struct {
	attention.Item
	repoID, commitID int64
	key              attention.Key
}

// The sources of candidates. The numbers of their keys differ.
const (
	fromCommit = iota
	fromViolation
	fromWebhook
	fromIdentity
	fromToken
	fromException
	fromEvidence
	numberOfSources
)

// A troubledRepo says which kinds of candidates a repo may have.
type troubledRepo struct {
	id                             int64
	failing, attested, conflicting bool
	webhooks, ending, expiring     bool
}

// troubledRepos reads which repos of an org have candidates. more reports whether there are
// more repos. A repoID of 0 selects all repos.
func troubledRepos(rd txn.Reader, orgID, repoID int64) (list []troubledRepo, more bool, err error) {
	from, by := `FROM (
  SELECT id FROM repos /*+index repos_by_org*/ WHERE org_id = ? AND deleted_at = 0 ORDER BY id LIMIT ?) r`,
		[]any{orgID, MaxAttentionRepos + 1}
	if repoID != 0 {
		from, by = "FROM repos r WHERE r.id = ?", []any{repoID}
	}
	soon := []any{rd.Now, rd.Now.Add(attention.ExceptionSoon), rd.Now, rd.Now.Add(attention.EvidenceSoon)}

	list, err = txn.All(rd, func(row txn.Scanner) (r troubledRepo, err error) {
		return r, row.Scan(&r.id, &r.failing, &r.attested, &r.conflicting, &r.webhooks, &r.ending, &r.expiring)
	}, `
SELECT r.id,
  EXISTS (SELECT 1 FROM commits c /*+index commits_failing*/ WHERE c.repo_id = r.id AND c.failing_since > 0),
  EXISTS (SELECT 1 FROM repo_states s WHERE s.repo_id = r.id AND s.state = 2 AND s.commits > 0),
  EXISTS (SELECT 1 FROM tips t /*+index tips_conflicting*/ WHERE t.repo_id = r.id AND t.`+isConflicting+`),
  EXISTS (SELECT 1 FROM webhooks w /*+index webhooks_troubled*/ WHERE w.repo_id = r.id AND `+isTroubled+`),
  EXISTS (SELECT 1 FROM exceptions x /*+index exceptions_by_end*/
    WHERE x.repo_id = r.id AND x.ends_at > ? AND x.ends_at <= ?),
  EXISTS (SELECT 1 FROM commits c /*+index commits_expiring_by_repo*/
    WHERE c.repo_id = r.id AND c.expires > 0 AND c.expires > ? AND c.expires <= ?)
`+from, append(soon, by...)...)
	if err != nil {
		return nil, false, fmt.Errorf("read repos: %w", err)
	}
	if more = len(list) > MaxAttentionRepos; more {
		list = list[:MaxAttentionRepos]
	}
	return list, more, nil
}

// Conditions of partial indexes.
const (
	isConflicting = facts.IsInFlight + " AND level = 3" // radar.High
	isTroubled    = "w.deleted_at = 0 AND (w.active = 0 OR w.failing_since > 0)"
)

// presentCommit are the columns from which attention.Commit is read, of a commit c and its
// tip t. Whether a commit is replaced is looked up among the newest commits of its branch.
const (
	presentCommit = `
SELECT c.id, c.state, c.state_since, c.failing_since, c.registered_at, c.branch, c.target, coalesce(t.flight, 0),
  c.branch <> '' AND EXISTS (SELECT 1 FROM (SELECT n.state AS state FROM commits n /*+index commits_by_branch*/
    WHERE n.repo_id = c.repo_id AND n.branch <> '' AND n.branch = c.branch AND n.id > c.id ORDER BY n.id DESC LIMIT 20)
    later WHERE later.state > 0) `
	withTip = " LEFT JOIN tips t ON t.commit_id = c.id "
)

// A presentRow is a commit that may need attention.
type presentRow struct {
	id           int64
	registeredAt ledger.Time
	attention.Commit
}

func presentScanner(r txn.Repo) func(txn.Scanner) (presentRow, error) {
	return func(row txn.Scanner) (p presentRow, err error) {
		var branch, target string
		var flight radarindex.Flight
		err = row.Scan(&p.id, &p.State, &p.StateSince, &p.FailingSince, &p.registeredAt, &branch, &target, &flight,
			&p.Replaced)
		p.OnTarget = branch != "" && (branch == r.DefaultBranch || branch == target)
		p.Flight = flightOf(flight)
		return p, err
	}
}

// flightOf returns what has become of a tip. That it is superseded does not matter until a
// later commit has evidence.
func flightOf(f radarindex.Flight) attention.Flight {
	switch f {
	case radarindex.Landed:
		return attention.Landed
	case radarindex.Withdrawn:
		return attention.Withdrawn
	case radarindex.InFlight, radarindex.Superseded, radarindex.Deployed:
		return attention.InFlight
	default:
		return attention.NoTip
	}
}

// failing reads the newest commits of a repo with a failed requirement, or that run and have lapsed,
// and examines up to limit commits.
func failing(rd txn.Reader, r txn.Repo, limit int) (list []presentRow, full bool, err error) {
	return present(rd, r, limit, attention.Failed, presentCommit+"FROM commits c /*+index commits_failing*/"+withTip+`
WHERE c.repo_id = ? AND c.failing_since > 0 AND (c.state < 4 OR`+facts.Runs("c.id")+`)
ORDER BY c.id DESC LIMIT ?`, r.ID, limit)
}

// waiting reads the newest commits of a repo that wait for PROMOTABLE, and examines up to
// limit commits.
func waiting(rd txn.Reader, r txn.Repo, limit int) (list []presentRow, full bool, err error) {
	return present(rd, r, limit, attention.Review, presentCommit+"FROM commits c /*+index commits_by_state*/"+withTip+`
WHERE c.repo_id = ? AND c.state = ? ORDER BY c.id DESC LIMIT ?`, r.ID, ledger.Attested, limit)
}

// present reads commits that need attention of a kind, the newest first, until they are too
// old. full reports whether there may be others.
func present(rd txn.Reader,
	r txn.Repo, limit int, kind attention.Kind, query string, args ...any,
) (list []presentRow, full bool, err error) {
	scan, rows := presentScanner(r), 0
	oldest := rd.Now.Add(-attention.Window)
	err = rd.EachLong(func(row txn.Scanner) error {
		p, err := scan(row)
		if err != nil {
			return err
		}

		rows++
		if kind == attention.Review && p.registeredAt < oldest && p.StateSince < oldest {
			return txn.ErrFull
		}
		if i, ok := p.Needs(rd.Now); ok && (i.Kind == kind || i.Kind == attention.Lapsed) {
			list = append(list, p)
		}
		full = rows == limit
		return nil
	}, query, args...)

	if errors.Is(err, txn.ErrFull) {
		return list, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read commits: %w", err)
	}
	return list, full, nil
}

// A conflictRow is a tip with open overlaps at HIGH with earlier ones.
type conflictRow struct {
	commitID int64
	since    ledger.Time
	onto     string // the branch of an earlier tip, or its SHA
	count    int
	// truncated reports whether there were more overlaps than are stored.
	truncated bool
}

// conflicting reads the newest tips of a repo that must rebase, and examines up to limit
// tips. The contract must be the repo's.
func conflicting(rd txn.Reader, d *facts.Deriver, limit int) (list []conflictRow, full bool, err error) {
	if !d.Contract.Radar.Enabled {
		return nil, false, nil
	}
	oldest := d.Contract.Radar.Oldest(rd.Now)
	tips, err := txn.All(rd, func(row txn.Scanner) (c conflictRow, err error) {
		return c, row.Scan(&c.commitID, &c.truncated)
	}, `
SELECT t.commit_id, t.truncated FROM tips t /*+index tips_conflicting*/
WHERE t.repo_id = ? AND t.`+isConflicting+` AND t.opened_at >= ? ORDER BY t.commit_id DESC LIMIT ?`,
		d.Repo.ID, oldest, limit)
	if err != nil {
		return nil, false, fmt.Errorf("read tips: %w", err)
	}

	for _, c := range tips {
		err := rd.EachLong(func(row txn.Scanner) error {
			var since ledger.Time
			var onto string
			err := row.Scan(&since, &onto)
			if c.count++; c.count == 1 {
				c.onto, c.since = onto, since
			}
			c.since = min(c.since, since)
			return err
		}, "SELECT o.since, CASE e.branch WHEN '' THEN e.sha ELSE e.branch END "+overlaps.WithEarlier+
			"WHERE "+overlaps.EarlierThan+" AND o.level = ? AND"+overlaps.IsOpen+"ORDER BY o.earlier",
			c.commitID, radar.High, oldest, oldest)
		if err != nil {
			return nil, false, fmt.Errorf("read overlaps: %w", err)
		}
		if c.count > 0 {
			list = append(list, c)
		}
	}
	return list, len(tips) == limit, nil
}
