package await

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ledgerd/ledgerd/cmd/internal/connect"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/ledger"
)

// A Wait says for which state to wait and how long. For people, it writes what it waits for
// to Log, and errors as Describe has them.
type Wait struct {
	State    ledger.State
	For      time.Duration
	Log      io.Writer
	Describe func(error) string
}

// Until looks until the state is reached or the wait is over, and returns the last result.
// Temporary errors, such as an unreachable server, are retried. present describes a result.
func Until[T any](
	ctx context.Context, w Wait, look func(context.Context) (v T, reached bool, err error), present func(T) string,
) (T, error) {
	reported := ""
	waiting := func(v T, err error) {
		if err != nil {
			fmt.Fprintf(w.Log, "retrying: %s\n", w.Describe(err))
			return
		}
		if now := present(v); now != reported {
			reported = now
			fmt.Fprintf(w.Log, "%s, waiting for %s\n", now, w.State)
		}
	}
	poll := Poll[T]{First: time.Second, Last: 5 * time.Second, For: w.For, Look: look, Waiting: waiting}
	return poll.Run(ctx)
}

// UntilArtifact waits until all commits that an artifact was built from have reached the state.
// The query has one digest.
func UntilArtifact(
	ctx context.Context, c *connect.Connection, w Wait, org string, query ledger.ArtifactQuery,
) (ledger.Artifact, error) {
	look := func(ctx context.Context) (a ledger.Artifact, reached bool, err error) {
		if err := c.Settle(ctx); err != nil {
			return a, false, err
		}
		list, err := c.Artifacts(ctx, org, query)
		if err != nil {
			return a, false, err
		}
		if len(list) != 1 {
			return a, false, fmt.Errorf("the server returned %d artifacts for one digest", len(list))
		}
		return list[0], list[0].Reached(w.State), nil
	}
	return Until(ctx, w, look, func(a ledger.Artifact) string { return a.Digest + " is " + display.ArtifactState(a) })
}
