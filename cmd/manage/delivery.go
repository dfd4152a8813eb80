package manage

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/await"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// attemptWait is how long ping and redeliver wait for the outcome by default: a bit
// longer than the default timeout of an attempt.
const attemptWait = 20 * time.Second

const attemptStatuses = `
EXIT STATUS
  0  delivered, or queued with --wait 0s
  1  error (server unreachable or request refused)
  2  usage error
  4  the attempt failed; it is retried on schedule
  5  no outcome within --wait; the delivery stays queued`

func waitFlag(command *cobra.Command, wait *time.Duration) {
	*wait = attemptWait
	command.Flags().Var(flagvalue.Duration(wait), "wait", "how long to wait for the outcome; 0s: do not wait")
}

func newWebhookPing(p *cli.Program) *cobra.Command {
	var wait time.Duration
	command := p.Takes(&cobra.Command{
		Use:   "ping",
		Short: "Send a ping to a webhook and show the outcome",
		Long: `Queues a ping event, which is sent, signed and retried like any other, and waits
for the outcome of the next attempt. A ping does not appear in the history or the
live stream.
` + attemptStatuses,
		Example: "  ledgerd webhook ping acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y",
		RunE: func(command *cobra.Command, args []string) error {
			return deliver(p, command, args, wait,
				func(ctx context.Context, c *cli.Connection, name cli.RepoName, id string) (outbound.Delivery, error) {
					return c.PingWebhook(ctx, name.Org, name.Repo, id)
				})
		},
	}, cli.RepoArg, "WEBHOOK")
	waitFlag(command, &wait)
	return command
}

func newWebhookRedeliver(p *cli.Program) *cobra.Command {
	var wait time.Duration
	command := p.Takes(&cobra.Command{
		Use:   "redeliver",
		Short: "Send a delivery again and show the outcome",
		Long: `Queues a delivery again, whether it succeeded or failed, and waits for the
outcome of the next attempt. The body and the IDs are the same; the timestamp and
the signature are new.
` + attemptStatuses,
		Example: "  ledgerd webhook redeliver acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y dlv_01JD3X1B7N5C8K2M4P6R9T0V3W",
		RunE: func(command *cobra.Command, args []string) error {
			return deliver(p, command, args, wait,
				func(ctx context.Context, c *cli.Connection, name cli.RepoName, id string) (outbound.Delivery, error) {
					return c.Redeliver(ctx, name.Org, name.Repo, id, p.RestArgs(command, args)[1])
				})
		},
	}, cli.RepoArg, "WEBHOOK", "DELIVERY")
	waitFlag(command, &wait)
	return command
}

// deliver queues a delivery and waits for the outcome of its next attempt.
func deliver(
	p *cli.Program, command *cobra.Command, args []string, wait time.Duration,
	queue func(context.Context, *cli.Connection, cli.RepoName, string) (outbound.Delivery, error),
) error {

	ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command.SetContext(ctx)

	return p.OnWebhook(func(ctx context.Context, c *cli.Connection, name cli.RepoName, id string) error {
		d, err := queue(ctx, c, name, id)
		if err != nil {
			return err
		}
		if wait == 0 {
			return p.Confirm(d, func() { terminal.Printf(p.Stdout, "Queued %s\n", d.ID) })
		}

		record, err := awaitAttempt(ctx, c, name, d, wait)
		if err != nil {
			return err
		}
		if record.Attempts <= d.Attempts {
			return noOutcome(p, c, record, wait)
		}
		return attemptResult(p, record)
	})(command, args)
}

// attemptResult prints the outcome of a delivery's last attempt. If it failed, it
// returns an error with the matching exit status.
func attemptResult(p *cli.Program, record outbound.DeliveryRecord) error {
	err := p.Print(record, func() { display.LastAttempt(p.Stdout, record, time.Now()) })
	if err == nil && record.History[len(record.History)-1].Error != "" {
		return &cli.ExitError{Status: cli.ExitNotReached}
	}
	return err
}

// awaitAttempt polls a delivery until it has had another attempt or the wait is
// over, and returns the last result. Temporary errors are retried.
func awaitAttempt(
	ctx context.Context, c *cli.Connection, name cli.RepoName, d outbound.Delivery, wait time.Duration,
) (outbound.DeliveryRecord, error) {
	look := func(ctx context.Context) (outbound.DeliveryRecord, bool, error) {
		record, err := c.Delivery(ctx, name.Org, name.Repo, d.Webhook, d.ID)
		return record, record.Attempts > d.Attempts, err
	}
	return await.Poll[outbound.DeliveryRecord]{
		First: 10 * time.Millisecond, Last: time.Second, For: wait, Look: look}.Run(ctx)
}

