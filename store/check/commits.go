package check

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// commitsPage is the number of commits that are read at a time.
const commitsPage = 500

const (
	selectCommits = `
SELECT id, sha, state, state_since, registered_at, attestations, newest FROM commits
WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?`
	selectTransitions = `
SELECT t.commit_id, t.from_state, t.to_state, t.at, t.cause_type, t.cause_id, coalesce(e.event_id, ''),
  coalesce(e.type, ''), coalesce(e.repo_id, 0), e.body
FROM transitions t LEFT JOIN events e ON e.id = t.event WHERE t.commit_id BETWEEN ? AND ? ORDER BY t.commit_id, t.event`
)

// repos returns the repos of an org.
func (c *checker) repos(ctx context.Context, org int64) (list []repo, err error) {
	err = c.read(ctx, func(conn *sqldb.Conn) (err error) {
		list, err = sqldb.All(conn, func(row sqldb.Scanner) (r repo, err error) {
			return r, row.Scan(&r.id, &r.name, &r.policyVersion, &r.policyDigest, &r.attestations, &r.deleted)
		}, `
SELECT id, name, policy_version, policy_digest, attestations, deleted_at > 0
FROM repos WHERE org_id = ? ORDER BY id`, org)
		return err
	})
	return list, err
}

// commits checks the commits of a repo: their transitions with the events, and their state with
// the evidence.
func (c *checker) commits(ctx context.Context, o *org, r repo) error {
	for after := int64(0); ; {
		var page []*commit
		err := c.read(ctx, func(conn *sqldb.Conn) (err error) {
			if page, err = readCommits(conn, r.id, after); err != nil {
				return err
			}
			return readLatest(conn, o.id, page)
		})
		if err != nil || len(page) == 0 {
			return err
		}
		eachOf(page, func(v *commit) { c.commit(o.name, r, v) })
		c.count(func(r *Report) *int64 { return &r.Commits }, int64(len(page)))
		after = page[len(page)-1].id
	}
}

// readCommits reads the next commits of a repo in one snapshot.
func readCommits(conn *sqldb.Conn, repoID, after int64) ([]*commit, error) {
	page, err := sqldb.All(conn, func(row sqldb.Scanner) (*commit, error) {
		var v commit
		return &v, row.Scan(&v.id, &v.sha, &v.state, &v.since, &v.registered, &v.attestations, &v.newest)
	}, selectCommits, repoID, after, commitsPage)
	if err != nil || len(page) == 0 {
		return nil, err
	}
	byID := make(map[int64]*commit, len(page))
	for _, v := range page {
		byID[v.id] = v
	}

	first, last := page[0].id, page[len(page)-1].id
	err = conn.Each(func(row sqldb.Scanner) error {
		var id int64
		var t transition
		err := row.Scan(&id, &t.from, &t.to, &t.at, &t.cause.Type, &t.cause.ID, &t.event, &t.kind, &t.repoID, &t.body)
		if v := byID[id]; v != nil {
			v.transitions = append(v.transitions, t)
		}
		return err
	}, selectTransitions, first, last)
	if err != nil {
		return nil, fmt.Errorf("read transitions: %w", err)
	}
	return page, nil
}

// commit checks a commit on its own.
func (c *checker) commit(org string, r repo, v *commit) {
	row := "commit " + r.name + "@" + v.sha
	c.latest(org, row, v)
	state, since := ledger.Draft, v.registered
	for _, t := range v.transitions {
		if t.from != state {
			c.problemf("state", org, row, "a transition leads from %s to %s, and the commit was %s", t.from, t.to, state)
		}
		state, since = t.to, t.at
		c.transition(org, r, row, v.sha, t)
	}
	if v.state != state {
		c.problemf("state", org, row, "it is %s, and its transitions lead to %s", v.state, state)
	}
	if v.since != since {
		c.problemf("state", org, row, "it is %s since %s, and by its transitions since %s", v.state, v.since, since)
	}
}

// transition compares a transition with its event, in which the repo may have a former name.
func (c *checker) transition(org string, r repo, row, sha string, t transition) {
	if t.kind != ledger.EventState {
		c.problemf("state", org, row, "the transition from %s to %s has no event", t.from, t.to)
		return
	}
	var e ledger.StateEvent
	if len(t.body) == 0 {
		return // pruned
	}
	if err := json.Unmarshal(t.body, &e); err != nil {
		return // the check of the events reports it
	}

	name := e.Repo
	if t.repoID == r.id {
		name = r.name
	}
	const form = "%s@%s from %s to %s at %s because of %s %s"
	got := fmt.Sprintf(form, r.name, sha, t.from, t.to, t.at, t.cause.Type, t.cause.ID)
	want := fmt.Sprintf(form, name, e.Commit, e.From, e.To, e.Timestamp, e.Cause.Type, e.Cause.ID)
	if got != want {
		c.problemf("state", org, row, "its transition is %s, and event %s says %s", got, t.event, want)
	}
}

// derive derives the states of a repo's commits again, and compares what is known of them with
// the events.
// The states of a deleted repo are as they were when it was deleted.
func (c *checker) derive(ctx context.Context, o *org, r repo) error {
	for after := int64(0); ; {
		result, err := c.store.Recheck(ctx, r.id, after)
		if err != nil || result.Last == 0 {
			return err
		}
		if r.deleted || o.deleted {
			result.Moves, result.Standings, result.Differences, result.Pending = nil, nil, nil, 0
		}

		for _, m := range result.Moves {
			c.problemf("state", o.name, "commit "+r.name+"@"+m.Commit, "it is %s, and its evidence makes it %s", m.From, m.To)
		}
		for _, m := range result.Standings {
			c.problemf("state", o.name, "commit "+r.name+"@"+m.Commit,
				"its standing is stored as %s, and its evidence gives %s", m.From, m.To)
		}
		for _, d := range result.Differences {
			c.problemf("state", o.name, "commit "+r.name+"@"+d.Commit, "%s", d.Problem)
		}
		c.count(func(r *Report) *int64 { return &r.Pending }, result.Pending)
		if err := c.known(ctx, o, r, result.Known); err != nil {
			return err
		}
		after = result.Last
	}
}
