package network

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
)

// Each round trip through a slow network takes at least its delay.
func TestSlowNetworkDelaysEachRoundTrip(t *testing.T) {
	const delay = 3 * time.Millisecond
	cluster := pgtest.Start(t, pgtest.Fast()...)
	slow := must.Get(NewSlow(cluster.AdminURL(), delay))(t)
	defer slow.Close()
	database := must.Get(Behind(cluster.AdminURL(), slow.Address()))(t)

	took := must.Get(RoundTrips(t.Context(), database))(t)
	if len(took) != trips || took[0] < delay {
		t.Errorf("%d round trips, the shortest of %v, want %d of at least %v", len(took), took[0], trips, delay)
	}
}

// A pause ends when it is due, not before.
func TestPauseUntil(t *testing.T) {
	for _, pause := range []time.Duration{-time.Hour, 0, 100 * time.Microsecond, 2 * time.Millisecond} {
		start := time.Now()
		pauseUntil(start.Add(pause))
		if took := time.Since(start); took < pause || pause <= 0 && took > time.Minute {
			t.Errorf("a pause of %v took %v", pause, took)
		}
	}
}
