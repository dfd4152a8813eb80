package cmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

func newWebhook(p *program) *cobra.Command {
	return group("webhook", "Manage webhooks",
		newWebhookAdd(p), newWebhookList(p), newWebhookShow(p), newWebhookUpdate(p), newWebhookRemove(p),
		newWebhookPing(p), newWebhookRotate(p), newWebhookReplay(p),
		newWebhookDeliveries(p), newWebhookRedeliver(p), newWebhookListen(p))
}

// urlFlags defines --url as the URL of the receiver. It defines --server for the URL
// of the ledgerd server.
func (p *program) urlFlags(command *cobra.Command, value *string) {
	flags := command.Flags()
	flags.StringVar(value, "url", "", "`URL` of the receiver, to which events are posted")
	flags.StringVar(&p.global.url, serverFlag, "", "`URL` of the ledgerd server, like --url of other commands "+
		"(LEDGERD_URL)")
}

func eventsFlag(command *cobra.Command, value *[]ledger.EventType, usage string) {
	command.Flags().Var(&flagvalue.Parsed[[]ledger.EventType]{Value: value, Kind: "TYPES", Parse: ledger.ParseEventTypes},
		"events", usage)
}

// activeFlag defines --active, which means --active=true.
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
		Short: "Create a webhook and print its signing secret (shown only once)",
		Long: `Creates a webhook: from now on, events of the repo with one of the given types
are posted to the URL. They are signed with a secret, and only this secret is
printed to standard output. It cannot be shown again; 'ledgerd webhook rotate'
replaces it.

The event types are attestation, state, policy, radar, violation and commit; the
last three are only sent if --events includes them. URLs of private addresses are
refused, unless the setting webhooks.allowed_networks includes their network.

Here --url is the receiver. To name the ledgerd server, use --server or
LEDGERD_URL.`,
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
				fmt.Fprintf(p.stderr, "Created webhook %s for %s events of %s. Copy its secret now: it won't be shown again.\n",
					w.ID, display.EventTypes(w.Events, " and "), name)
				return p.print(w, func() { fmt.Fprintln(p.stdout, w.Secret) })
			})
		},
	}
	p.urlFlags(command, &n.URL)
	eventsFlag(command, &n.Events, "event `types` to send, comma-separated (default attestation,state,policy)")
	command.Flags().StringVar(&n.Description, "description", "", "descriptive `text`")
	activeFlag(command, &active, true, "send events; --active=false creates the webhook inactive")
	flagvalue.Require(command, "url")
	return command
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
					return []any{w.ID, w.URL, display.EventTypes(w.Events, ", "), display.WebhookStatus(w),
						terminal.OrDash(w.Description)}
				})
			})
		},
	}
}

func newWebhookShow(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "show ORG/REPO WEBHOOK",
		Short:   "Show a webhook and its status",
		Example: "  ledgerd webhook show acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y",
		Args:    takes("ORG/REPO", "WEBHOOK"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withWebhook(command, args, func(ctx context.Context, c *connection, name repoName, id string) error {
				w, err := c.Webhook(ctx, name.org, name.repo, id)
				if err != nil {
					return err
				}
				return p.print(w, func() { display.Webhook(p.stdout, w) })
			})
		},
	}
}

func newWebhookUpdate(p *program) *cobra.Command {
	var url, description string
	var events []ledger.EventType
	var active bool
	command := &cobra.Command{
		Use:   "update ORG/REPO WEBHOOK",
		Short: "Change, activate or deactivate a webhook",
		Long: `Changes the properties of a webhook that the flags name.

With --active=false, nothing more is sent. Events that happen while the webhook
is inactive are not queued, but 'ledgerd webhook replay' can send them later.
--active activates it again, even if it was disabled because it failed.

Here --url is the receiver. To name the ledgerd server, use --server or
LEDGERD_URL.`,
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
				return usagef("one of --url, --events, --description and --active is required")
			}
			return p.withWebhook(command, args, func(ctx context.Context, conn *connection, name repoName, id string) error {
				w, err := conn.ChangeWebhook(ctx, name.org, name.repo, id, c)
				if err != nil {
					return err
				}
				return p.print(w, func() { display.Webhook(p.stdout, w) })
			})
		},
	}
	p.urlFlags(command, &url)
	eventsFlag(command, &events, "event `types` to send, comma-separated")
	command.Flags().StringVar(&description, "description", "", "descriptive `text`")
	activeFlag(command, &active, false, "activate the webhook; --active=false deactivates it")
	return command
}

// changed returns the value of a flag, or nil if the flag is not set.
func changed[T any](command *cobra.Command, flag string, value *T) *T {
	if !command.Flags().Changed(flag) {
		return nil
	}
	return value
}

func newWebhookRemove(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "remove ORG/REPO WEBHOOK",
		Short:   "Delete a webhook and cancel its pending deliveries",
		Example: "  ledgerd webhook remove acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y",
		Args:    takes("ORG/REPO", "WEBHOOK"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withWebhook(command, args, func(ctx context.Context, c *connection, name repoName, id string) error {
				if err := c.DeleteWebhook(ctx, name.org, name.repo, id); err != nil {
					return err
				}
				deleted := struct {
					ID   string `json:"id"`
					Org  string `json:"org"`
					Repo string `json:"repo"`
				}{id, name.org, name.repo}
				return p.print(deleted, func() { fmt.Fprintf(p.stdout, "Deleted webhook %s\n", terminal.Printable(id)) })
			})
		},
	}
}

func newWebhookRotate(p *program) *cobra.Command {
	overlap := ledger.DefaultOverlap
	command := &cobra.Command{
		Use:   "rotate ORG/REPO WEBHOOK",
		Short: "Replace the signing secret of a webhook (shown only once)",
		Long: `Creates a new signing secret and prints only the secret to standard output. It is
in effect immediately. During the overlap period the old secret signs as well, so
that receivers can switch without losing deliveries. X-ledger-Signature is made
with the new secret, X-ledger-Signature-Previous with the old one, and
webhook-signature with both.`,
		Example: `  ledgerd webhook rotate acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y >secret
  ledgerd webhook rotate acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --overlap 0s   # the old secret has leaked`,
		Args: takes("ORG/REPO", "WEBHOOK"),
		RunE: func(command *cobra.Command, args []string) error {
			return p.withWebhook(command, args, func(ctx context.Context, c *connection, name repoName, id string) error {
				w, err := c.RotateWebhook(ctx, name.org, name.repo, id, overlap)
				if err != nil {
					return err
				}

				old := "The old secret is no longer valid."
				if w.PreviousSecretUntil != 0 {
					old = "The old secret is valid until " + w.PreviousSecretUntil.String() + "."
				}
				fmt.Fprintf(p.stderr, "Created a new secret for %s. Copy it now: it won't be shown again. %s\n", w.ID, old)
				return p.print(w, func() { fmt.Fprintln(p.stdout, w.Secret) })
			})
		},
	}

	command.Flags().Var(
		&flagvalue.Parsed[ledger.Duration]{Value: &overlap, Text: overlap.String(), Kind: "DURATION", Parse: parseOverlap},
		"overlap", "how long the old secret stays valid, such as 12h or 7d; 0s: not at all")

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
