package cmd

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/eventbody"
	"github.com/ledgerd/ledgerd/internal/eventline"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// An eventQuery says which events the command shows.
type eventQuery struct {
	org    string
	follow bool
	types  []ledger.EventType
	repo   string
	since  string // an event's id, client.Earliest or empty
	limit  int
}

func newEvents(p *program) *cobra.Command {
	var q eventQuery
	command := &cobra.Command{
		Use:   "events ORG",
		Short: "List or follow what happens in an org",
		Long: `Prints the events of an org, the oldest first, a line for each: recorded
attestations, changes of a commit's state, changes of a policy, and, where
--types names radar, overlaps of commits in flight.

With --follow it goes on with what happens next, or from --since-id on, until
Ctrl-C. When the connection breaks or the server starts again, it connects again
and resumes where it was: every event comes once and in order.

With -o json it prints one JSON object a line: the event's id and type, and what
the live stream tells of it.`,
		Example: `  ledgerd events acme --repo api --types policy
  ledgerd events acme --follow --types attestation,state -o json
  ledgerd events acme --follow --since-id earliest`,
		Args: takes("ORG"),
		RunE: func(command *cobra.Command, args []string) error {
			if q.org = args[0]; ledger.CheckOrg(q.org) != nil {
				return usagef("%q cannot name an org", q.org)
			}
			t, err := p.target(command)
			if err != nil {
				return err
			}
			if q.follow {
				return p.followEvents(command.Context(), t, q)
			}
			return t.use(command.Context(), func(ctx context.Context, c *connection) error {
				if err := c.settle(ctx); err != nil {
					return err
				}
				return p.showEvents(pastEvents(ctx, c, q), q.limit)
			})
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&q.follow, "follow", "f", false, "go on with what happens next, until Ctrl-C")
	flags.Var(&flagvalue.Parsed[[]ledger.EventType]{Value: &q.types, Kind: "TYPES", Parse: ledger.ParseEventTypes},
		"types", "only those of these types, with commas between them (default attestation,state,policy)")
	flags.StringVar(&q.repo, "repo", "", "only those of this `REPO`")
	flags.StringVar(&q.since, "since-id", "", "only those behind the event of this `ID`; earliest is before the first one")
	limitFlag(command, &q.limit)
	return command
}

// pastEvents yields the events that there are, as the stream tells of them.
func pastEvents(ctx context.Context, c *connection, q eventQuery) iter.Seq2[client.Event, error] {
	f := client.EventFilter{Types: q.types, Repo: q.repo}
	if q.since != client.Earliest {
		f.After = q.since
	}
	return func(yield func(client.Event, error) bool) {
		for body, err := range c.Events(ctx, q.org, f) {
			var e client.Event
			if err == nil {
				e, err = eventbody.Parse(body)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// followEvents shows events as they happen, until it is interrupted.
func (p *program) followEvents(ctx context.Context, t target, q eventQuery) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := t.use(ctx, func(ctx context.Context, c *connection) error {
		ctx, cancel := context.WithCancel(ctx)
		var watch sync.WaitGroup
		defer watch.Wait()
		defer cancel()
		if c.local != nil {
			watch.Go(func() { c.local.Watch(ctx) }) // other processes write to the file
		}
		if err := c.settle(ctx); err != nil {
			return err
		}
		told := ""
		events := c.Follow(ctx, q.org,
			client.FollowOptions{Types: q.types, Repo: q.repo, After: q.since, OnRetry: func(err error, wait time.Duration) {
				if text := describe(err); text != told {
					told = text
					fmt.Fprintf(p.stderr, "connecting again in %.1f s: %s\n", wait.Seconds(), text)
				}
			}})
		return p.showEvents(func(yield func(client.Event, error) bool) {
			for e, err := range events {
				told = ""
				if !yield(e, err) {
					return
				}
			}
		}, q.limit)
	})
	if ctx.Err() != nil {
		return nil // Ctrl-C is how it ends
	}
	return err
}

// showEvents prints events, each as soon as it is there, and no more than limit
// where that is not 0.
func (p *program) showEvents(events iter.Seq2[client.Event, error], limit int) error {
	line := eventline.JSON
	if p.global.output != "json" {
		line = (&eventline.Printer{Painter: terminal.NewPainter(p.stdout)}).Line
	}
	n := 0
	for e, err := range events {
		if err != nil {
			return err
		}
		text, err := line(e)
		if err != nil {
			return err
		}
		if _, err := p.stdout.Write(text); err != nil {
			return err
		}
		if n++; n == limit {
			break
		}
	}
	return nil
}
