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
	if s.size > s.limit {
		maps.DeleteFunc(s.repos, func(_ int64, other *tipIndex) bool {
			idle := other.used < s.uses-idleAfter
			if idle {
				s.size -= other.counted
			}
			return idle
		})
	}
	for s.size > s.limit {
		largest := slices.MaxFunc(slices.Collect(maps.Values(s.repos)), func(a, b *tipIndex) int { return cmp.Compare(a.counted, b.counted) })
		largest.shrink(max(0, largest.counted-(s.size-s.limit)-s.limit/10)) // and some more, so that it is not at once to be done again
		s.count(largest)
	}
	if state := x.state(); state.cut && state.size < state.renewAt {
		delete(s.repos, x.repoID)
		s.size -= x.counted
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
		if before.seq == 0 {
			news, err = allTips(c, x.repoID, s.tips)
		} else {
			news, err = tipsSince(c, x.repoID, before.seq)
		}
		return err
	})
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seq, x.cut = news.seq, x.cut || news.cut || news.big
	if news.cut {
		x.renewAt = s.tips.limit / 2
	}
	for _, t := range news.tips {
		if t.row.flight >= superseded || t.size > s.tips.most() {
			x.cut = x.cut || t.row.flight < superseded
			x.remove(x.tips[t.row.commitID])
			continue
		}
		x.put(t)
	}
	return nil
}

// tipNews is what an index has not seen.
type tipNews struct {
	tips []*indexedTip // in the order of their numbers; those that have ended without what they changed
	seq  int64         // the last number
	cut  bool          // there are more: the latest are here
	big  bool          // there are such as take too much
}

// Of the tips of a repo, those that others may have to look at, with what they
// change and without, and those of which something has changed.
const (
	liveRecords = "SELECT " + tipColumns + ", d.changes FROM tips t LEFT JOIN commit_details d ON d.commit_id = t.commit_id WHERE t.repo_id = ? AND t.flight < 4 ORDER BY t.opened_at DESC"
	liveTips    = "SELECT " + tipColumns + " FROM tips t WHERE t.repo_id = ? AND t.flight < 4"
	newerTips   = "SELECT " + tipColumns + " FROM tips t WHERE t.repo_id = ? AND t.seq > ? ORDER BY t.seq"
)

var errEnough = errors.New("enough")

// allTips reads the tips that others may have to look at, the latest of them
// for which there is room.
func allTips(c *conn, repoID int64, room *tipIndexSet) (news tipNews, err error) {
	if err := c.row("SELECT coalesce(max(seq), 0) FROM tips WHERE repo_id = ?", repoID).Scan(&news.seq); err != nil {
		return news, err
	}
	size := int64(0)
	err = c.each(func(row scanner) error {
		var text []byte
		tip, err := scanTipAnd(row, &text)
		if err != nil {
			return err
		}
		changes, err := decodeChanges(text)
		if err != nil {
			return err
		}
		t := newIndexedTip(tip, changes)
		if t.size > room.most() {
			news.big = true
			return nil
		}
		if size += t.size; size > room.limit {
			return errEnough
		}
		news.tips = append(news.tips, t)
		return nil
	}, liveRecords, repoID)
	if news.cut = errors.Is(err, errEnough); news.cut {
		err = nil
	}
	slices.SortFunc(news.tips, func(a, b *indexedTip) int { return cmp.Compare(a.row.seq, b.row.seq) })
	return news, err
}

// tipsSince reads the tips of which something has changed since that number was
// the last.
func tipsSince(c *conn, repoID, seq int64) (tipNews, error) {
	news := tipNews{seq: seq}
	rows, err := all(c, scanTip, newerTips, repoID, seq)
	if err != nil {
		return news, err
	}
	for _, row := range rows {
		var changes []ledger.Change
		if row.flight < superseded {
			if changes, err = findChanges(c, row.commitID); err != nil {
				return news, err
			}
		}
		news.tips = append(news.tips, newIndexedTip(row, changes))
		news.seq = row.seq
	}
	return news, nil
}

func decodeChanges(text []byte) (changes []ledger.Change, err error) {
	if text != nil {
		err = json.Unmarshal(text, &changes)
	}
	return changes, err
}
