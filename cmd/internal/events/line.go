package events

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
)

// JSON returns an event as a line with one JSON object: its id and type, followed by
// the members of its data. The line is safe to print to a terminal.
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
	return append(terminal.EscapeJSON(append(text, members...)), '\n'), nil
}

// A Printer formats events for people. Its columns grow with their content.
type Printer struct {
	terminal.Painter
	repoWidth int
}

// Line returns the line of an event.
func (l *Printer) Line(e client.Event) ([]byte, error) {
	at, c := l.columns(e)
	return append(l.format(at, c), '\n'), nil
}

// columns are the columns of an event's line after its time.
type columns struct {
	kind    ledger.EventType
	colour  string // of kind
	repo    string
	commit  string
	summary string // what the Printer has not painted may be from anybody
}

// columns returns the time of an event and the columns of its line.
func (l *Printer) columns(e client.Event) (ledger.Time, columns) {
	var at ledger.Time
	c := columns{kind: e.Type, colour: terminal.Grey, repo: "-", commit: "-"}

	switch {
	case e.Attestation != nil:
		a := e.Attestation
		at, c.repo, c.commit, c.colour = a.Timestamp, a.Repo, a.Commit, terminal.Blue
		status := l.Paint(statusColour(a.Result.Status), string(a.Result.Status))
		c.summary = fmt.Sprintf("%s %s, signed by %s", a.Predicate, status, a.Identity)
	case e.State != nil:
		s := e.State
		at, c.repo, c.commit, c.colour = s.Timestamp, s.Repo, s.Commit, terminal.Magenta
		c.summary = fmt.Sprintf("%s → %s", s.From, l.Paint(terminal.StateColour(s.To), s.To.String()))
	case e.Standing != nil:
		s := e.Standing
		at, c.repo, c.commit, c.colour = s.Timestamp, s.Repo, s.Commit, terminal.Magenta
		c.summary = fmt.Sprintf("%s → %s, still DEPLOYED", s.From, l.Paint(terminal.StateColour(s.To), s.To.String()))
	case e.Policy != nil:
		at, c.repo, c.colour = e.Policy.Timestamp, e.Policy.Repo, terminal.Cyan
		c.summary = fmt.Sprintf("v%d → v%d", e.Policy.PreviousVersion, e.Policy.Version)
	case e.Radar != nil:
		r := e.Radar
		at, c.repo, c.commit, c.colour = r.Timestamp, r.Repo, r.Commit, terminal.Yellow
		c.summary = l.overlap(r)
	case e.Violation != nil:
		v := e.Violation
		at, c.repo, c.commit, c.colour = v.Timestamp, v.Repo, v.Commit, terminal.Red
		c.summary = l.violation(v)
	case e.Commit != nil:
		at, c.repo, c.commit = e.Commit.Timestamp, e.Commit.Repo, e.Commit.Commit
		c.summary = known(e.Commit)
	case e.Key != nil:
		at, c.summary = e.Key.Timestamp, keyChange(e.Key)
	case e.Identity != nil:
		at, c.summary = e.Identity.Timestamp, identityChange(e.Identity)
	case e.Audit != nil:
		at, c.repo, c.summary = e.Audit.Timestamp, terminal.OrDash(e.Audit.Repo), administered(e.Audit)
	case e.Restored != nil:
		at, c.colour = e.Restored.RestoredAt, terminal.Red
		c.summary = "the ledger was restored from a backup: the events after " + e.Restored.LastEvent + " are gone"
	default:
		c.summary = string(e.Data)
	}
	return at, c
}

// levelColours are the styles of the levels of overlaps, starting with none.
var levelColours = [...]string{terminal.Grey, terminal.Grey, terminal.Yellow, terminal.Red}

// overlap returns the level of an overlap, the other commit and the path.
func (l *Printer) overlap(r *eventstream.Radar) string {
	summary := fmt.Sprintf("%s overlap with %s of %s by %s", l.Paint(levelColours[r.Level], r.Level.String()),
		ledger.Short(r.Other.Commit), r.Other.Branch, terminal.OrDash(terminal.AuthorName(r.Other.Author)))
	if len(r.Paths) > 0 {
		summary += fmt.Sprintf(": %s (%s)", r.Paths[0].Path, r.Paths[0].Reason)
	}
	if r.PathsTotal > 1 {
		summary += fmt.Sprintf(", +%d more", r.PathsTotal-1)
	}
	return summary
}