// noOutcome prints that a delivery is still pending, and returns an error with the
// matching exit status.
func noOutcome(p *cli.Program, c *cli.Connection, record outbound.DeliveryRecord, wait time.Duration) error {
	err := p.Print(record, func() { terminal.Printf(p.Stdout, "%s is still pending\n", record.ID) })
	if err != nil {
		return err
	}
	err = fmt.Errorf("no outcome of %s within %v: the attempt may still be running, or other deliveries may be ahead "+
		"of it", record.ID, wait)
	if c.Local != nil {
		err = fmt.Errorf("%w; only 'ledgerd serve' sends webhooks: is it running on this database?", err)
	}
	return &cli.ExitError{Status: cli.ExitGaveUp, Err: err}
}

func newWebhookReplay(p *cli.Program) *cobra.Command {
	var since ledger.Time
	command := p.Takes(&cobra.Command{
		Use:   "replay",
		Short: "Send missed events to a webhook",
		Long: `Queues the events since --since that the webhook missed because it failed or was
inactive. Events that it has acknowledged, or that are already pending, are not
queued again.`,
		Example: `  ledgerd webhook replay acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --since 5d
  ledgerd webhook replay acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --since 2026-11-20`,
		RunE: p.OnWebhook(func(ctx context.Context, c *cli.Connection, name cli.RepoName, id string) error {
			replayed, err := c.ReplayWebhook(ctx, name.Org, name.Repo, id, since)
			if err != nil {
				return err
			}

			return p.Confirm(replayed, func() {
				count := terminal.Plural(replayed.Queued, "missed event")
				if replayed.Queued == 0 {
					count = "no events"
				}
				terminal.Printf(p.Stdout, "Queued %s since %s for %s\n", count, since, terminal.Printable(id))
			})
		}),
	}, cli.RepoArg, "WEBHOOK")

	command.Flags().Var(flagvalue.Past(&since), "since",
		"start: how long ago, e.g. 5d or 12h, or a date or date-time")
	flagvalue.Require(command, "since")

	return command
}

func newWebhookDeliveries(p *cli.Program) *cobra.Command {
	var filter client.DeliveryFilter
	var limit int
	command := p.Takes(&cobra.Command{
		Use:   "deliveries",
		Short: "List the deliveries of a webhook, or show one",
		Long: `Lists the deliveries of a webhook, newest first. With DELIVERY, shows the body of
this delivery, and the request and response of each attempt.`,
		Example: `  ledgerd webhook deliveries acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --status failed --limit 20
  ledgerd webhook deliveries acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y dlv_01JD3X1B7N5C8K2M4P6R9T0V3W`,
		RunE: func(command *cobra.Command, args []string) error {
			return p.OnWebhook(func(ctx context.Context, c *cli.Connection, name cli.RepoName, id string) error {
				if len(p.RestArgs(command, args)) > 1 {
					return cli.Shown(p, display.Delivery)(c.Delivery(ctx, name.Org, name.Repo, id, p.RestArgs(command, args)[1]))
				}

				columns := []string{"ID", "CREATED", "EVENT", "TYPE", "STATUS", "ATTEMPTS", "LAST"}
				return cli.PrintList(p, c.Deliveries(ctx, name.Org, name.Repo, id, filter), limit, columns,
					func(d outbound.Delivery) []any {
						return []any{d.ID, d.CreatedAt, d.Event, d.Type, d.Status, d.Attempts, display.LastOutcome(d)}
					})
			})(command, args)
		},
	}, cli.RepoArg, "WEBHOOK", "[DELIVERY]")

	flags := command.Flags()
	flags.Var(&flagvalue.Parsed[outbound.DeliveryStatus]{Value: &filter.Status, Kind: "STATUS",
		Parse: outbound.ParseDeliveryStatus}, "status", "only those with this status: pending, succeeded or failed")
	flagvalue.Complete(command, "status", string(outbound.DeliveryPending), string(outbound.DeliverySucceeded),
		string(outbound.DeliveryFailed))
	flags.StringVar(&filter.Event, "event", "", "only deliveries of the event with this `ID`")
	cli.LimitFlag(command, &limit)

	return command
}
