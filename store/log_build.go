package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// buildBatch is the number of leaves that one write of the builder adds.
	buildBatch = 4 * proof.TileWidth
	// buildReport is how often the builder logs its progress, and buildRetry how long it
	// waits after an error.
	buildReport = 10 * time.Second
	buildRetry  = time.Minute
)

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

// BuildLogsOnce builds all logs that are incomplete. If one fails, it continues with the
// others, and returns all errors.
func (s *Store) BuildLogsOnce(ctx context.Context) error {
	orgs, err := readLoose(ctx, s, txn.ForWrite(""), func(rd reader) ([]int64, error) {
		return all(rd, txn.ScanID, "SELECT id FROM orgs WHERE log_built <> ? ORDER BY id", isBuilt)
	})
	if err != nil {
		return fmt.Errorf("list incomplete logs: %w", err)
	}
	var errs []error
	for _, orgID := range orgs {
		if err := s.buildLog(ctx, orgID); err != nil {
			errs = append(errs, err)
		}
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

// buildLog builds the log of an org up to its end.
func (s *Store) buildLog(ctx context.Context, orgID int64) error {
	reported := time.Now()
	for {
		u, err := s.unbuilt(ctx, orgID)
		if err != nil {
			return err
		}
		if u.head.built == isBuilt {
			return nil
		}
		done, err := writeYielding(ctx, s, []int64{orgID}, func(t *tx) (bool, error) { return t.build(orgID, u) })
		if err != nil {
			return fmt.Errorf("build the log of %s: %w", u.org, err)
		}

		if time.Since(reported) > buildReport || done {
			s.db.Log.Info("building the transparency log", "org", u.org, "leaves", u.head.built+int64(len(u.leaves)),
				"of", u.head.seq-u.head.first, "done", done)
			reported = time.Now()
		}
		if done {
			return nil
		}
	}
}

// unbuilt is the next part of a log to be built.
type unbuilt struct {
	org    string
	head   logHead
	leaves []unbuiltLeaf
}

// An unbuiltLeaf is an event, with a new leaf if it had none.
type unbuiltLeaf struct {
	event      int64
	salt, leaf []byte
}

// unbuilt reads the next part of a log, and makes its leaves.
func (s *Store) unbuilt(ctx context.Context, orgID int64) (unbuilt, error) {
	return read(ctx, s, txn.ForWrite(""), func(rd reader) (u unbuilt, err error) {
		err = rd.Row("SELECT name, next_seq, log_id, log_first, log_built FROM orgs WHERE id = ?", orgID).
			Scan(&u.org, &u.head.seq, &u.head.log, &u.head.first, &u.head.built)
		if err != nil || u.head.built == isBuilt {
			return u, err
		}
		from := u.head.first + u.head.built
		to := min(from+buildBatch, u.head.seq)
		u.leaves, err = all(rd, scanUnbuilt, `
SELECT id, CASE WHEN leaf IS NULL THEN body END FROM events WHERE org_id = ? AND seq >= ? AND seq < ? ORDER BY seq`,
			orgID, from, to)
		if err == nil && int64(len(u.leaves)) != to-from {
			err = fmt.Errorf("%w: %d of the events %d to %d of %s are missing", errIncomplete, to-from-int64(len(u.leaves)),
				from, to-1, u.org)
		}
		return u, err
	})
}

func scanUnbuilt(row txn.Scanner) (u unbuiltLeaf, err error) {
	var body []byte
	if err := row.Scan(&u.event, &body); err != nil || body == nil {
		return u, err
	}
	u.salt, u.leaf = newLeaf(body)
	return u, nil
}

// build writes the next part of a log: full tiles, and at the end of the log the rest of
// its leaves. It reports whether the log is complete.
func (t *tx) build(orgID int64, u unbuilt) (done bool, err error) {
	end, err := t.nextSeq(orgID)
	if err != nil {
		return false, err
	}
	head := t.batch.heads[orgID]
	if head.built != u.head.built {
		return head.built == isBuilt, nil // built by another process
	}

	leaves := sqldb.NewRows(`
UPDATE events SET salt = v.column2, leaf = v.column3
FROM (VALUES (CAST(NULL AS BIGINT), CAST(NULL AS BLOB), CAST(NULL AS BLOB)), `, // the types of the columns
		") v WHERE events.id = v.column1 AND events.leaf IS NULL", 3)
	for _, l := range u.leaves {
		if l.leaf != nil {
			leaves.Add(l.event, l.salt, l.leaf)
		}
	}
	if err := leaves.Flush(t.Conn); err != nil {
		return false, fmt.Errorf("write leaves: %w", err)
	}

	built := head.built
	for ; built+proof.TileWidth <= u.head.built+int64(len(u.leaves)); built += proof.TileWidth {
		if err := writeTile(t.Conn, orgID, head, built/proof.TileWidth); err != nil {
			return false, err
		}
	}
	// From then on, the writer adds the tiles. The events that it has appended during the
	// build have leaves.
	all := u.head.built+int64(len(u.leaves)) == u.head.seq-u.head.first
	if done = all && end-head.first-built < proof.TileWidth; done {
		built = isBuilt
		t.gathered.built = append(t.gathered.built, orgID)
	}
	_, err = t.Exec("UPDATE orgs SET log_built = ? WHERE id = ?", built, orgID)
	return done, err
}
