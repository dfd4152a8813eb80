package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// channel is the channel of notifications that a process has written.
	channel = "ledgerd"
	// pollInterval is how often Watch looks for writes of others, if no notification comes.
	pollInterval = time.Second
)

// hints notifies other processes of commits. A notification is only a hint: one that is lost costs
// others up to a second. They are not part of the transactions that they are about, because the
// server commits transactions with notifications one after the other.
type hints struct {
	hosts   *hosts
	news    chan struct{} // has a value if there was a commit since the last notification
	stop    context.CancelFunc
	running sync.WaitGroup
}

func startHints(hosts *hosts) *hints {
	ctx, stop := context.WithCancel(context.Background())
	h := &hints{hosts: hosts, news: make(chan struct{}, 1), stop: stop}
	h.running.Go(func() { h.run(ctx) })
	return h
}

// give notifies others soon. It does not wait.
func (h *hints) give() {
	select {
	case h.news <- struct{}{}:
	default:
	}
}

func (h *hints) close() {
	h.stop()
	h.running.Wait()
}

func (h *hints) run(ctx context.Context) {
	var c *pgx.Conn
	defer func() { hangUp(c) }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.news:
		}
		if c == nil || c.IsClosed() {
			var err error
			if c, _, err = h.hosts.connect(ctx, nil); err != nil {
				pause(ctx, pollInterval)
				continue
			}
			_, _ = c.Exec(ctx, "SET synchronous_commit = off") // without it, notifications wait for the disk
		}
		_, _ = c.Exec(ctx, "NOTIFY "+channel) // if it fails, others poll
	}
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
