package live

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// A journal is a ledger with the org acme and its repo api, and its feeds.
type journal struct {
	*store.Store
	feeds *Feeds
}

func newJournal(t testing.TB) journal {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.NewFile(t), store.Options{})
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, s.Close()) })
	storetest.CreateAcme(t, s)
	return journal{s, NewFeeds(s, slog.New(slog.DiscardHandler))}
}

// changePolicy adds events.
func (j journal) changePolicy(t testing.TB, n int) {
	t.Helper()
	contract, err := policy.Parse(fmt.Appendf(nil, `{"requirements":[{"state":"ATTESTED","predicate":"test:%d"}]}`, n))
	must.OK(t, err)
	_, err = j.SetPolicy(t.Context(), "acme", "api", contract, 0, "")
	must.OK(t, err)
}

// join adds n streams to a feed that do not read.
func (j journal) join(t testing.TB, n int64) *feed {
	t.Helper()
	f, _, err := j.feeds.acquire(t.Context(), "acme")
	must.OK(t, err)
	f.streams.Add(n - 1)
	return f
}

// leave ends n streams of a feed.
func (j journal) leave(f *feed, n int64) {
	f.streams.Add(1 - n)
	j.feeds.release(f)
}

// grown returns the channel by which the streams of a portion are woken.
func grown(t testing.TB, f *feed, portion int) <-chan struct{} {
	t.Helper()
	f.mu.Lock()
	next := f.next
	f.mu.Unlock()
	_, grown, _ := f.from(next, portion)
	if grown == nil {
		t.Fatalf("event %d is already there", next)
	}
	return grown
}

// The more streams an org has, the less often its feed reads new events.
func TestFeedReadsLessOftenForMoreStreams(t *testing.T) {
	for streams, want := range map[int64]time.Duration{
		1: minFeedInterval, 200: minFeedInterval, 201: 20100 * time.Microsecond, 1000: 100 * time.Millisecond,
		5000: 500 * time.Millisecond, 20_000: maxFeedInterval, 1_000_000: maxFeedInterval,
	} {
		f := &feed{}
		f.streams.Store(streams)
		if got := f.interval(); got != want {
			t.Errorf("%d streams: interval of %v, want %v", streams, got, want)
		}
	}

	synctest.Test(t, func(t *testing.T) {
		j := newJournal(t)
		f := j.join(t, 20_000)
		defer j.leave(f, 20_000)
		const n = 30
		start := time.Now()
		for i := range n {
			j.changePolicy(t, i)
			time.Sleep(maxFeedInterval / 4)
		}
		time.Sleep(2 * maxFeedInterval)

		all, err := f.Next(t.Context())
		must.OK(t, err)
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.next != all {
			t.Errorf("the feed has events up to %d, want %d", f.next, all)
		}
		// The first interval may be the one of a single stream.
		if most := 1 + int(time.Since(start)/maxFeedInterval); len(f.chunks) > most {
			t.Errorf("%d batches in %v, want at most %d", len(f.chunks), time.Since(start), most)
		}
	})
}

// The last stream of a feed does not wait for the portions that the feed has yet to wake.
func TestFeedStopsWhileItWakesPortions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(t)
		f := j.join(t, 50_000)
		time.Sleep(time.Second)
		first, last := grown(t, f, 0), grown(t, f, portions-1)
		j.changePolicy(t, 0)
		<-first

		start := time.Now()
		j.leave(f, 50_000)
		if took := time.Since(start); took > 0 {
			t.Errorf("the feed stopped after %v", took)
		}
		select {
		case <-last:
			t.Error("the last portion was woken")
		default:
		}
		if n := j.feeds.Len(); n != 0 {
			t.Errorf("%d feeds are open", n)
		}
	})
}

