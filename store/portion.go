package store

import (
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/policy"
)

// errDeferred means that a set of attestations was too much work for one write, so that this
// one was not recorded. The caller queues it again.
var errDeferred = errors.New("the attestation was deferred")

const (
	// maxSetWork limits the work of recording one set, so that others do not wait long. A
	// commit with as much evidence as is allowed, under the largest contract, takes most
	// of it.
	maxSetWork = 250_000
	// muchWork is the work of an attestation that lets those of other orgs go first, at most
	// maxDeferred times.
	muchWork = maxSetWork / 20
	// linkWork is the work of linking an artifact.
	linkWork    = 100
	maxDeferred = 3
	// manyAttestations is the number of attestations from which the evidence of a commit is
	// counted.
	manyAttestations = 200
)

// portion returns the attestations of a set that are recorded now, at least one. The others
// are deferred; those of an org stay in order. A commit is nil if it does not exist.
func (t *tx) portion(list []*recording, commits []*subject) (now []*recording, err error) {
	work := make([]int, len(list))
	total, several := 0, false
	counted := make(map[*subject]int)
	for i, r := range list {
		if work[i], err = t.workOf(commits[i], counted); err != nil {
			return nil, err
		}
		work[i] += linkWork * len(r.attestation.Artifacts.Digests)
		total, r.work = total+work[i], int64(work[i])
		several = several || r.org != list[0].org
	}
	if total <= muchWork {
		return list, nil
	}

	waiting := make(map[string]bool) // by org
	left := maxSetWork
	for i, r := range list {
		lets := several && work[i] > muchWork && r.deferred < maxDeferred
		if waiting[r.org] || lets || work[i] > left && len(now) > 0 {
			waiting[r.org] = true
			continue
		}
		left -= work[i]
		now = append(now, r)
	}
	if len(now) == 0 { // all let others go first
		now = list[:1]
	}
	deferOthers(list, now)
	return now, nil
}

// deferOthers defers the attestations of a set that are not in now, which is in the same
// order.
func deferOthers(list, now []*recording) {
	for _, r := range list {
		if len(now) > 0 && r == now[0] {
			now = now[1:]
			continue
		}
		r.err = errDeferred
		r.deferred++
	}
}

// workOf estimates the work of recording an attestation of a commit: its evidence is read,
// and weighed for each requirement.
func (t *tx) workOf(s *subject, counted map[*subject]int) (work int, err error) {
	if s == nil {
		return 0, nil
	}
	evidence, ok := counted[s]
	if !ok {
		evidence = int(s.attestations)
		if evidence > manyAttestations {
			err = t.Row("SELECT count(*) FROM latest WHERE commit_id = ?", s.id).Scan(&evidence)
		}
		carried, carriedErr := t.carriedCount(s.commitRow)
		err = errors.Join(err, carriedErr)
		evidence += carried
		counted[s] = evidence
	}
	return evidence * (10 + len(s.d.contract.Requirements)), err
}

// A write re-evaluates few commits, so that other writes do not wait long: at most
// evaluateBatch, with evaluateEvidence attestations unless it is a single commit.
const (
	evaluateBatch    = 100
	evaluateEvidence = 1000
)

// nextCommits returns the next commits of a repo for one write.
func (t *tx) nextCommits(repoID, after int64) ([]int64, error) {
	list, err := all(t.reader, scanCommitRow, selectCommitRow+"WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?",
		repoID, after, evaluateBatch)
	if err != nil {
		return nil, fmt.Errorf("read commits: %w", err)
	}
	if list, err = t.firstCommits(list); err != nil {
		return nil, fmt.Errorf("count carried evidence: %w", err)
	}
	ids := make([]int64, len(list))
	for i, c := range list {
		ids[i] = c.id
	}
	return ids, nil
}

// firstCommits returns as many of the commits as one write re-evaluates.
func (t *tx) firstCommits(list []*commitRow) ([]*commitRow, error) {
	return firstOf(t, list, func(c *commitRow) *commitRow { return c })
}

// firstOf is like firstCommits, for a list of anything that has a commit.
func firstOf[T any](t *tx, list []T, row func(T) *commitRow) ([]T, error) {
	evidence := 0
	for i := range list {
		c := row(list[i])
		carried, err := t.carriedCount(c)
		if err != nil {
			return nil, err
		}
		if evidence += int(c.attestations) + carried; i > 0 && evidence > evaluateEvidence {
			return list[:i], nil
		}
	}
	return list, nil
}

// carriedCount returns how much evidence may carry to a commit, up to what does.
func (t *tx) carriedCount(c *commitRow) (n int, err error) {
	if !c.inherits() {
		return 0, nil
	}
	const query = "SELECT count(*) FROM (SELECT 1 FROM tree_latest WHERE tree_id = ? LIMIT ?) AS t"
	err = t.Row(query, c.treeID, policy.MaxTopics).Scan(&n)
	if c.merged&isMerge != 0 {
		n = policy.MaxTopics // at most
	}
	return n, err
}
