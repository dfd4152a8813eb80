package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/store/txn"
)

// buildRetry is how long the builder of logs waits between two looks.
const buildRetry = time.Minute

// BuildLogs builds the logs of the events that were recorded before an upgrade, until ctx is
// done, while writes go on. The first of consecutive errors is logged, and the work is
// retried.
func (u *Upkeep) BuildLogs(ctx context.Context) {
	failures := txn.Series{Log: u.db.Log, Task: "building the transparency log"}
	tick := time.NewTicker(buildRetry)
	defer tick.Stop()
	for {
		if err := u.BuildLogsOnce(ctx); ctx.Err() == nil {
			failures.Observe(ctx, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// BuildLogsOnce builds all logs that are incomplete, and logs what an earlier release did not. If
// one fails, it continues with the others, and returns all errors.
func (u *Upkeep) BuildLogsOnce(ctx context.Context) error {
	var errs []error
	if err := u.journal.BuildAll(ctx); err != nil {
		errs = append(errs, err)
	}
	if err := u.signers.LogIdentities(ctx); err != nil {
		errs = append(errs, fmt.Errorf("log identities: %w", err))
	}
	if err := u.signers.LogDistincts(ctx); err != nil {
		errs = append(errs, fmt.Errorf("log distinct signers: %w", err))
	}
	if err := u.orgs.LogSettings(ctx); err != nil {
		errs = append(errs, fmt.Errorf("log access and settings: %w", err))
	}
	return errors.Join(errs...)
}
