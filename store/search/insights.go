package search

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/insights"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// The maximum numbers of rows that one report is computed from: the newest.
const (
	maxSampledCommits    = 1000
	maxSampledSteps      = 20 // of one commit, the first ones
	maxSampledOutcomes   = 1000
	maxSampledViolations = 1000
	maxSampledResults    = 4000
)

// Insights returns the figures of an org, or of a repo if it is not empty, about the last
// days.
func (fi *Finder) Insights(ctx context.Context, org, repo string, days int) (insights.Report, error) {
	return txn.Read(ctx, fi.db, txn.ByOrg(org), func(rd txn.Reader) (insights.Report, error) {
		report := insights.Report{Org: org, Days: days, From: insights.Window(days, rd.Now), To: rd.Now}
		p, err := findSearched(rd, org, repo)
		if err != nil {
			return report, err
		}
		if repo != "" {
			report.Repo = p.list[0].name
		}

		m := sampler{Reader: rd, fi: fi, searched: p, from: report.From}
		commits, sampled, err := m.commits()
		if err != nil {
			return report, fmt.Errorf("sample commits: %w", err)
		}
		report.Samples.Commits = sampled
		outcomes, sampled, err := m.outcomes(repo != "")
		if err != nil {
			return report, fmt.Errorf("sample deployments: %w", err)
		}
		report.Samples.Deployments = sampled
		results, sampled, err := m.results()
		if err != nil {
			return report, fmt.Errorf("sample results: %w", err)
		}
		report.Samples.Results = sampled
		report.Add(commits, outcomes, results)
		return report, nil
	})
}

// A sampler reads the samples of a report.
type sampler struct {
	txn.Reader
	fi       *Finder
	searched searched
	from     ledger.Time
}

// sample describes a sample of repos. since is the time down to which it is complete, or 0.
func (m *sampler) sample(examined int, since ledger.Time, what string) insights.Sample {
	switch {
	case since != 0:
		return insights.Sample{Examined: examined, Since: since, Reason: fmt.Sprintf("only the newest %d %s were read",
			examined, what)}
	case m.searched.more:
		return insights.Sample{Examined: examined, Reason: fmt.Sprintf("only the %d repos created last were read",
			maxTracks)}
	}
	return insights.Sample{Examined: examined}
}

// commits reads the commits that were registered last, with their transitions.
func (m *sampler) commits() (list []insights.Commit, sampled insights.Sample, err error) {
	tracks, err := commitTracks(m.Reader, m.searched, math.MaxInt64)
	if err != nil {
		return nil, sampled, err
	}
	var ids []int64
	oldest := ledger.Time(math.MaxInt64)
	examined, end, err := readNewest(m.Reader, tracks, maxSampledCommits, func(c txn.Keyed[newestCommit]) error {
		ids = append(ids, c.ID)
		list = append(list, insights.Commit{Registered: c.Row.RegisteredAt, Committed: c.Row.CommittedAt})
		oldest = min(oldest, c.Row.RegisteredAt)
		return nil
	}, neverFull)
	if err != nil {
		return nil, sampled, err
	}
	if end == nil || oldest < m.from {
		oldest = 0
	}

	for i, id := range ids {
		list[i].Steps, err = txn.All(m.Reader, func(row txn.Scanner) (s insights.Step, err error) {
			return s, row.Scan(&s.From, &s.To, &s.At)
		}, "SELECT from_state, to_state, at FROM transitions WHERE commit_id = ? ORDER BY event LIMIT ?", id, maxSampledSteps)
		if err != nil {
			return nil, sampled, fmt.Errorf("read transitions: %w", err)
		}
	}
	return list, m.sample(examined, oldest, "commits"), nil
}

// An outcome is a row of a track of deployments.
type outcome struct {
	insights.Outcome
	recorded  ledger.Time // the time in the id
	isTrusted bool
}

// outcomes reads the attestations about environments in the time of the report.
func (m *sampler) outcomes(ofRepo bool) (list []insights.Outcome, sampled insights.Sample, err error) {
	violations, since, err := m.violations(ofRepo)
	if err != nil {
		return nil, sampled, err
	}
	tracks, err := m.outcomeTracks(ofRepo)
	if err != nil {
		return nil, sampled, err
	}
	examined, end, err := readNewest(m.Reader, tracks, maxSampledOutcomes, func(o txn.Keyed[outcome]) error {
		if o.Row.isTrusted {
			o.Row.Violation = violations[o.ID]
			list = append(list, o.Row.Outcome)
		}
		return nil
	}, neverFull)
	if err != nil {
		return nil, sampled, err
	}
	if end != nil {
		since = max(since, ledger.Time(end[0].(int64)))
	}
	sampled = m.sample(examined, since, "deployments")
	if since == 0 && len(tracks) == maxTracks {
		sampled.Reason = fmt.Sprintf("only %d environments were read", maxTracks)
	}

	slices.Reverse(list) // those of the same time are in the order in which they were recorded
	return list, sampled, nil
}

// An environmentPlace is an environment of a repo.
type environmentPlace struct{ repoID, predicateID int64 }

