package cmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newWebhook(p *program) *cobra.Command {
	return group("webhook", "Manage the URLs to which a repo's events are posted",
		newWebhookAdd(p), newWebhookList(p), newWebhookShow(p), newWebhookUpdate(p), newWebhookRemove(p),
		newWebhookPing(p), newWebhookRotate(p), newWebhookReplay(p),
		newWebhookDeliveries(p), newWebhookRedeliver(p), newWebhookListen(p))
}

// urlFlags defines --url as the receiver's, and --server in its place.
func (p *program) urlFlags(command *cobra.Command, value *string) {
	flags := command.Flags()
	flags.StringVar(value, "url", "", "`URL` that events are posted to")
	flags.StringVar(&p.global.url, serverFlag, "", "`URL` of the server to speak to, as --url is for other commands "+
		"(LEDGERD_URL)")
}

func eventsFlag(command *cobra.Command, value *[]ledger.EventType, usage string) {
	command.Flags().Var(&flagvalue.Parsed[[]ledger.EventType]{Value: value, Kind: "TYPES", Parse: ledger.ParseEventTypes},
		"events", usage)
}

// activeFlag defines --active, which stands for --active=true.
func activeFlag(command *cobra.Command, value *bool, preset bool, usage string) {
	*value = preset
	flag := command.Flags().VarPF(&flagvalue.Parsed[bool]{Value: value, Text: strconv.FormatBool(preset), Kind: "bool",
		Parse: parseBool}, "active", "", usage)
	flag.NoOptDefVal = "true"
}

func parseBool(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("use true or false")
}

func newWebhookAdd(p *program) *cobra.Command {
	var n ledger.NewWebhook
	var active bool
	command := &cobra.Command{
		Use:   "add ORG/REPO",
		Short: "Have a repo's events posted to a URL, and print the signing secret, this once",
		Long: `Makes a webhook: from now on every event of the repo that is of one of the types
is posted to the URL, signed with the secret that this prints alone on standard
output. It is not shown again; 'ledgerd webhook rotate' makes another one.

The event types are attestation, state, policy and radar; radar is only sent
when it is named. URLs that lead to private addresses are refused unless the
setting webhooks.allowed_networks of the ledger names their network.

To speak to a server, set LEDGERD_URL or --server: --url is the receiver's here.`,
		Example: `  ledgerd webhook add acme/api --url https://ci.example.com/ledger
  ledgerd webhook add acme/api --url https://ci.example.com/ledger --events attestation,state -o json`,
		Args: takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			n.Active = &active
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				w, err := c.CreateWebhook(ctx, name.org, name.repo, n)
				if err != nil {
					return err
				}
				fmt.Fprintf(p.stderr, "made %s, which gets %s events of %s; its secret is shown only now\n", w.ID,
					typeNames(w.Events, " and "), name)
				return p.print(w, func() { fmt.Fprintln(p.stdout, w.Secret) })
			})
		},
	}
	p.urlFlags(command, &n.URL)
	eventsFlag(command, &n.Events, "types that are sent, with commas between them (default attestation,state,policy)")
	command.Flags().StringVar(&n.Description, "description", "", "what people know it by")
	activeFlag(command, &active, true, "send at once; with --active=false, only once an update makes it active")
	require(command, "url")
	return command
}

// typeNames writes event types with commas between them, before the last one
// the given word.
func typeNames(types []ledger.EventType, last string) string {
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

func newWebhookList(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "list ORG/REPO",
		Short:   "List the webhooks of a repo, without their secrets",
		Example: "  ledgerd webhook list acme/api",
		Args:    takes("ORG/REPO"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withRepo(command, args, func(ctx context.Context, c *connection, name repoName) error {
				columns := []string{"ID", "URL", "EVENTS", "STATUS", "DESCRIPTION"}
				return printList(p, c.Webhooks(ctx, name.org, name.repo), 0, columns, func(w ledger.Webhook) []any {
					return []any{w.ID, w.URL, typeNames(w.Events, ", "), webhookStatus(w), terminal.OrDash(w.Description)}
				})
			})
		},
	}
}

// webhookStatus tells in a few words how a webhook is.
func webhookStatus(w ledger.Webhook) string {
	switch {
	case w.DisabledReason != "":
		return "disabled since " + w.DisabledAt.String()
	case !w.Active:
		return "inactive"
	case w.FailingSince != 0:
		return "failing since " + w.FailingSince.String()
	}
	return "active"
}

func newWebhookShow(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "show ORG/REPO WEBHOOK",
		Short:   "Show a webhook, and whether it fails or why it is disabled",
		Example: "  ledgerd webhook show acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y",
		Args:    takes("ORG/REPO", "WEBHOOK"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withWebhook(command, args, func(ctx context.Context, c *connection, name repoName, id string) error {
				w, err := c.Webhook(ctx, name.org, name.repo, id)
				if err != nil {
					return err
				}
				return p.print(w, func() { p.showWebhook(w) })
			})
		},
	}
}

