package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// A show takes a commit to production while somebody watches, on the system clock, and
// prints what the live stream and a webhook's receiver report.
type show struct {
	printer
	*stage
	story *story
	pause time.Duration // between two steps
}

// follow makes the observers see what happens from now on.
func (w *show) follow(ctx context.Context) error {
	newest, err := client.Collect(w.writer.Events(ctx, w.org, client.EventFilter{NewestFirst: true}), 1)
	if err != nil || len(newest) == 0 {
		return err
	}
	var last struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(newest[0], &last); err != nil {
		return fmt.Errorf("read the latest event: %w", err)
	}
	w.observers.take()
	w.observers.follow(ctx, w.writer, w.org, w.story.product, last.ID)
	return nil
}

// deliver takes a commit from DRAFT to DEPLOYED.
func (w *show) deliver(ctx context.Context, c *commit) error {
	registered, err := w.register(ctx, c)
	if err != nil {
		return err
	}
	w.printStep(c.author.Name, "pushes "+ledger.Short(c.sha), w.state(registered.State))

	tests, reviewer := w.story.test, w.story.reviewer(c)
	job := c.in.name + "/runs/live/jobs/"
	for _, e := range []evidence{
		{by: ci(), predicate: w.story.lint, status: ledger.Pass, duration: 31 * time.Second, job: job + "1"},
		{by: ci(), predicate: tests, status: ledger.Pass, duration: 124 * time.Second, job: job + "2"},
		{by: ci(), predicate: "audit:dependencies", status: ledger.Pass, duration: 9 * time.Second, job: job + "3"},
		{by: reviewer, predicate: "review:code", status: ledger.Pass},
		{by: deployer(), predicate: "deploy:prod", status: ledger.Pass, duration: 48 * time.Second},
	} {
		if err := sleep(ctx, w.pause); err != nil {
			return err
		}
		if registered, err = w.step(ctx, c, registered, e); err != nil {
			return err
		}
	}
	return nil
}

// step records evidence, waits until the observers have received its events, and prints
// them.
func (w *show) step(ctx context.Context, c *commit, before ledger.Commit, e evidence) (ledger.Commit, error) {
	if err := w.attest(ctx, c, e); err != nil {
		return before, err
	}
	after, err := w.writer.Commit(ctx, w.org, c.in.name, c.sha)
	if err != nil {
		return before, err
	}
	transitions := after.Transitions[len(before.Transitions):]
	if err := w.observers.await(ctx, 1+len(transitions)); err != nil {
		return before, err
	}
	streamed, posted := w.observers.take()

	states := w.state(before.State)
	for _, t := range transitions {
		states += " → " + w.state(t.To)
	}
	w.printStep(e.by.name, e.predicate+" "+string(e.status), states)
	w.printReceived(strings.Join(streamed, ", "), strings.Join(posted, ", "), len(posted))
	return after, nil
}

func (w *show) printStep(who, what, states string) {
	w.print("  %-16s %-24s %s", terminal.Clip(terminal.Printable(who), 16), what, states)
}

// printReceived prints the events that reached the observers, in one line if they are the
// same.
func (w *show) printReceived(streamed, posted string, signatures int) {
	valid := w.Paint(terminal.Green, "✓ "+terminal.Plural(int64(signatures), "valid signature"))
	if streamed == posted {
		w.print("  %16s %s  %s", "", w.faint("stream and webhook: "+streamed), valid)
		return
	}
	w.print("  %16s %s", "", w.faint("stream: "+streamed))
	w.print("  %16s %s  %s", "", w.faint("webhook: "+posted), valid)
}
