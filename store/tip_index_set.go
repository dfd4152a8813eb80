package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
)

// A tipIndexSet holds the indexes of repos, within about so many bytes.
type tipIndexSet struct {
	limit int64

	mu    sync.Mutex
	repos map[int64]*tipIndex
	size  int64
	uses  int64
}

func newTipIndexSet(limit int64) *tipIndexSet {
	return &tipIndexSet{limit: limit, repos: make(map[int64]*tipIndex)}
}

// of returns the index of a repo as it was last refreshed.
func (s *tipIndexSet) of(repoID int64) *tipIndex {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.repos[repoID]
	if x == nil {
		x = newTipIndex(repoID)
		s.repos[repoID] = x
	}
	s.uses++
	x.used = s.uses
	return x
}

// idleAfter is how many looks at other indexes make one idle.
const idleAfter = 1000

// fit makes room where an index that was refreshed has grown: idle ones go, and
// where that does not do the largest shrinks, so that repos in use do not take
// turns at being read. An index with room again for what was left out of it goes
// too, and is made anew by the next who asks. Who is at one that goes stays at it.
func (s *tipIndexSet) fit(x *tipIndex) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repos[x.repoID] != x {
		return
	}
	s.count(x)
	left := min(x.state().left, s.limit/2) // much of it may have ended since
	if s.size > s.limit || left > 0 {
		s.dropIdle()
	}
	if s.size > s.limit {
		s.shrink(s.limit - s.slack())
	}
	if left > 0 && left+s.slack() < s.limit-s.size {
		s.drop(x)
	}
}

// slack is by how much the set shrinks below its limit, so that it has not to do
// that again at once.
func (s *tipIndexSet) slack() int64 { return s.limit / 10 }

func (s *tipIndexSet) dropIdle() {
	for _, x := range s.repos {
		if x.used < s.uses-idleAfter {
			s.drop(x)
		}
	}
}

func (s *tipIndexSet) drop(x *tipIndex) {
	delete(s.repos, x.repoID)
	s.size -= x.counted
}

// shrink makes the largest indexes smaller, by at most half at a time: the
// largest need not be large.
func (s *tipIndexSet) shrink(size int64) {
	for s.size > size {
		largest := slices.MaxFunc(slices.Collect(maps.Values(s.repos)), func(a, b *tipIndex) int { return cmp.Compare(a.counted, b.counted) })
		largest.shrink(max(largest.counted/2, largest.counted-(s.size-size)))
		s.count(largest)
	}
}

func (s *tipIndexSet) count(x *tipIndex) {
	size := x.state().size
	s.size += size - x.counted
	x.counted = size
}

// most is how many bytes one tip may take: one that takes more is left out,
// rather than all others.
func (s *tipIndexSet) most() int64 { return s.limit / 4 }

// freshTips returns the index of a repo, brought up to what is on disk.
func (s *Store) freshTips(ctx context.Context, repoID int64) (*tipIndex, error) {
	x := s.tips.of(repoID)
	select {
	case x.refreshing <- struct{}{}:
		defer func() { <-x.refreshing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := s.refresh(ctx, x); err != nil {
		return nil, fmt.Errorf("read tips: %w", err)
	}
	s.tips.fit(x)
	return x, nil
}

func (s *Store) refresh(ctx context.Context, x *tipIndex) error {
	before := x.state()
	var news tipNews
	err := s.read(ctx, func(c *conn) (err error) {
		if before.seq > 0 {
			news, err = tipsSince(c, x.repoID, before.seq, s.tips)
		}
		if before.seq == 0 || errors.Is(err, errEnough) {
			news, err = allTips(c, x.repoID, s.tips)
		}
		return err
	})
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if news.all {
		x.clear()
	}
	x.seq, x.left = news.seq, x.left+news.left
	for _, t := range news.tips {
		id := t.row.commitID
		delete(x.big, id)
		switch {
		case t.row.flight >= superseded:
			x.remove(x.tips[id])
		case t.size > s.tips.most():
			x.remove(x.tips[id])
			x.big[id] = true
		default:
			x.put(t)
		}
	}
	return nil
}

// tipNews is what an index has not seen.
type tipNews struct {
	// tips are in the order of their numbers; those that have ended, and those
	// that take too much, are without what they change.
	tips []*indexedTip
	seq  int64 // the last number
	all  bool  // they are all that others may have to look at
	left int64 // about how many bytes of them were left out: the latest are here
	size int64
}

// add adds a tip, without what it changes if that takes too much. Where there is
// no room for it, it gives errEnough.
func (n *tipNews) add(t *indexedTip, room *tipIndexSet) error {
	if t.size > room.most() {
		t.record, t.ends = nil, nil
	} else if n.size += t.size; n.size > room.limit {
		return errEnough
	}
	n.tips = append(n.tips, t)
	return nil
}

// Of the tips of a repo, those that others may have to look at, and those of
// which something has changed: as rows, and with what they change as long as that
// matters.
const (
	liveTips     = "SELECT " + tipColumns + " FROM tips t WHERE t.repo_id = ? AND t.flight < 4"
	newerTips    = "SELECT " + tipColumns + " FROM tips t WHERE t.repo_id = ? AND t.seq > ? ORDER BY t.seq"
	withRecord   = "SELECT " + tipColumns + ", CASE WHEN t.flight < 4 THEN d.changes END FROM tips t LEFT JOIN commit_details d ON d.commit_id = t.commit_id WHERE t.repo_id = ? AND "
	liveRecords  = withRecord + "t.flight < 4 ORDER BY t.opened_at DESC"
	newerRecords = withRecord + "t.seq > ? ORDER BY t.seq"
)

var errEnough = errors.New("enough")

// allTips reads the tips that others may have to look at, the latest of them
// for which there is room.
func allTips(c *conn, repoID int64, room *tipIndexSet) (tipNews, error) {
	news := tipNews{all: true}
	err := news.read(c, room, liveRecords, repoID)
	if errors.Is(err, errEnough) {
		news.left, err = room.limit/2, nil // how much, nobody knows
	}
	if err == nil {
		err = c.row("SELECT coalesce(max(seq), 0) FROM tips WHERE repo_id = ?", repoID).Scan(&news.seq)
	}
	slices.SortFunc(news.tips, func(a, b *indexedTip) int { return cmp.Compare(a.row.seq, b.row.seq) })
	return news, err
}

// tipsSince reads the tips of which something has changed since that number was
// the last. Where these are more than there is room for, it gives errEnough.
func tipsSince(c *conn, repoID, seq int64, room *tipIndexSet) (tipNews, error) {
	news := tipNews{seq: seq}
	err := news.read(c, room, newerRecords, repoID, seq)
	if n := len(news.tips); n > 0 {
		news.seq = news.tips[n-1].row.seq
	}
	return news, err
}

// read adds the tips of a query.
func (n *tipNews) read(c *conn, room *tipIndexSet, query string, args ...any) error {
	return c.each(func(row scanner) error {
		var text []byte
		tip, err := scanTipAnd(row, &text)
		if err != nil {
			return err
		}
		changes, err := decodeChanges(text)
		if err != nil {
			return fmt.Errorf("read changes of %s: %w", tip.SHA, err)
		}
		return n.add(newIndexedTip(tip, changes), room)
	}, query, args...)
}

func decodeChanges(text []byte) (changes []ledger.Change, err error) {
	if text != nil {
		err = json.Unmarshal(text, &changes)
	}
	return changes, err
}
