package service

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/ledgerd/ledgerd/store"
)

// notify sends a state to systemd (sd_notify), if it started the server with Type=notify.
func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd is not notified", "state", state, "error", err)
	}
}

// watchdogInterval returns how often systemd must be notified, or zero if it needs not be
// (WatchdogSec=).
func watchdogInterval(log *slog.Logger) time.Duration {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("systemd's watchdog is not served", "error", err)
		return 0
	}
	return limit / 3
}

// feedWatchdog notifies systemd while the database can be read, until ctx is done. If a read hangs,
// systemd restarts the server.
func feedWatchdog(ctx context.Context, db *store.Store, interval time.Duration, log *slog.Logger) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		if _, err := db.Orgs(ctx, store.Query{Limit: 1}); err == nil {
			notify(log, daemon.SdNotifyWatchdog)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}
