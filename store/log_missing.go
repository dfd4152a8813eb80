package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// buildRetry is how long the builder of logs waits between two looks.
const buildRetry = time.Minute

// BuildLogs builds the logs of the events that were recorded before an upgrade, until ctx is
// done, while writes go on. The first of consecutive errors is logged, and the work is
// retried.
func (s *Store) BuildLogs(ctx context.Context) {
	failures := txn.Series{Log: s.db.Log, Task: "building the transparency log"}
	tick := time.NewTicker(buildRetry)
	defer tick.Stop()
	for {
		if err := s.BuildLogsOnce(ctx); ctx.Err() == nil {
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
func (s *Store) BuildLogsOnce(ctx context.Context) error {
	var errs []error
	if err := s.BuildAll(ctx); err != nil {
		errs = append(errs, err)
	}
	if err := s.logIdentities(ctx); err != nil {
		errs = append(errs, fmt.Errorf("log identities: %w", err))
	}
	if err := s.logDistincts(ctx); err != nil {
		errs = append(errs, fmt.Errorf("log distinct signers: %w", err))
	}
	if err := s.logSettings(ctx); err != nil {
		errs = append(errs, fmt.Errorf("log access and settings: %w", err))
	}
	return errors.Join(errs...)
}

// logIdentities logs the identities that were added before a release that logs them, so
// that the log has every identity that has ever signed.
func (s *Store) logIdentities(ctx context.Context) error {
	for {
		ids, err := readLoose(ctx, s, txn.ForWrite(""), func(rd reader) ([]int64, error) {
			return all(rd, txn.ScanID, `
SELECT id FROM identities /*+index identities_to_log*/ WHERE event_id = '' ORDER BY id LIMIT ?`, logIdentitiesBatch)
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		_, err = writeYielding(ctx, s, nil, func(t *tx) (struct{}, error) { return struct{}{}, t.logListed(ids) })
		if err != nil {
			return err
		}
	}
}

// logListed logs identities, unless they were logged since they were read.
func (t *tx) logListed(ids []int64) error {
	for _, id := range ids {
		i, err := scanIdentity(t.Row(selectIdentity+"WHERE i.id = ?", id))
		if err != nil {
			return fmt.Errorf("read identity: %w", err)
		}
		if i.Row.Event != "" {
			continue
		}

		orgID, err := t.OrgID(i.Row.Org)
		if err != nil {
			return err
		}
		if _, err := t.logIdentity(orgID, i.Row, i, ledger.IdentityKnown); err != nil {
			return err
		}
	}
	return nil
}
