package cmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
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
	command.Flags().DurationVar(wait, "wait", attemptWait, "how long to wait for the outcome; 0s: do not wait")
}

func newWebhookPing(p *program) *cobra.Command {
	var wait time.Duration
	command := &cobra.Command{
		Use:   "ping ORG/REPO WEBHOOK",
		Short: "Send a ping to a webhook and show the outcome",
		Long: `Queues a ping event, which is sent, signed and retried like any other, and waits
for the outcome of the next attempt. A ping does not appear in the history or the
live stream.
` + attemptStatuses,
		Example: "  ledgerd webhook ping acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y",
		Args:    takes("ORG/REPO", "WEBHOOK"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.deliver(command, args, wait,
				func(ctx context.Context, c *connection, name repoName, id string) (ledger.Delivery, error) {
					return c.PingWebhook(ctx, name.org, name.repo, id)
				})
		},
	}
	waitFlag(command, &wait)
	return command
}

func newWebhookRedeliver(p *program) *cobra.Command {
	var wait time.Duration
	command := &cobra.Command{
		Use:   "redeliver ORG/REPO WEBHOOK DELIVERY",
		Short: "Send a delivery again and show the outcome",
		Long: `Queues a delivery again, whether it succeeded or failed, and waits for the
outcome of the next attempt. The body and the IDs are the same; the timestamp and
the signature are new.
` + attemptStatuses,
		Example: "  ledgerd webhook redeliver acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y dlv_01JD3X1B7N5C8K2M4P6R9T0V3W",
		Args:    takes("ORG/REPO", "WEBHOOK", "DELIVERY"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.deliver(command, args, wait,
				func(ctx context.Context, c *connection, name repoName, id string) (ledger.Delivery, error) {
					return c.Redeliver(ctx, name.org, name.repo, id, args[2])
				})
		},
	}
	waitFlag(command, &wait)
	return command
}

// deliver queues a delivery and waits for the outcome of its next attempt.
func (p *program) deliver(
	command *cobra.Command, args []string, wait time.Duration,
	queue func(context.Context, *connection, repoName, string) (ledger.Delivery, error),
) error {
	if wait < 0 {
		return usagef("invalid --wait %v: use 0s or more", wait)
	}

	ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command.SetContext(ctx)

	return p.withWebhook(command, args, func(ctx context.Context, c *connection, name repoName, id string) error {
		d, err := queue(ctx, c, name, id)
		if err != nil {
			return err
		}
		if wait == 0 {
			return p.print(d, func() { fmt.Fprintf(p.stdout, "Queued %s\n", d.ID) })
		}

		record, err := awaitAttempt(ctx, c, name, d, wait)
		if err != nil {
			return err
		}
		if record.Attempts <= d.Attempts {
			return p.noOutcome(c, record, wait)
		}
		return p.attemptResult(record)
	})
}

// awaitAttempt polls a delivery until it has had another attempt or the wait is
// over, and returns the last result. Temporary errors are retried.
func awaitAttempt(
	ctx context.Context, c *connection, name repoName, d ledger.Delivery, wait time.Duration,
) (ledger.DeliveryRecord, error) {
	deadline := time.Now().Add(wait)
	for interval := 10 * time.Millisecond; ; interval = min(interval*3/2, time.Second) {
		record, err := c.Delivery(ctx, name.org, name.repo, d.Webhook, d.ID)
		remaining := time.Until(deadline)
		if remaining <= 0 || err == nil && record.Attempts > d.Attempts || err != nil && !temporary(err) {
			return record, err
		}
		select {
		case <-time.After(min(interval, remaining)):
		case <-ctx.Done():
			return record, errors.New("interrupted while waiting")
		}
	}
}

// noOutcome prints that a delivery is still pending, and returns an error with the
// matching exit status.
func (p *program) noOutcome(c *connection, record ledger.DeliveryRecord, wait time.Duration) error {
	err := p.print(record, func() { fmt.Fprintf(p.stdout, "%s is still pending\n", record.ID) })
	if err != nil {
		return err
	}
	err = fmt.Errorf("no outcome of %s within %v: the attempt may still be running, or other deliveries may be ahead "+
		"of it", record.ID, wait)
	if c.local != nil {
		err = fmt.Errorf("%w; only 'ledgerd serve' sends webhooks: is it running on this database?", err)
	}
	return &exitError{exitGaveUp, err}
}

// attemptResult prints the outcome of a delivery's last attempt. If it failed, it
// returns an error with the matching exit status.
func (p *program) attemptResult(record ledger.DeliveryRecord) error {
	last := record.History[len(record.History)-1]
	err := p.print(record, func() {
		if last.Error == "" {
			fmt.Fprintf(p.stdout, "Delivered %s in %d ms: %s\n", record.ID, last.DurationMS, statusText(last.Response.Status))
		} else {
			fmt.Fprintf(p.stdout, "%s failed: %s\n", record.ID, terminal.Clean(last.Error))
		}
		p.showText("  ", last.Response.Body)
		if record.NextAttemptAt != 0 {
			fmt.Fprintf(p.stdout, "next retry %s\n", nextRetry(record.NextAttemptAt, time.Now()))
		}
	})
	if err == nil && last.Error != "" {
		return &exitError{status: exitNotReached}
	}
	return err
}

// nextRetry returns when a retry is due, such as "in 5s (2026-11-20T09:00:05.000Z)".
func nextRetry(at ledger.Time, now time.Time) string {
	wait := at.Std().Sub(now).Round(time.Second)
	if wait <= 0 {
		return fmt.Sprintf("now (%s)", at)
	}
	return fmt.Sprintf("in %s (%s)", ledger.Duration(wait), at)
}

