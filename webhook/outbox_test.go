package webhook_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/ledgerd/ledgerd/ledger"
)

var _ standardwebhooks.Webhook
var _ = cmp.Compare[int]
var _ = fmt.Sprint
var _ = slices.Contains[[]int]
var _ sync.Mutex

type outbox struct{}

func newOutbox(t testing.TB) *outbox                                { return &outbox{} }
func (o *outbox) Queued() <-chan struct{}                           { return nil }
func (o *outbox) TakeQueued() []string                              { return nil }
func (o *outbox) DueWebhooks(ctx context.Context) ([]string, error) { return nil, nil }
func (o *outbox) Claim(ctx context.Context, id string, limit int, lease time.Duration) (ledger.Endpoint, []ledger.DueDelivery, error) {
	return ledger.Endpoint{}, nil, nil
}
func (o *outbox) Settle(ctx context.Context, outcomes []ledger.Outcome, disableAfter time.Duration) error {
	return nil
}
func (o *outbox) Release(ctx context.Context, id string, deliveries []string) error { return nil }
func (o *outbox) Now() ledger.Time                                                  { return ledger.TimeOf(time.Now()) }