// outcomeTracks returns a track for each environment.
func (m *sampler) outcomeTracks(ofRepo bool) (tracks []track[outcome], err error) {
	query, arg := "environments /*+index environments_by_org*/ WHERE org_id = ?", m.searched.orgID
	if ofRepo {
		query, arg = "environments /*+index environments_by_repo*/ WHERE repo_id = ?", m.searched.oldest
	}
	environments, err := txn.All(m.Reader, func(row txn.Scanner) (e environmentPlace, err error) {
		return e, row.Scan(&e.repoID, &e.predicateID)
	}, "SELECT repo_id, predicate_id FROM "+query+" ORDER BY repo_id DESC LIMIT ?", arg, maxTracks)
	if err != nil {
		return nil, fmt.Errorf("read environments: %w", err)
	}

	for i, e := range environments {
		rollbackID, err := m.rollbackPredicate(e.predicateID)
		if err != nil {
			return nil, err
		}
		for _, predicateID := range []int64{e.predicateID, rollbackID} {
			if predicateID == 0 { // it was never rolled back in this way
				continue
			}
			t, err := m.outcomeTrack(int64(i), e.repoID, predicateID, predicateID == rollbackID)
			if err != nil {
				return nil, err
			}
			if t != nil {
				tracks = append(tracks, *t)
			}
		}
	}
	return tracks, nil
}

// rollbackPredicate returns the row of the predicate of the rollbacks from an environment, given
// that of its deployments. It is 0 if nothing was rolled back from it.
func (m *sampler) rollbackPredicate(predicateID int64) (int64, error) {
	name, err := m.fi.signers.Predicate(m.Reader, predicateID)
	if err != nil {
		return 0, err
	}
	environment, _ := ledger.EnvironmentOf(name)
	return m.fi.signers.RowOf(m.Reader, signers.PredicateOf(m.searched.orgID, ledger.RollbackPredicate(environment)))
}

// outcomeTrack returns the track of a predicate about an environment of a repo.
func (m *sampler) outcomeTrack(place, repoID, predicateID int64, isRollback bool) (*track[outcome], error) {
	scan := func(row txn.Scanner) (o txn.Keyed[outcome], err error) {
		o.Row.Place, o.Row.IsRollback = place, isRollback
		var status string
		err = row.Scan(&o.ID, &o.Row.Commit, &status, &o.Row.recorded, &o.Row.At, &o.Row.isTrusted)
		o.Row.Status = ledger.Status(status)
		return o, err
	}
	return attestationTrack(m.Reader, "attestations_by_predicate", "a.repo_id = ? AND a.predicate_id = ?",
		[]any{repoID, predicateID}, m.from,
		"a.id, a.commit_id, a.status, a.recorded_at, "+facts.AgeOf+", "+facts.IsTrusted, scan,
		func(o outcome) ledger.Time { return o.recorded })
}

// violations reads which attestations were violations in the time of the report. since is
// the time of the oldest one that was read, if there may be others.
func (m *sampler) violations(ofRepo bool) (list map[int64]bool, since ledger.Time, err error) {
	query, arg := "violations /*+index violations_by_org*/ WHERE org_id = ?", m.searched.orgID
	if ofRepo {
		query, arg = "violations /*+index violations_by_repo*/ WHERE repo_id = ?", m.searched.oldest
	}
	list = make(map[int64]bool)
	err = m.Each(func(row txn.Scanner) error {
		var id int64
		err := row.Scan(&id, &since)
		list[id] = true
		return err
	}, "SELECT attestation_id, opened_at FROM "+query+" ORDER BY id DESC LIMIT ?", arg, maxSampledViolations)
	if err != nil {
		return nil, 0, fmt.Errorf("read violations: %w", err)
	}
	if len(list) < maxSampledViolations || since < m.from {
		since = 0
	}
	return list, since, nil
}

// A result is a row of a track of results.
type result struct {
	predicateID, durationMS int64
	status                  string
	recorded                ledger.Time
}

func scanResult(row txn.Scanner) (r txn.Keyed[result], err error) {
	return r, row.Scan(&r.ID, &r.Row.predicateID, &r.Row.status, &r.Row.durationMS, &r.Row.recorded)
}

// results reads the results of the attestations in the time of the report.
func (m *sampler) results() (list []insights.Result, sampled insights.Sample, err error) {
	var tracks []track[result]
	for _, r := range m.searched.list {
		t, err := attestationTrack(m.Reader, "attestations_by_time", "a.repo_id = ?", []any{r.id}, m.from,
			"a.id, a.predicate_id, a.status, a.duration_ms, a.recorded_at", scanResult,
			func(r result) ledger.Time { return r.recorded })
		if err != nil {
			return nil, sampled, err
		}
		if t != nil {
			tracks = append(tracks, *t)
		}
	}

	var since ledger.Time
	examined, end, err := readNewest(m.Reader, tracks, maxSampledResults, func(r txn.Keyed[result]) error {
		name, err := m.fi.signers.Predicate(m.Reader, r.Row.predicateID)
		list = append(list, insights.Result{Predicate: name, Status: ledger.Status(r.Row.status),
			DurationMS: r.Row.durationMS})
		return err
	}, neverFull)
	if err != nil {
		return nil, sampled, err
	}
	if end != nil {
		since = ledger.Time(end[0].(int64))
	}
	return list, m.sample(examined, since, "attestations"), nil
}
