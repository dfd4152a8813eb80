package store

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

// Work works off the backlog until ctx is done. Orgs take turns, and so do the tasks of an org. The first of
// consecutive errors is logged.
func (s *Store) Work(ctx context.Context) {
	failures := txn.Series{Log: s.db.Log, Task: "working off the backlog"}
	tick := time.NewTicker(workInterval)
	defer tick.Stop()
	w := worker{Store: s}
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
		case <-s.wake:
		}
	}
}

// Settle does all jobs that are due, and once those that have failed before, unless the clock is wrong. It does
// not wait for other servers. It returns all errors.
func (s *Store) Settle(ctx context.Context) error {
	if err := s.makeDue(ctx); err != nil {
		return fmt.Errorf("make all jobs due: %w", err)
	}
	var errs []error
	w := worker{Store: s}
	for busy := true; busy; {
		var err error
		busy, err = w.pass(ctx)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// makeDue makes the jobs due that have failed, or that another server works on.
func (s *Store) makeDue(ctx context.Context) error {
	const where = " WHERE tries > 0 OR held_until > ? AND holder <> ?"
	exist, err := readLoose(ctx, s, txn.ForWrite(""), func(rd reader) (exist bool, err error) {
		return exist, rd.Row("SELECT EXISTS (SELECT 1 FROM backlog"+where+")", rd.Now, s.name).Scan(&exist)
	})
	if err != nil || !exist {
		return err
	}
	return s.writeFor(ctx, nil, func(t *tx) error {
		_, err := t.Exec("UPDATE backlog SET not_before = ?, held_until = 0"+where, t.Now, t.Now, s.name)
		return err
	})
}

// A worker works off the backlog. Only one goroutine may use it.
type worker struct {
	*Store
	planned bool              // whether the jobs after an upgrade are in the backlog
	turns   int64             // so far
	served  map[dueTask]int64 // the number of the last turn of each
}

// pass gives each org a turn for what has expired, and then one for another task, each until passTime is over.
// It reports whether there may be more to do now. A job that fails is put off, and its error returned.
func (w *worker) pass(ctx context.Context) (busy bool, err error) {
	if err := w.watchClock(ctx); err != nil {
		return false, fmt.Errorf("watch the clock: %w", err)
	}
	if err := w.resume(ctx); err != nil {
		return false, err
	}

	var errs []error
	for _, of := range [...][]task{tasks[:1], tasks[1:]} {
		list, err := w.due(ctx, of...)
		if err != nil {
			return false, errors.Join(append(errs, err)...)
		}
		for i, begun := 0, time.Now(); i < len(list) && time.Since(begun) < passTime; i++ {
			if w.CheckClock() != nil {
				return false, errors.Join(errs...)
			}
			err := w.turn(ctx, list[i])
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

// resume has the statements mapped that another release recorded.
func (w *worker) resume(ctx context.Context) error {
	if w.caches.mapped.Load() {
		return nil
	}
	if !w.planned {
		if err := w.planMapping(ctx); err != nil {
			return err
		}
		w.planned = true
	}
	return w.resumeMapping(ctx)
}

// due returns a task of each org that has due jobs of some tasks, those whose last turn was first at the
// beginning.
func (w *worker) due(ctx context.Context, of ...task) ([]dueTask, error) {
	list, err := w.dueTasks(ctx, of...)
	if err != nil {
		return nil, fmt.Errorf("find due jobs: %w", err)
	}
	slices.SortStableFunc(list, func(a, b dueTask) int { return cmp.Compare(w.served[a], w.served[b]) })

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

// turn works on the due jobs of a task of an org for turnTime. It returns the first error of those that fail.
func (w *worker) turn(ctx context.Context, d dueTask) (first error) {
	if w.served == nil {
		w.served = make(map[dueTask]int64)
	}
	w.turns++
	w.served[d] = w.turns

	for begun := time.Now(); time.Since(begun) < turnTime; {
		j, err := w.nextJob(ctx, d)
		if err != nil || j == nil {
			return cmp.Or(first, err)
		}
		err = w.step(ctx, j)
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

// step does the next part of a job.
func (s *Store) step(ctx context.Context, j *job) error {
	switch j.task {
	case taskExpire:
		return s.advance(ctx, j, (*tx).settleExpired)
	case taskMap:
		return s.advance(ctx, j, (*tx).mapNext)
	case taskDistrust:
		return s.replaceDistrusted(ctx, j)
	case taskSettle:
		return s.settleNext(ctx, j)
	case taskTree, taskMerges:
		return s.advance(ctx, j, (*tx).settleHeirs)
	case taskClose, taskExcuse:
		return s.advance(ctx, j, (*tx).closeNext)
	case taskLog:
		return s.advance(ctx, j, (*tx).logNext)
	case taskPrune:
		return s.advance(ctx, j, (*tx).pruneNext)
	}
	return fmt.Errorf("task %s is not one of this release", j.task)
}
