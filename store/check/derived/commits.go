package derived

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/check/report"
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

// commits checks the commits of a repo: their transitions with the events, and their state with
// the evidence.
func (o *Org) commits(ctx context.Context, r repo) error {
	for after := int64(0); ; {
		var page []*commit
		err := o.Read(ctx, func(conn *sqldb.Conn) (err error) {
			if page, err = readCommits(conn, r.id, after); err != nil {
				return err
			}
			if err = readLatest(conn, o.ID, page); err != nil {
				return err
			}
			return excuse(conn, r.id, page)
		})
		if err != nil || len(page) == 0 {
			return err
		}
		parallel.Share(page, func(v *commit) { o.commit(o.Name, r, v) })
		o.Count(func(r *report.Report) *int64 { return &r.Commits }, int64(len(page)))
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
func (o *Org) commit(org string, r repo, v *commit) {
	row := "commit " + r.name + "@" + v.sha
	o.latest(org, row, v)
	var states verify.States
	for _, t := range v.transitions {
		err := states.Add(ledger.StateEvent{ID: t.event, Commit: v.sha, From: t.from, To: t.to, Timestamp: t.at}, true)
		if err != nil {
			o.Problemf(verify.CheckStates, org, row, "%v", err)
		}
		o.transition(org, r, row, v.sha, t)
	}
	if err := states.Check(v.sha, v.state, v.since); err != nil {
		o.Problemf(verify.CheckStates, org, row, "%v", err)
	} else if len(v.transitions) == 0 && v.since != v.registered {
		o.Problemf(verify.CheckStates, org, row, "it is %s since %s, and was registered at %s", v.state, v.since,
			v.registered)
	}
}

// transition compares a transition with its event, in which the repo may have a former name.
func (o *Org) transition(org string, r repo, row, sha string, t transition) {
	if t.kind != ledger.EventState {
		o.Problemf(verify.CheckStates, org, row, "the transition from %s to %s has no event", t.from, t.to)
		return
	}
	var e ledger.StateEvent
	if len(t.body) == 0 {
		return // pruned
	}
	if err := json.Unmarshal(t.body, &e); err != nil {
		return // the check of the events reports it
	}

	shown := ledger.Transition{From: t.from, To: t.to, At: t.at, Cause: t.cause}
	err := verify.Transitions([]ledger.Transition{shown}, []ledger.Transition{verify.TransitionOf(e)})
	if err == nil && (t.repoID != r.id || e.Commit != sha) {
		err = fmt.Errorf("its event %s is about %s@%s", t.event, e.Repo, e.Commit)
	}
	if err != nil {
		o.Problemf(verify.CheckStates, org, row, "%v", err)
	}
}

// derive derives the states of a repo's commits again, and compares what is known of them with
// the events.
// The states of a deleted repo are as they were when it was deleted.
func (o *Org) derive(ctx context.Context, r repo) error {
	for after := int64(0); ; {
		result, err := o.Store.Recheck(ctx, r.id, after)
		_, isValue := errors.AsType[*sqldb.ValueError](err)
		if err != nil && ctx.Err() == nil && sqldb.ClassOf(err) == sqldb.Other && !isValue {
			o.Problemf(verify.CheckDerivation, o.Name, "repo "+r.name, "the states cannot be derived: %v", err)
			return nil
		}
		if err != nil || result.Last == 0 {
			return err
		}
		if r.deleted || o.Deleted {
			result.Moves, result.Standings, result.Differences, result.Pending = nil, nil, nil, 0
		}

		for _, m := range result.Moves {
			o.Problemf(verify.CheckDerivation, o.Name, "commit "+r.name+"@"+m.Commit, "%v", verify.Derived(m.From, m.To))
		}
		for _, m := range result.Standings {
			o.Problemf(verify.CheckDerivation, o.Name, "commit "+r.name+"@"+m.Commit,
				"its standing is stored as %s, and its evidence gives %s", m.From, m.To)
		}
		for _, d := range result.Differences {
			o.Problemf(verify.CheckDerivation, o.Name, "commit "+r.name+"@"+d.Commit, "%s", d.Problem)
		}
		o.Count(func(r *report.Report) *int64 { return &r.Pending }, result.Pending)
		if err := o.known(ctx, r, result.Known); err != nil {
			return err
		}
		after = result.Last
	}
}