func (p *program) showWebhook(w ledger.Webhook) {
	t := terminal.NewTable(p.stdout)
	t.Row("id", w.ID)
	t.Row("repo", w.Org+"/"+w.Repo)
	t.Row("url", w.URL)
	t.Row("events", typeNames(w.Events, ", "))
	t.Row("description", terminal.OrDash(w.Description))
	t.Row("created", w.CreatedAt)
	t.Row("status", webhookStatus(w))
	if w.DisabledReason != "" {
		t.Row("reason", w.DisabledReason)
	}
	if w.DisabledReason != "" && w.FailingSince != 0 {
		t.Row("failing since", w.FailingSince)
	}
	if w.PreviousSecretUntil != 0 {
		t.Row("old secret", "signs too until "+w.PreviousSecretUntil.String())
	}
	t.Flush()
}

func newWebhookUpdate(p *program) *cobra.Command {
	var url, description string
	var events []ledger.EventType
	var active bool
	command := &cobra.Command{
		Use:   "update ORG/REPO WEBHOOK",
		Short: "Change a webhook, or make it inactive or active",
		Long: `Changes what its flags name of a webhook, and nothing else.

With --active=false nothing is sent any more: events that happen meanwhile are
not kept for it, but 'ledgerd webhook replay' sends them later. --active makes
it active again, also one that was disabled because it failed.

To speak to a server, set LEDGERD_URL or --server: --url is the receiver's here.`,
		Example: `  ledgerd webhook update acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --events attestation,state,policy,radar
  ledgerd webhook update acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --active=false`,
		Args: takes("ORG/REPO", "WEBHOOK"),
		RunE: func(command *cobra.Command, args []string) error {
			c := ledger.WebhookChange{
				URL:         changed(command, "url", &url),
				Events:      changed(command, "events", &events),
				Description: changed(command, "description", &description),
				Active:      changed(command, "active", &active),
			}
			if c == (ledger.WebhookChange{}) {
				return usagef("there is nothing to change: give --url, --events, --description or --active")
			}
			return p.withWebhook(command, args, func(ctx context.Context, conn *connection, name repoName, id string) error {
				w, err := conn.ChangeWebhook(ctx, name.org, name.repo, id, c)
				if err != nil {
					return err
				}
				return p.print(w, func() { p.showWebhook(w) })
			})
		},
	}
	p.urlFlags(command, &url)
	eventsFlag(command, &events, "types that are sent, with commas between them")
	command.Flags().StringVar(&description, "description", "", "what people know it by")
	activeFlag(command, &active, false, "whether it is sent to")
	return command
}

// changed returns the value of a flag, nil where the flag is not given.
func changed[T any](command *cobra.Command, flag string, value *T) *T {
	if !command.Flags().Changed(flag) {
		return nil
	}
	return value
}

func newWebhookRemove(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "remove ORG/REPO WEBHOOK",
		Short:   "Remove a webhook; what still waits for it is not sent",
		Example: "  ledgerd webhook remove acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y",
		Args:    takes("ORG/REPO", "WEBHOOK"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withWebhook(command, args, func(ctx context.Context, c *connection, name repoName, id string) error {
				if err := c.DeleteWebhook(ctx, name.org, name.repo, id); err != nil {
					return err
				}
				removed := struct {
					ID   string `json:"id"`
					Org  string `json:"org"`
					Repo string `json:"repo"`
				}{id, name.org, name.repo}
				return p.print(removed, func() { fmt.Fprintf(p.stdout, "removed %s\n", terminal.Printable(id)) })
			})
		},
	}
}

func newWebhookRotate(p *program) *cobra.Command {
	overlap := ledger.DefaultOverlap
	command := &cobra.Command{
		Use:   "rotate ORG/REPO WEBHOOK",
		Short: "Give a webhook a new signing secret and print it, this once",
		Long: `Makes a new signing secret and prints it alone on standard output. It signs at
once. For the time of the overlap the old one signs too, so that receivers can
change over without missing anything: X-ledger-Signature is by the new secret,
X-ledger-Signature-Previous by the old one, webhook-signature by both.`,
		Example: `  ledgerd webhook rotate acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y >secret
  ledgerd webhook rotate acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --overlap 0s   # the old one is known to others`,
		Args: takes("ORG/REPO", "WEBHOOK"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withWebhook(command, args, func(ctx context.Context, c *connection, name repoName, id string) error {
				w, err := c.RotateWebhook(ctx, name.org, name.repo, id, overlap)
				if err != nil {
					return err
				}
				old := "the old one signs no more"
				if w.PreviousSecretUntil != 0 {
					old = "the old one signs too until " + w.PreviousSecretUntil.String()
				}
				fmt.Fprintf(p.stderr, "%s has a new secret, shown only now; %s\n", w.ID, old)
				return p.print(w, func() { fmt.Fprintln(p.stdout, w.Secret) })
			})
		},
	}
	command.Flags().Var(
		&flagvalue.Parsed[ledger.Duration]{Value: &overlap, Text: overlap.String(), Kind: "DURATION", Parse: parseOverlap},
		"overlap", "how long the old secret signs too, such as 12h or 7d; 0s ends it at once")
	return command
}

func parseOverlap(s string) (d ledger.Duration, err error) {
	if err = d.UnmarshalText([]byte(s)); err != nil {
		return 0, err
	}
	r := ledger.Rotation{Overlap: &d}
	if e, ok := errors.AsType[*ledger.Error](r.Check()); ok {
		return 0, errors.New(e.Fields[0].Message)
	}
	return d, nil
}
