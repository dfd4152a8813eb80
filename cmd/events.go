package cmd

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/eventbody"
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
	flags.Var(&flagvalue.Parsed[[]ledger.EventType]{Value: &q.types, Kind: "TYPES", Parse: ledger.ParseEventTypes}, "types", "only those of these types, with commas between them (default attestation,state,policy)")
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
		events := c.Follow(ctx, q.org, client.FollowOptions{Types: q.types, Repo: q.repo, After: q.since, Trouble: func(err error, wait time.Duration) {
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
	line := jsonLine
	if p.global.output != "json" {
		line = (&eventLines{Painter: terminal.NewPainter(p.stdout)}).line
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

// jsonLine writes an event as one object: its id and type before its data's
// members.
func jsonLine(e client.Event) ([]byte, error) {
	text := []byte(`{"id":`)
	text, err := jsontext.AppendQuote(text, e.ID)
	if err == nil {
		text, err = jsontext.AppendQuote(append(text, `,"type":`...), e.Type)
	}
	if err == nil {
		err = (*jsontext.Value)(&e.Data).Compact()
	}
	members, ok := strings.CutPrefix(string(e.Data), "{")
	if err != nil || !ok {
		return nil, fmt.Errorf("event %s cannot be written as JSON", e.ID)
	}
	if members != "}" {
		text = append(text, ',')
	}
	return append(append(text, members...), '\n'), nil
}

// eventLines writes events for people. Its columns grow with what stands in
// them.
type eventLines struct {
	terminal.Painter
	repo int // width of the column
}

func (l *eventLines) line(e client.Event) ([]byte, error) {
	at, told := l.tell(e)
	return append(l.text(at, told), '\n'), nil
}

// told is what a line tells of an event, fit for a terminal.
type told struct {
	kind   ledger.EventType
	colour string // of the kind
	repo   string
	commit string
	what   string
}

// tell returns what an event says, and when it happened.
func (l *eventLines) tell(e client.Event) (ledger.Time, told) {
	var at ledger.Time
	t := told{kind: e.Type, colour: terminal.Grey, repo: "-", commit: "-"}
	switch {
	case e.Attestation != nil:
		a := e.Attestation
		at, t.repo, t.commit, t.colour = a.Timestamp, a.Repo, a.Commit, terminal.Blue
		status := l.Paint(statusColour(a.Result.Status), string(a.Result.Status))
		t.what = fmt.Sprintf("%s %s, signed by %s", terminal.Clean(a.Predicate), status, terminal.Clean(a.Identity))
	case e.State != nil:
		s := e.State
		at, t.repo, t.commit, t.colour = s.Timestamp, s.Repo, s.Commit, terminal.Magenta
		t.what = fmt.Sprintf("from %s to %s", s.From, l.Paint(terminal.StateColour(s.To), s.To.String()))
	case e.Policy != nil:
		at, t.repo, t.colour = e.Policy.Timestamp, e.Policy.Repo, terminal.Cyan
		t.what = fmt.Sprintf("version %d takes the place of %d", e.Policy.Version, e.Policy.PreviousVersion)
	case e.Radar != nil:
		r := e.Radar
		at, t.repo, t.commit, t.colour = r.Timestamp, r.Repo, r.Commit, terminal.Yellow
		t.what = l.overlap(r)
	default:
		t.what = terminal.Clean(string(e.Data))
	}
	return at, t
}

// levelColours are those of the levels of overlaps, from none.
var levelColours = [...]string{terminal.Grey, terminal.Grey, terminal.Yellow, terminal.Red}

// overlap tells of an overlap: how bad, with whom and at what.
func (l *eventLines) overlap(r *ledger.StreamRadar) string {
	what := fmt.Sprintf("%s overlap with %s of %s by %s", l.Paint(levelColours[r.Level], r.Level.String()),
		terminal.Clean(terminal.Short(r.Other.Commit)), terminal.Clean(r.Other.Branch), terminal.Clean(terminal.OrDash(authorName(r.Other.Author))))
	if len(r.Paths) > 0 {
		what += fmt.Sprintf(": %s (%s)", terminal.Clean(r.Paths[0].Path), terminal.Clean(string(r.Paths[0].Reason)))
	}
	if r.PathsTotal > 1 {
		what += fmt.Sprintf(", +%d more", r.PathsTotal-1)
	}
	return what
}

// text writes what is told of an event as a line, without its end.
func (l *eventLines) text(at ledger.Time, t told) []byte {
	repo := terminal.Clean(t.repo)
	l.repo = max(l.repo, len(repo))
	kind := l.Paint(t.colour, fmt.Sprintf("%-11s", terminal.Clean(string(t.kind))))
	return fmt.Appendf(nil, "%s  %s  %-*s  %-12s  %s", l.Paint(terminal.Grey, terminal.OrDash(at.String())), kind, l.repo, repo, terminal.Clean(terminal.Short(t.commit)), t.what)
}

func statusColour(s ledger.Status) string {
	switch s {
	case ledger.Pass:
		return terminal.Green
	case ledger.Fail, ledger.Errored:
		return terminal.Red
	}
	return terminal.Yellow
}
