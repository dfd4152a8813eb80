package store

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Work works off the backlog until ctx is done. The first of consecutive errors is logged.
func (s *Store) Work(ctx context.Context) { s.jobs.Work(ctx, &doer{Store: s}) }

// Settle does all jobs that are due, and once those that have failed before, unless the clock is wrong. It does
// not wait for other servers. It returns all errors.
func (s *Store) Settle(ctx context.Context) error { return s.jobs.Finish(ctx, &doer{Store: s}) }

// Backlog returns what waits to be done in the background, by task and org.
func (s *Store) Backlog(ctx context.Context) ([]Backlog, error) {
	return txn.ReadLoose(ctx, s.db, txn.ForWrite(""), backlog.List)
}

// Tasks returns the names of all tasks of the backlog.
func Tasks() []string { return backlog.Tasks() }

// A doer does what the jobs of the backlog are about. Only one goroutine may use it.
type doer struct {
	*Store
	planned bool // whether the jobs after an upgrade are in the backlog
}

// Begin implements backlog.Doer. It watches the clock, and has the statements mapped that another release recorded.
func (d *doer) Begin(ctx context.Context) error {
	if err := d.watchClock(ctx); err != nil {
		return fmt.Errorf("watch the clock: %w", err)
	}
	if d.IsMapped() {
		return nil
	}
	if !d.planned {
		if err := d.planMapping(ctx); err != nil {
			return err
		}
		d.planned = true
	}
	return d.resumeMapping(ctx)
}

// Step implements backlog.Doer.
func (d *doer) Step(ctx context.Context, j *backlog.Job) error {
	switch j.Task {
	case backlog.Expire:
		return d.jobs.Advance(ctx, j, d.SettleExpired)
	case backlog.Map:
		return d.advance(ctx, j, (*tx).mapNext)
	case backlog.Distrust:
		return d.ReplaceDistrusted(ctx, j)
	case backlog.Settle:
		return d.SettleNext(ctx, j)
	case backlog.Tree, backlog.Merges:
		return d.jobs.Advance(ctx, j, d.SettleHeirs)
	case backlog.Close, backlog.Excuse:
		return d.jobs.Advance(ctx, j, d.CloseNext)
	case backlog.Log:
		return d.jobs.Advance(ctx, j, d.LogNext)
	case backlog.Prune:
		return d.advance(ctx, j, (*tx).pruneNext)
	}
	return fmt.Errorf("task %s is not one of this release", j.Task)
}