// violation returns what has happened to a violation: why it was opened, or what has
// closed it.
func (l *Printer) violation(v *eventstream.Violation) string {
	if v.ClosedBy != nil {
		return fmt.Sprintf("%s %s of %s, by %s %s", l.Paint(terminal.Green, string(v.Status)),
			v.Predicate, v.Identity, v.ClosedBy.Type, v.ClosedBy.ID)
	}
	return fmt.Sprintf("%s %s of %s: %s", l.Paint(terminal.Red, string(v.Status)), v.Predicate, v.Identity,
		strings.Join(v.Missing, "; "))
}

// known returns how something became known of a commit, and what was corrected.
func known(c *eventstream.Commit) string {
	summary := "registered"
	if c.Tree != "" {
		summary = "proven, tree " + ledger.Short(c.Tree)
	}
	for i, f := range c.Corrected {
		separator := ", "
		if i == 0 {
			separator = "; corrected "
		}
		summary += separator + f.Field
	}
	return summary
}

// keyChange returns what has happened to a key, and why.
func keyChange(k *eventstream.Key) string {
	summary := fmt.Sprintf("%s key %s %s", k.Purpose, ledger.Short(k.Key), k.Action)
	if k.Reason != "" {
		summary += ": " + k.Reason
	}
	return summary
}

// identityChange returns what has happened to an identity.
func identityChange(i *eventstream.Identity) string {
	summary := fmt.Sprintf("%s %s %s, key %s", i.Kind, i.DN, i.Action, ledger.Short(i.Key))
	if i.May != nil {
		summary += ", may attest " + strings.Join(i.May, ",")
	}
	if i.DNPattern != "" {
		summary += ", certifies " + i.DNPattern
	}
	if i.DistrustedSince != 0 {
		summary += ", since " + i.DistrustedSince.String()
	}
	return summary
}

// administered returns what an administrator did.
func administered(a *eventstream.Audit) string {
	summary := fmt.Sprintf("%s %s by %s", a.Action, a.Target, a.By.Who())
	if from := a.By.Where(); from != "" {
		summary += ", " + from
	}
	for i, c := range a.Changes {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		summary += separator + c.String()
	}
	return summary
}

// format returns a line without its newline. Nothing in the columns can begin another one, or control the
// terminal.
func (l *Printer) format(at ledger.Time, c columns) []byte {
	repo := terminal.Clean(c.repo)
	l.repoWidth = max(l.repoWidth, len(repo))
	kind := l.Paint(c.colour, fmt.Sprintf("%-11s", terminal.Clean(string(c.kind))))
	return fmt.Appendf(nil, "%s  %s  %-*s  %-12s  %s", l.Paint(terminal.Grey, terminal.OrDash(at.String())), kind,
		l.repoWidth, repo, terminal.Clean(ledger.Short(c.commit)), l.Inline(c.summary))
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

// Receipt returns the line of a webhook delivery: when it arrived, its event, and
// whether it is verified.
func (l *Printer) Receipt(t Receipt) []byte {
	line := l.format(t.ReceivedAt, l.delivered(t))
	if t.Again {
		line = append(line, " (repeated)"...)
	}
	verdict := l.Paint(terminal.Green, "verified")
	if !t.Verified {
		verdict = l.Paint(terminal.Red, "not verified") + ": " + terminal.Clean(t.Problem)
	}
	return fmt.Appendf(line, "; %s\n", verdict)
}

// ReceiptPrinter returns a function that prints a line for a delivery to w, or the
// receipt as JSON.
func ReceiptPrinter(w io.Writer, asJSON bool) func(Receipt) error {
	if asJSON {
		return func(t Receipt) error {
			text, err := json.Marshal(t)
			if err != nil {
				return fmt.Errorf("write JSON: %w", err)
			}
			_, err = w.Write(append(terminal.EscapeJSON(text), '\n'))
			return err
		}
	}
	screen := terminal.NewScreen(w)
	lines := &Printer{Painter: screen.Painter}
	return func(t Receipt) error {
		_, err := screen.Write(lines.Receipt(t))
		return err
	}
}

// delivered returns the columns of a delivery, which may come from anybody.
func (l *Printer) delivered(t Receipt) columns {
	e, err := t.Event()
	if err != nil {
		return columns{kind: "?", colour: terminal.Grey, repo: "-", commit: "-", summary: "not a ledgerd event"}
	}
	_, c := l.columns(e)
	if e.Type == ledger.EventPing {
		head, _ := ParseHead(t.Body) // Event has parsed it without an error
		c.repo, c.summary = head.Repo, "test delivery"
	}
	return c
}
