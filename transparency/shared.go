package transparency

import (
	"bytes"
	"context"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// overlap is how much of the time before the last pass is looked at again: a checkpoint can have
// been committed a little after its time.
const overlap = 10 * time.Second

// takeOver writes to disk the checkpoints that other servers have signed since the last pass. So
// this server notices a database that is older than these, even if it has signed nothing itself.
func (s *Signer) takeOver(ctx context.Context) error {
	start, since := s.Store.Now(), ledger.Time(0)
	if s.passed > 0 {
		since = s.passed.Add(-overlap)
	}
	list := func(after string) ([]store.Log, error) { return s.Store.LogsSigned(ctx, since, after, page) }
	err := each(list, func(l store.Log) {
		if err := s.takeOverLog(ctx, l); err != nil {
			s.observe(ctx, l, err)
		}
	})
	if err == nil {
		s.passed = start
	}
	return err
}

// takeOverLog writes the stored checkpoint of a log to disk, unless it is there, or the log does
// not extend the one that is.
func (s *Signer) takeOverLog(ctx context.Context, l store.Log) error {
	saved, err := s.Keys.signed(nameOf(l))
	if err != nil || bytes.Equal(saved, l.Checkpoint) {
		return err
	}
	key, err := s.load(l)
	if err == nil {
		err = key.isOf(l)
	}
	if err != nil {
		return err
	}
	return s.extendsSigned(ctx, l, key)
}
