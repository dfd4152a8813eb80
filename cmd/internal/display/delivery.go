package display

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// Delivery prints a delivery with its attempts.
func Delivery(w io.Writer, d outbound.DeliveryRecord) {
	t := terminal.NewTable(w)
	t.Row("id", d.ID)
	t.Row("event", d.Event)
	t.Row("type", d.Type)
	t.Row("created", d.CreatedAt)
	t.Row("status", d.Status)
	if d.NextAttemptAt != 0 {
		t.Row("next attempt", d.NextAttemptAt)
	}
	t.Flush()
	terminal.Printf(w, "\n%s\n", terminal.Printable(string(d.Body)))
	for _, a := range d.History {
		attempt(w, a)
	}
}

func attempt(w io.Writer, a outbound.Attempt) {
	outcome := "delivered"
	if a.Error != "" {
		outcome = terminal.Clean(a.Error)
	}
	terminal.Printf(w, "\nattempt %d at %s, %d ms: %s\n", a.Number, a.At, a.DurationMS, outcome)
	terminal.Printf(w, "  POST %s\n", terminal.Clean(a.Request.URL))
	headers(w, a.Request.Headers)
	if a.Response.Status == 0 {
		return
	}
	terminal.Printf(w, "  response %s\n", statusText(a.Response.Status))
	headers(w, a.Response.Headers)
	text(w, "    | ", a.Response.Body)
	if a.Response.Truncated {
		fmt.Fprintln(w, "    (truncated)")
	}
}

func headers(w io.Writer, headers map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			terminal.Printf(w, "    %s: %s\n", terminal.Clean(name), terminal.Clean(value))
		}
	}
}

// LastAttempt prints the outcome of a delivery's last attempt.
func LastAttempt(w io.Writer, record outbound.DeliveryRecord, now time.Time) {
	last := record.History[len(record.History)-1]
	if last.Error == "" {
		terminal.Printf(w, "Delivered %s in %d ms: %s\n", record.ID, last.DurationMS, statusText(last.Response.Status))
	} else {
		terminal.Printf(w, "%s failed: %s\n", record.ID, terminal.Clean(last.Error))
	}
	text(w, "  ", last.Response.Body)
	if record.NextAttemptAt != 0 {
		terminal.Printf(w, "next retry %s\n", nextRetry(record.NextAttemptAt, now))
	}
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

// text prints untrusted text with each line indented.
func text(w io.Writer, indent, text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		terminal.Printf(w, "%s%s\n", indent, terminal.Printable(strings.TrimRight(line, "\r\n")))
	}
}

// LastOutcome returns the outcome of the last attempt, in a few words.
func LastOutcome(d outbound.Delivery) string {
	switch {
	case d.LastError != "":
		return d.LastError
	case d.LastStatus != 0:
		return statusText(d.LastStatus)
	}
	return "-"
}
