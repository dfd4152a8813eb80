package network

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// trips is how many round trips RoundTrips measures.
const trips = 300

// RoundTrips returns how long round trips to a database take while nothing else is sent, sorted.
func RoundTrips(ctx context.Context, database string) (took []time.Duration, err error) {
	conn, err := pgconn.Connect(ctx, database)
	if err != nil {
		return nil, fmt.Errorf("measure round trips: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	for range trips {
		start := time.Now()
		if err := conn.Ping(ctx); err != nil {
			return nil, fmt.Errorf("measure round trips: %w", err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took, nil
}