// statusText returns an HTTP status as text, such as "204 No Content".
func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

// showText prints untrusted text with each line indented.
func (p *program) showText(indent, text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		fmt.Fprintf(p.stdout, "%s%s\n", indent, terminal.Printable(strings.TrimRight(line, "\r\n")))
	}
}

func newWebhookReplay(p *program) *cobra.Command {
	var since ledger.Time
	command := &cobra.Command{
		Use:   "replay ORG/REPO WEBHOOK",
		Short: "Send missed events to a webhook",
		Long: `Queues the events since --since that the webhook missed because it failed or was
inactive. Events that it has acknowledged, or that are already pending, are not
queued again.`,
		Example: `  ledgerd webhook replay acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --since 5d
  ledgerd webhook replay acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --since 2026-11-20`,
		Args: takes("ORG/REPO", "WEBHOOK"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withWebhook(command, args, func(ctx context.Context, c *connection, name repoName, id string) error {
				replayed, err := c.ReplayWebhook(ctx, name.org, name.repo, id, since)
				if err != nil {
					return err
				}

				return p.print(replayed, func() {
					count := terminal.Plural(replayed.Queued, "missed event")
					if replayed.Queued == 0 {
						count = "no events"
					}
					fmt.Fprintf(p.stdout, "Queued %s since %s for %s\n", count, since, terminal.Printable(id))
				})
			})
		},
	}

	command.Flags().Var(flagvalue.Past(&since), "since",
		"start: how long ago, e.g. 5d or 12h, or a date or date-time")
	flagvalue.Require(command, "since")

	return command
}

func newWebhookDeliveries(p *program) *cobra.Command {
	var filter client.DeliveryFilter
	var limit int
	command := &cobra.Command{
		Use:   "deliveries ORG/REPO WEBHOOK [DELIVERY]",
		Short: "List the deliveries of a webhook, or show one",
		Long: `Lists the deliveries of a webhook, newest first. With DELIVERY, shows the body of
this delivery, and the request and response of each attempt.`,
		Example: `  ledgerd webhook deliveries acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --status failed --limit 20
  ledgerd webhook deliveries acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y dlv_01JD3X1B7N5C8K2M4P6R9T0V3W`,
		Args: takes("ORG/REPO", "WEBHOOK", "[DELIVERY]"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withWebhook(command, args, func(ctx context.Context, c *connection, name repoName, id string) error {
				if len(args) > 2 {
					record, err := c.Delivery(ctx, name.org, name.repo, id, args[2])
					if err != nil {
						return err
					}
					return p.print(record, func() { p.showDelivery(record) })
				}

				columns := []string{"ID", "CREATED", "EVENT", "TYPE", "STATUS", "ATTEMPTS", "LAST"}
				return printList(p, c.Deliveries(ctx, name.org, name.repo, id, filter), limit, columns,
					func(d ledger.Delivery) []any {
						return []any{d.ID, d.CreatedAt, d.Event, d.Type, d.Status, d.Attempts, terminal.Clip(lastOutcome(d), 60)}
					})
			})
		},
	}

	flags := command.Flags()
	flags.Var(&flagvalue.Parsed[ledger.DeliveryStatus]{Value: &filter.Status, Kind: "STATUS",
		Parse: ledger.ParseDeliveryStatus}, "status", "only those with this status: pending, succeeded or failed")
	flagvalue.Complete(command, "status", string(ledger.DeliveryPending), string(ledger.DeliverySucceeded),
		string(ledger.DeliveryFailed))
	flags.StringVar(&filter.Event, "event", "", "only deliveries of the event with this `ID`")
	limitFlag(command, &limit)

	return command
}

// lastOutcome returns the outcome of the last attempt, in a few words.
func lastOutcome(d ledger.Delivery) string {
	switch {
	case d.LastError != "":
		return d.LastError
	case d.LastStatus != 0:
		return statusText(d.LastStatus)
	}
	return "-"
}

func (p *program) showDelivery(d ledger.DeliveryRecord) {
	t := terminal.NewTable(p.stdout)
	t.Row("id", d.ID)
	t.Row("event", d.Event)
	t.Row("type", d.Type)
	t.Row("created", d.CreatedAt)
	t.Row("status", d.Status)
	if d.NextAttemptAt != 0 {
		t.Row("next attempt", d.NextAttemptAt)
	}
	t.Flush()
	fmt.Fprintf(p.stdout, "\n%s\n", terminal.Printable(string(d.Body)))
	for _, a := range d.History {
		p.showAttempt(a)
	}
}

func (p *program) showAttempt(a ledger.Attempt) {
	outcome := "delivered"
	if a.Error != "" {
		outcome = terminal.Clean(a.Error)
	}
	fmt.Fprintf(p.stdout, "\nattempt %d at %s, %d ms: %s\n", a.Number, a.At, a.DurationMS, outcome)
	fmt.Fprintf(p.stdout, "  POST %s\n", terminal.Clean(a.Request.URL))
	p.showHeaders(a.Request.Headers)
	if a.Response.Status == 0 {
		return
	}
	fmt.Fprintf(p.stdout, "  response %s\n", statusText(a.Response.Status))
	p.showHeaders(a.Response.Headers)
	p.showText("    | ", a.Response.Body)
	if a.Response.Truncated {
		fmt.Fprintln(p.stdout, "    (truncated)")
	}
}

func (p *program) showHeaders(headers map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			fmt.Fprintf(p.stdout, "    %s: %s\n", terminal.Clean(name), terminal.Clean(value))
		}
	}
}
