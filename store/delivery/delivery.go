// Package delivery is the room of what deployments ship: which commits come with the one that is deployed, and which of
// them are not covered. It has no table.
package delivery

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/delivery"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/history"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Deliveries finds out what deployments ship. Its methods are safe for concurrent use, except those with a txn.Tx,
// which the writer's goroutine calls.
type Deliveries struct {
	facts   *facts.Facts
	history *history.History
}

// New returns the room of a database.
func New(fa *facts.Facts, h *history.History) *Deliveries { return &Deliveries{fa, h} }

// A Query asks what a deployment to an environment ships.
type Query struct {
	Environment string
	Base        string          // what runs there; empty if that is not known
	Ran         map[string]bool // with what ran there before
}

// Of returns what a deployment of a commit, whose facts were gathered, ships.
func (de *Deliveries) Of(rd txn.Reader, s *facts.Commit, q Query) (*ledger.Delivery, error) {
	past := de.history.Of(rd, s.RepoID)
	list, complete, err := lineage.Delivery(past.Node, s.SHA, q.Ran)
	if err != nil {
		return nil, fmt.Errorf("find what a deployment of %s ships: %w", s.SHA, err)
	}
	d := &ledger.Delivery{Environment: q.Environment, Commits: len(list), Gaps: []ledger.Gap{}}
	if d.ContainsBase, err = containsBase(past, q.Base, s.SHA); err != nil {
		return nil, err
	}
	if !complete {
		d.TooLong, d.Commits, d.Uncovered = true, lineage.MaxShipped, lineage.MaxShipped
		return d, nil
	}

	commits, known, err := de.gather(rd, s, list)
	if err != nil {
		return nil, fmt.Errorf("read what a deployment of %s ships: %w", s.SHA, err)
	}
	var gaps []delivery.Gap
	base := delivery.Base{Follows: d.ContainsBase}
	if s.Deriver.Contract.FollowsRecords() {
		if base.Since, err = lineage.Since(past.Node, list, q.Ran); err != nil {
			return nil, fmt.Errorf("find since when %s ships everything: %w", s.SHA, err)
		}
	}
	d.Standing, gaps = delivery.Judge(s.Deriver.Contract, commits, base, rd.Now)
	d.Uncovered = len(gaps)
	return d, de.addGaps(past, d, gaps[:min(len(gaps), ledger.MaxGaps)], known)
}

// containsBase reports whether a commit is known to contain what runs, if that is known.
func containsBase(past history.Past, base, sha string) (bool, error) {
	if base == "" {
		return false, nil
	}
	is, _, err := past.IsAncestor(base, sha)
	return is, err
}

// maxGathered is the number of commits whose facts are read at once.
const maxGathered = 500

// gather reads what is known of the commits that come with the head. It also returns those that are registered.
func (de *Deliveries) gather(rd txn.Reader, head *facts.Commit, list []lineage.Shipped,
) (commits []delivery.Commit, known map[string]*facts.Commit, err error) {
	known = map[string]*facts.Commit{head.SHA: head}
	for some := range slices.Chunk(list[1:], maxGathered) {
		if err := de.gatherSome(rd, head, some, known); err != nil {
			return nil, nil, err
		}
	}
	for _, shipped := range list {
		c := delivery.Commit{Shipped: shipped}
		if s := known[shipped.SHA]; s != nil {
			c.Facts = &s.Facts
		}
		commits = append(commits, c)
	}
	return commits, known, nil
}

func (de *Deliveries) gatherSome(rd txn.Reader, head *facts.Commit, list []lineage.Shipped,
	known map[string]*facts.Commit,
) error {
	keys := make([]any, 0, 2*len(list))
	for _, shipped := range list {
		keys = append(keys, head.RepoID, shipped.SHA)
	}
	var registered []*facts.Commit
	err := rd.EachIn(func(row txn.Scanner) error {
		c, err := facts.ScanCommitRow(row)
		registered = append(registered, &facts.Commit{CommitRow: c, Deriver: head.Deriver})
		return err
	}, facts.SelectCommitRow+"WHERE (repo_id, sha) IN ", 2, keys)
	if err != nil {
		return fmt.Errorf("read commits: %w", err)
	}
	for _, s := range registered {
		known[s.SHA] = s
	}
	return de.facts.Gather(rd, registered)
}

// addGaps adds gaps to a delivery, with what the ledger knows of their commits.
func (de *Deliveries) addGaps(
	p history.Past, d *ledger.Delivery, gaps []delivery.Gap, known map[string]*facts.Commit,
) error {
	for _, gap := range gaps {
		c, ok, err := p.Commit(gap.Commit)
		if err != nil {
			return err
		}
		g := ledger.Gap{Commit: gap.Commit, Reasons: gap.Reasons(), Unknown: gap.IsUnknown()}
		switch s := known[gap.Commit]; {
		case ok:
			g.Subject, g.Author = c.Subject, c.Author
		case s != nil:
			g.Author = s.Author
		}
		d.Gaps = append(d.Gaps, g)
	}
	return nil
}
