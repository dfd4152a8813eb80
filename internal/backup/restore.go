package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/sqlite"
)

// A Restore makes a database from a backup.
type Restore struct {
	File string
	// Database is the path of the database, which must not exist.
	Database string
	// Quick skips the check of what the backup contains. The file itself is always checked.
	Quick bool
	// ParseRoot parses the trusted roots in the backup. Without it, the check refuses keyless signatures.
	ParseRoot identity.RootParser
	// By is who restores, for audit events.
	By ledger.Actor
	// Progress, if not nil, is called with how much of a step is done; total is 0 if that is not known.
	Progress func(step string, done, total int64)
}

// A Restored says what a restored database has.
type Restored struct {
	Database string           `json:"database"`
	Bytes    int64            `json:"bytes"`
	Orgs     []store.Restored `json:"orgs"`
	// Checked reports whether what the backup contains was checked. A backup of an earlier
	// release is not, since its schema is migrated.
	Checked bool `json:"checked"`
}

// A DamagedError is the error of a backup whose contents contradict each other.
type DamagedError struct {
	File   string
	Report check.Report
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is not restored: the check has found problems (%d)", e.File, e.Report.Found)
}

// Run restores the backup. It returns a *DamagedError if the backup must not be relied on. If it
// fails, there is no database, and the backup is as before.
func (r Restore) Run(ctx context.Context) (done Restored, err error) {
	if err := sqlite.CheckFree(r.Database); err != nil {
		return done, err
	}
	_, current, err := sqlite.SchemaOf(ctx, r.File)
	if different, ok := errors.AsType[*sqldb.SchemaError](err); ok {
		return done, &DamagedError{r.File, check.OfSchema(different)}
	}
	if err != nil {
		return done, fmt.Errorf("read the backup %s: %w", r.File, err)
	}
	lock, err := sqlite.TakeLock(r.Database)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()

	done = Restored{Database: r.Database, Checked: current && !r.Quick}
	done.Bytes, err = sqlite.Backup{
		From: r.File, Still: true, To: r.Database,
		Progress: func(bytes, total int64) { r.progress("copying, in bytes", bytes, total) },
		Verify: func(copied string) error {
			if done.Checked {
				if err := r.check(ctx, copied); err != nil {
					return err
				}
			}
			var err error
			done.Orgs, err = r.note(ctx, copied)
			return err
		},
	}.Run(ctx)
	return done, err
}

// check checks what a copy of the backup contains.
func (r Restore) check(ctx context.Context, copied string) error {
	report, err := check.Run(ctx, copied, check.Options{
		ParseRoot: r.ParseRoot,
		Progress:  func(step string, done, total int64) { r.progress("checking the "+step, done, total) },
	})
	if err != nil {
		return fmt.Errorf("check the backup: %w", err)
	}
	if report.Found > 0 {
		return &DamagedError{r.File, report}
	}
	return nil
}

// note migrates a copy of the backup, and records in it that it was restored.
func (r Restore) note(ctx context.Context, copied string) ([]store.Restored, error) {
	db, err := store.Open(ctx, copied, store.Options{NoCopy: true})
	if err != nil {
		return nil, err
	}
	orgs, err := db.NoteRestore(store.WithActor(ctx, r.By))
	return orgs, errors.Join(err, db.Close())
}

func (r Restore) progress(step string, done, total int64) {
	if r.Progress != nil {
		r.Progress(step, done, total)
	}
}
