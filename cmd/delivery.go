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

// attemptWait is how long ping and redeliver wait for the outcome: as long as a
// receiver may take, and some more.
const attemptWait = 20 * time.Second

const attemptStatuses = `
EXIT STATUS
  0  delivered, or with --wait 0s queued
  1  could not tell: no answer, or a refusal
  2  wrong usage
  4  the attempt failed; it is tried again by the schedule
  5  no outcome when the --wait was over; it is sent nevertheless`

func waitFlag(command *cobra.Command, wait *time.Duration) {
	command.Flags().DurationVar(wait, "wait", attemptWait, "how long to wait for the outcome; 0s does not wait")
}

func newWebhookPing(p *program) *cobra.Command {
	var wait time.Duration
	command := &cobra.Command{
		Use:   "ping ORG/REPO WEBHOOK",
		Short: "Send a webhook a ping and tell what came of it",
		Long: `Queues an event of the type ping, which is sent, signed and tried again as any
other, and waits for the outcome of the next attempt. The log and the stream do
not know of it.
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
		Short: "Send a delivery once more and tell what came of it",
		Long: `Queues a delivery again, whatever came of it before, and waits for the outcome of
the next attempt. The same bytes are sent under the same ids, with a fresh time
and signature.
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
		return usagef("--wait %v is no time", wait)
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
			return p.print(d, func() { fmt.Fprintf(p.stdout, "queued %s\n", d.ID) })
		}
		record, err := awaitAttempt(ctx, c, name, d, wait)
		if err != nil {
			return err
		}
		if record.Attempts <= d.Attempts {
			return p.noOutcome(c, record, wait)
		}
		return p.attemptAnswer(record)
	})
}

// awaitAttempt asks for a delivery until there was an attempt more, or the wait
// is over, and returns the last answer. Trouble on the way is waited out.
func awaitAttempt(
	ctx context.Context, c *connection, name repoName, d ledger.Delivery, wait time.Duration,
) (ledger.DeliveryRecord, error) {
	deadline := time.Now().Add(wait)
	for pause := 10 * time.Millisecond; ; pause = min(pause*3/2, time.Second) {
		record, err := c.Delivery(ctx, name.org, name.repo, d.Webhook, d.ID)
		left := time.Until(deadline)
		if left <= 0 || err == nil && record.Attempts > d.Attempts || err != nil && !passing(err) {
			return record, err
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return record, errors.New("interrupted while waiting")
		}
	}
}

// noOutcome tells that a delivery is still to be sent, or under way, and
// returns the exit status that says it again.
func (p *program) noOutcome(c *connection, record ledger.DeliveryRecord, wait time.Duration) error {
	err := p.print(record, func() { fmt.Fprintf(p.stdout, "%s is still to be delivered\n", record.ID) })
	if err != nil {
		return err
	}
	err = fmt.Errorf("%s had no outcome within %v: it may be under way, or wait behind others while the receiver "+
		"fails or is slow", record.ID, wait)
	if c.local != nil {
		err = fmt.Errorf("%w; webhooks are sent by 'ledgerd serve', which has to run on this database", err)
	}
	return &exitError{exitGaveUp, err}
}

// attemptAnswer prints what came of a delivery's last attempt and returns the
// exit status that says it again.
func (p *program) attemptAnswer(record ledger.DeliveryRecord) error {
	last := record.History[len(record.History)-1]
	err := p.print(record, func() {
		if last.Error == "" {
			fmt.Fprintf(p.stdout, "delivered %s in %d ms: %s\n", record.ID, last.DurationMS, statusText(last.Response.Status))
		} else {
			fmt.Fprintf(p.stdout, "%s was not delivered: %s\n", record.ID, terminal.Clean(last.Error))
		}
		p.showText("  ", last.Response.Body)
		if record.NextAttemptAt != 0 {
			fmt.Fprintf(p.stdout, "it is tried again at %s\n", record.NextAttemptAt)
		}
	})
	if err == nil && last.Error != "" {
		return &exitError{status: exitNotReached}
	}
	return err
}

func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

// showText prints text that others wrote, each line behind an indent.
func (p *program) showText(indent, text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		fmt.Fprintf(p.stdout, "%s%s\n", indent, terminal.Printable(strings.TrimRight(line, "\r\n")))
	}
}

func newWebhookReplay(p *program) *cobra.Command {
	var since ledger.Time
	command := &cobra.Command{
		Use:   "replay ORG/REPO WEBHOOK",
		Short: "Send a webhook the events that it has missed",
		Long: `Queues the events since a moment that the webhook has not acknowledged and that
do not wait for it already: those of a time in which it failed or was inactive.`,
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
					count := terminal.Plural(replayed.Queued, "event")
					if replayed.Queued == 0 {
						count = "no event"
					}
					fmt.Fprintf(p.stdout, "%s to send that %s had not got since %s\n", count, terminal.Printable(id), since)
				})
			})
		},
	}
	command.Flags().Var(&flagvalue.Parsed[ledger.Time]{Value: &since, Kind: "WHEN", Parse: parseAgo(time.Now())},
		"since", "from when on: so long ago as 5d or 12h, or at a date or date-time")
	require(command, "since")
	return command
}

// parseAgo returns what reads a moment in the past: a duration ago, or a date
// or date-time.
func parseAgo(now time.Time) func(string) (ledger.Time, error) {
	return func(s string) (ledger.Time, error) {
		if d, err := ledger.ParseDuration(s); err == nil {
			return ledger.TimeOf(now.Add(-d.Std())), nil
		}
		t, err := ledger.ParseSince(s)
		if err != nil {
			return 0, errors.New("use a duration such as 5d or 12h, a date or an RFC 3339 date-time")
		}
		return t, nil
	}
}

func newWebhookDeliveries(p *program) *cobra.Command {
	var filter client.DeliveryFilter
	var limit int
	command := &cobra.Command{
		Use:   "deliveries ORG/REPO WEBHOOK [DELIVERY]",
		Short: "List what was sent to a webhook, or show one delivery and its attempts",
		Long: `Lists the deliveries of a webhook, the newest first. With the id of one it shows
its body, and of every attempt the request and what the receiver answered.`,
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
						return []any{d.ID, d.CreatedAt, d.Event, d.Type, d.Status, d.Attempts, terminal.Clip(lastOf(d), 60)}
					})
			})
		},
	}
	flags := command.Flags()
	flags.Var(&flagvalue.Parsed[ledger.DeliveryStatus]{Value: &filter.Status, Kind: "STATUS",
		Parse: ledger.ParseDeliveryStatus}, "status", "only those that are pending, succeeded or failed")
	flagvalue.Complete(command, "status", string(ledger.DeliveryPending), string(ledger.DeliverySucceeded),
		string(ledger.DeliveryFailed))
	flags.StringVar(&filter.Event, "event", "", "only those of the event of this `ID`")
	limitFlag(command, &limit)
	return command
}

// lastOf tells what came of the last attempt, in a few words.
func lastOf(d ledger.Delivery) string {
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
	fmt.Fprintf(p.stdout, "  answer %s\n", statusText(a.Response.Status))
	p.showHeaders(a.Response.Headers)
	p.showText("    | ", a.Response.Body)
	if a.Response.Truncated {
		fmt.Fprintln(p.stdout, "    (the rest is not kept)")
	}
}

func (p *program) showHeaders(headers map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			fmt.Fprintf(p.stdout, "    %s: %s\n", terminal.Clean(name), terminal.Clean(value))
		}
	}
}
