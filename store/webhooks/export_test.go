package webhooks

import (
	"context"
	"database/sql"

	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// Queries returns the queries for deliveries, by what they do.
func Queries() map[string]string {
	return map[string]string{
		"claim": claim, "due webhooks": dueWebhooks, "ended": endedDeliveries, "of a deleted webhook": allDeliveries,
		"redeliver": redeliver, "failed attempt": settleFailure, "replay": replayEvents,
	}
}

// BodiesOf returns the claimed deliveries dlv_1 of an event, and dlv_2 of a ping, with their bodies.
func (ob *Outbox) BodiesOf(ctx context.Context, event int64, ping string) ([]outbound.DueDelivery, error) {
	return ob.bodies(ctx, []claimedRow{
		{due: outbound.DueDelivery{ID: "dlv_1"}, event: sql.NullInt64{Int64: event, Valid: true}},
		{due: outbound.DueDelivery{ID: "dlv_2"}, ping: sql.NullString{String: ping, Valid: true}},
	})
}
