package display

import (
	"io"
	"strings"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// Webhook prints a webhook, without its secret.
func Webhook(w io.Writer, hook outbound.Webhook) {
	t := terminal.NewTable(w)
	t.Row("id", hook.ID)
	t.Row("repo", hook.Org+"/"+hook.Repo)
	t.Row("url", hook.URL)
	t.Row("events", EventTypes(hook.Events, ", "))

	t.Row("description", terminal.OrDash(hook.Description))
	if hook.Authorization != "" {
		t.Row("authorization", hook.Authorization)
	}
	t.Row("created", hook.CreatedAt)
	t.Row("status", WebhookStatus(hook))
	if hook.DisabledReason != "" {
		t.Row("reason", hook.DisabledReason)
	}
	if hook.DisabledReason != "" && hook.FailingSince != 0 {
		t.Row("failing since", hook.FailingSince)
	}
	if hook.PreviousSecretUntil != 0 {
		t.Row("old secret", terminal.Parts{"valid until ", hook.PreviousSecretUntil})
	}
	t.Flush()
}

// WebhookStatus returns whether a webhook is active, inactive, failing or disabled,
// and since when.
func WebhookStatus(w outbound.Webhook) any {
	switch {
	case w.DisabledReason != "":
		return terminal.Parts{"disabled", terminal.Since(w.DisabledAt)}
	case !w.Active:
		return "inactive"
	case w.FailingSince != 0:
		return terminal.Parts{"failing", terminal.Since(w.FailingSince)}
	}
	return "active"
}

// EventTypes returns event types separated by commas, and by last before the last one.
func EventTypes(types []ledger.EventType, last string) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	if n := len(names); n > 1 {
		names[n-2] += last + names[n-1]
		names = names[:n-1]
	}
	return strings.Join(names, ", ")
}
