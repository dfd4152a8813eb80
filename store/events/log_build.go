package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// buildBatch is the number of leaves that one write of the builder adds.
	buildBatch = 4 * proof.TileWidth
	// buildReport is how often the builder logs its progress.
	buildReport = 10 * time.Second
)

// BuildAll builds all logs that are incomplete. If one fails, it continues with the
// others, and returns all errors.
func (j *Journal) BuildAll(ctx context.Context) error {
	orgs, err := txn.ReadLoose(ctx, j.db, txn.ForWrite(""), func(rd txn.Reader) ([]int64, error) {
		return txn.All(rd, txn.ScanID, "SELECT id FROM orgs WHERE log_built <> ? ORDER BY id", isBuilt)
	})
	if err != nil {
		return fmt.Errorf("list incomplete logs: %w", err)
	}
	var errs []error
	for _, orgID := range orgs {
		if err := j.buildLog(ctx, orgID); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// buildLog builds the log of an org up to its end.
func (j *Journal) buildLog(ctx context.Context, orgID int64) error {
	reported := time.Now()
	for {
		u, err := j.unbuilt(ctx, orgID)
		if err != nil {
			return err
		}
		if u.head.built == isBuilt {
			return nil
		}
		done, err := txn.Write(ctx, j.db, sqldb.Write{Yields: true, Owners: []int64{orgID}}, func(t *txn.Tx) (bool, error) {
			return j.build(t, orgID, u)
		})
		if err != nil {
			return fmt.Errorf("build the log of %s: %w", u.org, err)
		}

		if time.Since(reported) > buildReport || done {
			j.db.Log.Info("building the transparency log", "org", u.org, "leaves", u.head.built+int64(len(u.leaves)),
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
func (j *Journal) unbuilt(ctx context.Context, orgID int64) (unbuilt, error) {
	return txn.Read(ctx, j.db, txn.ForWrite(""), func(rd txn.Reader) (u unbuilt, err error) {
		err = rd.Row("SELECT name, next_seq, log_id, log_first, log_built FROM orgs WHERE id = ?", orgID).
			Scan(&u.org, &u.head.seq, &u.head.log, &u.head.first, &u.head.built)
		if err != nil || u.head.built == isBuilt {
			return u, err
		}
		from := u.head.first + u.head.built
		to := min(from+buildBatch, u.head.seq)
		u.leaves, err = txn.All(rd, scanUnbuilt, `
SELECT id, CASE WHEN leaf IS NULL THEN body END FROM events WHERE org_id = ? AND seq >= ? AND seq < ? ORDER BY seq`,
			orgID, from, to)
		if err == nil && int64(len(u.leaves)) != to-from {
			err = fmt.Errorf("%w: %d of the events %d to %d of %s are missing", ErrIncomplete, to-from-int64(len(u.leaves)),
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
func (j *Journal) build(t *txn.Tx, orgID int64, u unbuilt) (done bool, err error) {
	end, err := j.NextSeq(t, orgID)
	if err != nil {
		return false, err
	}
	head := j.heads[orgID]
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
		j.left.built = append(j.left.built, orgID)
	}
	_, err = t.Exec("UPDATE orgs SET log_built = ? WHERE id = ?", built, orgID)
	return done, err
}