// The streams of an org are woken together if they are few. If they are many, they are
// woken in portions, over most of the time until the feed reads again.
func TestManyStreamsAreWokenInPortions(t *testing.T) {
	for streams, want := range map[int64]map[int]time.Duration{
		3:      {0: 0, 64: 0, portions - 1: 0},
		1000:   {0: 0, 64: 0, portions - 1: 0},
		5000:   {0: 0, 64: 200 * time.Millisecond, portions - 1: 396875 * time.Microsecond},
		50_000: {0: 0, 64: 950 * time.Millisecond, portions - 1: 1885156250 * time.Nanosecond},
	} {
		t.Run(fmt.Sprint(streams), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal(t)
				f := j.join(t, streams)
				defer j.leave(f, streams)
				time.Sleep(time.Second) // the feed has just read

				woken := make(map[int]<-chan struct{})
				for portion := range want {
					woken[portion] = grown(t, f, portion)
				}
				start := time.Now()
				j.changePolicy(t, 0)
				for _, portion := range []int{0, 64, portions - 1} {
					<-woken[portion]
					if took := time.Since(start); took != want[portion] {
						t.Errorf("portion %d was woken after %v, want %v", portion, took, want[portion])
					}
				}
			})
		})
	}
}

// The streams of a feed are spread over its portions.
func TestStreamsAreSpreadOverPortions(t *testing.T) {
	j := newJournal(t)
	streams := make(map[int]int)
	for range 2 * portions {
		f, portion, err := j.feeds.acquire(t.Context(), "acme")
		must.OK(t, err)
		defer j.feeds.release(f)
		streams[portion]++
	}
	for portion := range portions {
		if streams[portion] != 2 {
			t.Errorf("portion %d has %d streams, want 2", portion, streams[portion])
		}
	}
}

// A chunk has the events after one that was pruned.
func TestChunkWithAPrunedEvent(t *testing.T) {
	c := must.Get(newChunk([]store.Event{{Type: ledger.EventKey}, {Seq: 1, Type: ledger.EventKey, Body: []byte(`{}`)}}))(t)
	if c.first != 0 || c.next != 2 || len(c.frames) != 1 || c.frames[0].seq != 1 {
		t.Errorf("%+v", c)
	}
}

// A feed caches the latest chunks up to its memory, and at least one.
func TestFeedMemory(t *testing.T) {
	chunkOf := func(seq int64, size int) *chunk {
		text := make([]byte, size)
		return &chunk{first: seq, next: seq + 1, frames: []frame{{text: text}}, unfiltered: wire.NewBlock(text)}
	}

	f := &feed{memory: 5 * 200}
	for i := range int64(100) {
		f.add(chunkOf(i, 100))
		if want := min(int(i)+1, 5); len(f.chunks) != want || f.size != want*200 {
			t.Fatalf("%d chunks after %d events, %d bytes, want %d chunks", len(f.chunks), i+1, f.size, want)
		}
	}

	if _, _, evicted := f.from(94, 0); !evicted {
		t.Error("event 94 is cached")
	}
	if chunks, _, evicted := f.from(95, 0); evicted || len(chunks) != 5 {
		t.Errorf("%d chunks from event 95, evicted: %v", len(chunks), evicted)
	}
	f.add(chunkOf(100, 1000))
	if len(f.chunks) != 1 || f.next != 101 {
		t.Errorf("%d chunks up to %d, want one that is larger than the memory", len(f.chunks), f.next)
	}
}

// A feed evicts no events before it has woken the streams for them, however many are
// recorded at the same time.
func TestFeedEvictsNothingNew(t *testing.T) {
	j := newJournal(t)
	var wg sync.WaitGroup
	const writers, each = 8, (feedBatch + 60) / 2 / 8
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				j.changePolicy(t, w*each+i)
			}
		})
	}
	wg.Wait()
	tail, err := j.Tail(t.Context(), "acme")
	must.OK(t, err)

	f := &feed{Tail: tail, memory: 10 << 10}
	rounds, more := 0, true
	for ; more; rounds++ {
		next := f.next
		more, err = f.catchUp(t.Context())
		must.OK(t, err)
		if _, _, evicted := f.from(next, 0); evicted {
			t.Fatalf("round %d: event %d was evicted", rounds, next)
		}
	}
	if last, err := tail.Next(t.Context()); err != nil || f.next != last || rounds < 3 {
		t.Errorf("read up to %d in %d rounds, want %d in at least 3: %v", f.next, rounds, last, err)
	}
}
