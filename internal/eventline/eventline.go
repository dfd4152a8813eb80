// Package eventline writes events a line each, for people and as JSON.
package eventline

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/eventbody"
	"github.com/ledgerd/ledgerd/internal/receiver"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
)

// JSON writes an event as one object: its id and type before its data's
// members.
func JSON(e client.Event) ([]byte, error) {
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

// A Printer writes events for people. Its columns grow with their content.
type Printer struct {
	terminal.Painter
	repo int // width of the column
}

// Line returns the line of an event.
func (l *Printer) Line(e client.Event) ([]byte, error) {
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
func (l *Printer) tell(e client.Event) (ledger.Time, told) {
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
func (l *Printer) overlap(r *eventstream.Radar) string {
	what := fmt.Sprintf("%s overlap with %s of %s by %s", l.Paint(levelColours[r.Level], r.Level.String()),
		terminal.Clean(terminal.Short(r.Other.Commit)), terminal.Clean(r.Other.Branch),
		terminal.Clean(terminal.OrDash(terminal.AuthorName(r.Other.Author))))
	if len(r.Paths) > 0 {
		what += fmt.Sprintf(": %s (%s)", terminal.Clean(r.Paths[0].Path), terminal.Clean(string(r.Paths[0].Reason)))
	}
	if r.PathsTotal > 1 {
		what += fmt.Sprintf(", +%d more", r.PathsTotal-1)
	}
	return what
}

// text writes what is told of an event as a line, without its end.
func (l *Printer) text(at ledger.Time, t told) []byte {
	repo := terminal.Clean(t.repo)
	l.repo = max(l.repo, len(repo))
	kind := l.Paint(t.colour, fmt.Sprintf("%-11s", terminal.Clean(string(t.kind))))
	return fmt.Appendf(nil, "%s  %s  %-*s  %-12s  %s", l.Paint(terminal.Grey, terminal.OrDash(at.String())), kind, l.repo,
		repo, terminal.Clean(terminal.Short(t.commit)), t.what)
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

// Receipt returns the line of a delivery: when it arrived, what, and whether it
// is what it says.
func (l *Printer) Receipt(t receiver.Receipt) []byte {
	line := l.text(t.ReceivedAt, l.delivered(t))
	if t.Again {
		line = append(line, ", again"...)
	}
	verdict := l.Paint(terminal.Green, "verified")
	if !t.Verified {
		verdict = l.Paint(terminal.Red, "not verified") + ": " + terminal.Clean(t.Problem)
	}
	return fmt.Appendf(line, "; %s\n", verdict)
}

// delivered returns what a delivery says, which may come from anybody.
func (l *Printer) delivered(t receiver.Receipt) told {
	e, err := t.Event()
	if err != nil {
		return told{kind: "?", colour: terminal.Grey, repo: "-", commit: "-", what: "no event of ledgerd's"}
	}
	_, said := l.tell(e)
	if e.Type == ledger.EventPing {
		head, _ := eventbody.ParseHead(t.Body) // event has read it too
		said.repo, said.what = head.Repo, "a ping"
	}
	return said
}
