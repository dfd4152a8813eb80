package upkeep

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Work works off the backlog until ctx is done. The first of consecutive errors is logged.
func (u *Upkeep) Work(ctx context.Context) { u.jobs.Work(ctx, &doer{Upkeep: u}) }

// Settle does all jobs that are due, and once those that have failed before, unless the clock is wrong. It does
// not wait for other servers. It returns all errors.
func (u *Upkeep) Settle(ctx context.Context) error { return u.jobs.Finish(ctx, &doer{Upkeep: u}) }

// Backlog returns what waits to be done in the background, by task and org.
func (u *Upkeep) Backlog(ctx context.Context) ([]backlog.Waiting, error) {
	return txn.ReadLoose(ctx, u.db, txn.ForWrite(""), backlog.List)
}

// A doer does what the jobs of the backlog are about. Only one goroutine may use it.
type doer struct {
	*Upkeep
	planned bool // whether the jobs after an upgrade are in the backlog
}

// Begin implements backlog.Doer. It watches the clock, and has the statements mapped that another release recorded.
func (d *doer) Begin(ctx context.Context) error {
	if err := d.watchClock(ctx); err != nil {
		return fmt.Errorf("watch the clock: %w", err)
	}
	if d.facts.IsMapped() {
		return nil
	}
	if !d.planned {
		if err := d.facts.PlanMapping(ctx); err != nil {
			return err
		}
		d.planned = true
	}
	return d.facts.ResumeMapping(ctx)
}

// Step implements backlog.Doer.
func (d *doer) Step(ctx context.Context, j *backlog.Job) error {
	switch j.Task {
	case backlog.Expire:
		return d.jobs.Advance(ctx, j, d.states.SettleExpired)
	case backlog.Map:
		return d.jobs.Advance(ctx, j, d.facts.MapNext)

	case backlog.Distrust:
		return d.states.ReplaceDistrusted(ctx, j)
	case backlog.Settle:
		return d.states.SettleNext(ctx, j)
	case backlog.Tree, backlog.Merges:
		return d.jobs.Advance(ctx, j, d.states.SettleHeirs)
	case backlog.Gaps:
		return d.jobs.Advance(ctx, j, d.states.SettleGaps)
	case backlog.Close, backlog.Excuse:
		return d.jobs.Advance(ctx, j, d.states.CloseNext)
	case backlog.Log:
		return d.jobs.Advance(ctx, j, d.facts.LogNext)
	case backlog.Prune:
		return d.jobs.Advance(ctx, j, pruneNext)
	}
	return fmt.Errorf("task %s is not one of this release", j.Task)
}
