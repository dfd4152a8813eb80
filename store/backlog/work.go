package backlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// workInterval is how often Work looks for jobs that are due, and that other processes have added.
	workInterval = time.Second
	// passTime is after which time a pass leaves the other turns to the next one, which begins with what
	// has expired.
	passTime = time.Second
)

// A Doer does what the jobs are about.
type Doer interface {
	// Begin prepares a pass of turns. If it fails, the pass does not take place.
	Begin(context.Context) error
	// Step does the next part of a job, by Jobs.Advance.
	Step(context.Context, *Job) error
}

// Work works off the backlog until ctx is done. Orgs take turns, and so do the tasks of an org. The first of
// consecutive errors is logged.
func (bl *Jobs) Work(ctx context.Context, do Doer) {
	failures := txn.Series{Log: bl.db.Log, Task: "working off the backlog"}
	tick := time.NewTicker(workInterval)
	defer tick.Stop()
	w := worker{Jobs: bl, do: do}
	for {
		busy, err := w.pass(ctx)
		if ctx.Err() != nil {
			return
		}
		failures.Observe(ctx, err)
		if busy {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-bl.wake:
		}
	}
}

// Finish does all jobs that are due, and once those that have failed before, unless the clock is wrong. It does
// not wait for other servers. It returns all errors.
func (bl *Jobs) Finish(ctx context.Context, do Doer) error {
	if err := bl.makeDue(ctx); err != nil {
		return fmt.Errorf("make all jobs due: %w", err)
	}
	var errs []error
	w := worker{Jobs: bl, do: do}
	for busy := true; busy; {
		var err error
		busy, err = w.pass(ctx)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// makeDue makes the jobs due that have failed, or that another server works on.
func (bl *Jobs) makeDue(ctx context.Context) error {
	const where = " WHERE tries > 0 OR held_until > ? AND holder <> ?"
	exist, err := txn.ReadLoose(ctx, bl.db, txn.ForWrite(""), func(rd txn.Reader) (exist bool, err error) {
		return exist, rd.Row("SELECT EXISTS (SELECT 1 FROM backlog"+where+")", rd.Now, bl.server).Scan(&exist)
	})
	if err != nil || !exist {
		return err
	}
	return bl.db.WriteFor(ctx, nil, func(t *txn.Tx) error {
		_, err := t.Exec("UPDATE backlog SET not_before = ?, held_until = 0"+where, t.Now, t.Now, bl.server)
		return err
	})
}

// A worker works off the backlog. Only one goroutine may use it.
type worker struct {
	*Jobs
	do     Doer
	turns  int64          // so far
	served map[turn]int64 // the number of the last turn of each
}

// pass gives each org a turn for what has expired, and then one for another task, each until passTime is over.
// It reports whether there may be more to do now. A job that fails is put off, and its error returned.
func (w *worker) pass(ctx context.Context) (busy bool, err error) {
	if err := w.do.Begin(ctx); err != nil {
		return false, err
	}

	var errs []error
	for _, of := range [...][]Task{tasks[:1], tasks[1:]} {
		list, err := w.first(ctx, of...)
		if err != nil {
			return false, errors.Join(append(errs, err)...)
		}
		for i, begun := 0, time.Now(); i < len(list) && time.Since(begun) < passTime; i++ {
			if w.db.Clock.Refusal() != nil {
				return false, errors.Join(errs...)
			}
			err := w.take(ctx, list[i])
			if err != nil {
				errs = append(errs, fmt.Errorf("%s in org %d: %w", list[i].task, list[i].org, err))
			}
			if ctx.Err() != nil || txn.IsUnavailable(err) {
				return false, errors.Join(errs...)
			}
			busy = true
		}
	}
	return busy, errors.Join(errs...)
}

// first returns a task of each org that has due jobs of some tasks, those whose last turn was first at the
// beginning.
func (w *worker) first(ctx context.Context, of ...Task) ([]turn, error) {
	list, err := w.due(ctx, of...)
	if err != nil {
		return nil, fmt.Errorf("find due jobs: %w", err)
	}
	slices.SortStableFunc(list, func(a, b turn) int { return cmp.Compare(w.served[a], w.served[b]) })

	first := list[:0]
	seen := make(map[int64]bool, len(list))
	for _, d := range list {
		if !seen[d.org] {
			first = append(first, d)
		}
		seen[d.org] = true
	}
	return first, nil
}

// take works on the due jobs of a task of an org for TurnTime. It returns the first error of those that fail.
func (w *worker) take(ctx context.Context, d turn) (first error) {
	if w.served == nil {
		w.served = make(map[turn]int64)
	}
	w.turns++
	w.served[d] = w.turns

	for begun := time.Now(); time.Since(begun) < TurnTime; {
		j, err := w.Next(ctx, d.org, d.task)
		if err != nil || j == nil {
			return cmp.Or(first, err)
		}
		err = w.do.Step(ctx, j)
		if ctx.Err() != nil || txn.IsUnavailable(err) {
			return err
		}
		if err != nil {
			first = cmp.Or(first, err)
			if err := w.putOff(ctx, j, err); err != nil {
				return errors.Join(first, err)
			}
		}
	}
	return first
}
