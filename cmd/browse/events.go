package browse

import (
	"context"
	"iter"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/events"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// An eventQuery selects the events to show.
type eventQuery struct {
	org    string
	follow bool
	types  []ledger.EventType
	repo   string
	since  string // an event id, client.Earliest or empty
	limit  int
}

func newEvents(p *cli.Program) *cobra.Command {
	var q eventQuery
	command := p.Takes(&cobra.Command{
		Use:   "events",
		Short: "List or follow the events of an org",
		Long: `Prints the events of an org, oldest first, one per line: recorded attestations,
state changes of commits and policy changes. Other events are only printed if
--types includes their type:

  radar      overlaps
  violation  deployments that do not count
  commit     proven commits
  key        keys with which the server signs for the org
  identity   identities that the org trusts, changes or revokes
  audit      administrative actions; for tokens with the scope admin

The last three are about the org, and --repo leaves them out.

With --follow it prints new events as they happen, until Ctrl-C. With --since-id
it first prints those since then. With --limit it ends after that many. If the
connection breaks or the server restarts, it reconnects and resumes: each event
is printed once and in order.

With -o json it prints one JSON object per line: the ID and type of the event,
and its data as in the live stream.`,
		Example: `  ledgerd events acme --repo api --types policy
  ledgerd events acme --follow --types attestation,state -o json
  ledgerd events acme --follow --since-id earliest`,
		RunE: func(command *cobra.Command, args []string) error {
			var err error
			if q.org, err = p.OrgArg(command, args, &q.repo); err != nil {
				return err
			}
			l, err := p.Locate(command)
			if err != nil {
				return err
			}
			if q.follow {
				return followEvents(command.Context(), p, l, q)
			}

			return l.Use(command.Context(), func(ctx context.Context, c *cli.Connection) error {
				if err := c.Settle(ctx); err != nil {
					return err
				}
				return showEvents(p, pastEvents(ctx, c, q), q.limit)
			})
		},
	}, "[ORG]")

	flags := command.Flags()
	flags.BoolVarP(&q.follow, "follow", "f", false, "print new events as they happen, until Ctrl-C")
	flags.Var(&flagvalue.Parsed[[]ledger.EventType]{Value: &q.types, Kind: "TYPES", Parse: ledger.ParseEventTypes},
		"types", "only these types, comma-separated (default attestation,state,policy)")
	flags.StringVar(&q.repo, "repo", "", "only events of this `repo`")
	flags.StringVar(&q.since, "since-id", "", "only events after the event with this `ID`; earliest for all")
	flagvalue.NameField(command, "after", "since-id")
	flagvalue.NameField(command, "last_event_id", "since-id")
	cli.LimitFlag(command, &q.limit)

	return command
}

// pastEvents yields the existing events, in the form of the live stream.
func pastEvents(ctx context.Context, c *cli.Connection, q eventQuery) iter.Seq2[client.Event, error] {
	f := client.EventFilter{Types: q.types, Repo: q.repo}
	if q.since != client.Earliest {
		f.After = q.since
	}
	return func(yield func(client.Event, error) bool) {
		for body, err := range c.Events(ctx, q.org, f) {
			var e client.Event
			if err == nil {
				e, err = events.Parse(body)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// followEvents shows events as they happen, until interrupted.
func followEvents(ctx context.Context, p *cli.Program, l cli.Location, q eventQuery) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()

	err := l.Use(ctx, func(ctx context.Context, c *cli.Connection) error {
		ctx, cancel := context.WithCancel(ctx)
		var watch sync.WaitGroup
		defer watch.Wait()
		defer cancel()
		if c.Local != nil {
			watch.Go(func() { c.Local.Watch(ctx) }) // other processes write to the file
		}
		if err := c.Settle(ctx); err != nil {
			return err
		}

		reported := "" // the last error, to report each only once
		stream := c.Follow(ctx, q.org,
			client.FollowOptions{Types: q.types, Repo: q.repo, After: q.since, OnRetry: func(err error, wait time.Duration) {
				if text := p.Describe(err); text != reported {
					reported = text
					terminal.Printf(p.Hints(), "reconnecting in %.1f s: %s\n", wait.Seconds(), text)
				}
			}})

		return showEvents(p, func(yield func(client.Event, error) bool) {
			for e, err := range stream {
				reported = ""
				if !yield(e, err) {
					return
				}
			}
		}, q.limit)
	})
	if ctx.Err() != nil {
		return nil // interrupted: the usual end
	}
	return err
}

// showEvents prints each event as it arrives, at most limit; 0 means no limit.
func showEvents(p *cli.Program, stream iter.Seq2[client.Event, error], limit int) error {
	line := events.JSON
	if p.Global.Output != "json" {
		line = (&events.Printer{Painter: p.Stdout.Painter}).Line
	}

	n := 0
	for e, err := range stream {
		if err != nil {
			return err
		}
		text, err := line(e)
		if err != nil {
			return err
		}
		if _, err := p.Lines().Write(text); err != nil {
			return err
		}
		if n++; n == limit {
			break
		}
	}
	return nil
}
