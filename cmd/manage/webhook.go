package manage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

func newWebhook(p *cli.Program) *cobra.Command {
	return cli.Group("webhook", "Manage webhooks",
		newWebhookAdd(p), newWebhookList(p), newWebhookShow(p), newWebhookUpdate(p), newWebhookRemove(p),
		newWebhookPing(p), newWebhookRotate(p), newWebhookReplay(p),
		newWebhookDeliveries(p), newWebhookRedeliver(p), newWebhookListen(p))
}

// urlFlag defines --url, the URL of the receiver.
func urlFlag(command *cobra.Command, value *string) {
	command.Flags().StringVar(value, "url", "", "`URL` of the receiver, to which events are posted; - reads it from "+
		"standard input, and keeps a key in it from other users of this machine")
}

// readURL replaces the value of --url by standard input if it is "-".
func readURL(p *cli.Program, value *string) error {
	if *value != "-" {
		return nil
	}
	text, err := p.ReadFile("-")
	if err != nil {
		return fmt.Errorf("read --url from standard input: %w", err)
	}
	if *value = strings.TrimSpace(string(text)); *value == "" {
		return cli.Usagef("--url -: standard input is empty")
	}
	return nil
}

// authorizationFlag defines --authorization-file.
func authorizationFlag(command *cobra.Command, file *string) {
	command.Flags().StringVar(file, "authorization-file", "", "`file` with the value of the Authorization header of "+
		"deliveries, such as Bearer TOKEN, for a receiver behind a gateway; - reads it from standard input")
}

// readAuthorization reads the file of --authorization-file. Without the flag, the value is empty.
func readAuthorization(p *cli.Program, file, url string) (string, error) {
	switch {
	case file == "":
		return "", nil
	case file == "-" && url == "-":
		return "", cli.Usagef("only one of --url and --authorization-file can be standard input")
	}
	text, err := p.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read --authorization-file: %w", err)
	}
	value, err := cli.Secret(text)
	if err != nil {
		return "", fmt.Errorf("read --authorization-file: %w", err)
	}
	if value == "" {
		return "", cli.Usagef("--authorization-file: %s is empty", file)
	}
	return value, nil
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

func newWebhookAdd(p *cli.Program) *cobra.Command {
	var n outbound.NewWebhook
	var authorization string
	var active bool
	command := p.Takes(&cobra.Command{
		Use:   "add",
		Short: "Create a webhook and print its signing secret (shown only once)",
		Long: `Creates a webhook: from now on, events of the repo with one of the given types
are posted to the URL. They are signed with a secret, and only this secret is
printed to standard output. It cannot be shown again; 'ledgerd webhook rotate'
replaces it.

The event types are attestation, state, standing, policy, radar, violation,
commit, key and identity; standing and the last five are only sent if --events
includes them. Those of the types key and identity are events of the org. URLs of
private addresses are refused, unless the setting webhooks.allowed_networks
includes their network.

Here --url is the receiver. To name the ledgerd server, use --server or
LEDGERD_URL.`,
		Example: `  ledgerd webhook add acme/api --url https://ci.example.com/ledger
  ledgerd webhook add acme/api --url https://ci.example.com/ledger --events attestation,state -o json`,
		RunE: func(command *cobra.Command, args []string) (err error) {
			n.Active = &active
			if n.Authorization, err = readAuthorization(p, authorization, n.URL); err != nil {
				return err
			}
			if err := readURL(p, &n.URL); err != nil {
				return err
			}
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				w, err := c.CreateWebhook(ctx, name.Org, name.Repo, n)
				if err != nil {
					return err
				}
				terminal.Printf(p.Hints(), "Created webhook %s for %s events of %s. Copy its secret now: it won't be shown "+
					"again.\n",
					w.ID, display.EventTypes(w.Events, " and "), name)
				return p.Print(w, func() { terminal.Printf(p.Stdout, "%s\n", w.Secret) })
			})
		},
	}, cli.RepoArg)
	urlFlag(command, &n.URL)
	eventsFlag(command, &n.Events, "event `types` to send, comma-separated (default attestation,state,policy)")
	command.Flags().StringVar(&n.Description, "description", "", "descriptive `text`")
	authorizationFlag(command, &authorization)
	activeFlag(command, &active, true, "send events; --active=false creates the webhook inactive")
	flagvalue.Require(command, "url")
	return command
}

func newWebhookList(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:     "list",
		Short:   "List the webhooks of a repo, without their secrets",
		Example: "  ledgerd webhook list acme/api",
		RunE: func(command *cobra.Command, args []string) error {
			return p.WithRepo(command, args, func(ctx context.Context, c *cli.Connection, name cli.RepoName) error {
				columns := []string{"ID", "URL", "EVENTS", "STATUS", "DESCRIPTION"}
				return cli.PrintList(p, c.Webhooks(ctx, name.Org, name.Repo), 0, columns, func(w outbound.Webhook) []any {
					return []any{w.ID, w.URL, display.EventTypes(w.Events, ", "), display.WebhookStatus(w),
						terminal.OrDash(w.Description)}
				})
			})
		},
	}, cli.RepoArg)
}

func newWebhookShow(p *cli.Program) *cobra.Command {
	return p.Takes(&cobra.Command{
		Use:     "show",
		Short:   "Show a webhook and its status",
		Example: "  ledgerd webhook show acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y",
		RunE: p.OnWebhook(func(ctx context.Context, c *cli.Connection, name cli.RepoName, id string) error {
			return cli.Shown(p, display.Webhook)(c.Webhook(ctx, name.Org, name.Repo, id))
		}),
	}, cli.RepoArg, "WEBHOOK")
}

func newWebhookUpdate(p *cli.Program) *cobra.Command {
	var url, description, authorization string
	var events []ledger.EventType
	var active, without bool
	command := p.Takes(&cobra.Command{
		Use:   "update",
		Short: "Change, activate or deactivate a webhook",
		Long: `Changes the properties of a webhook that the flags name.

With --active=false, nothing more is sent. Events that happen while the webhook
is inactive are not queued, but 'ledgerd webhook replay' can send them later.
--active activates it again, even if it was disabled because it failed.

The Authorization header is only sent to the host for which it was given: if
--url has another scheme, host or port, give a new value too, or
--no-authorization.

Here --url is the receiver. To name the ledgerd server, use --server or
LEDGERD_URL.`,
		Example: `  ledgerd webhook update acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --events attestation,state,policy,radar
  ledgerd webhook update acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --active=false`,
		RunE: func(command *cobra.Command, args []string) error {
			header, err := readAuthorization(p, authorization, url)
			if err != nil {
				return err
			}
			if err := readURL(p, &url); err != nil {
				return err
			}
			change := outbound.WebhookChange{
				URL:         cli.Changed(command, "url", &url),
				Events:      cli.Changed(command, "events", &events),
				Description: cli.Changed(command, "description", &description),
				Active:      cli.Changed(command, "active", &active),
			}
			if without || authorization != "" {
				change.Authorization = &header
			}
			if change == (outbound.WebhookChange{}) {
				return cli.Usagef("one of --url, --events, --description, --authorization-file, --no-authorization and " +
					"--active is required")
			}
			return p.OnWebhook(func(ctx context.Context, c *cli.Connection, name cli.RepoName, id string) error {
				return cli.Shown(p, display.Webhook)(c.ChangeWebhook(ctx, name.Org, name.Repo, id, change))
			})(command, args)
		},
	}, cli.RepoArg, "WEBHOOK")
	urlFlag(command, &url)
	eventsFlag(command, &events, "event `types` to send, comma-separated")
	command.Flags().StringVar(&description, "description", "", "descriptive `text`")
	authorizationFlag(command, &authorization)
	command.Flags().BoolVar(&without, "no-authorization", false, "remove the Authorization header")
	command.MarkFlagsMutuallyExclusive("authorization-file", "no-authorization")
	activeFlag(command, &active, false, "activate the webhook; --active=false deactivates it")
	return command
}

func newWebhookRemove(p *cli.Program) *cobra.Command {
	command := p.Takes(&cobra.Command{
		Use:     "remove",
		Short:   "Delete a webhook and cancel its pending deliveries",
		Example: "  ledgerd webhook remove acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y",
		RunE: p.OnWebhook(func(ctx context.Context, c *cli.Connection, name cli.RepoName, id string) error {
			if err := p.Ask(aboutWebhook(ctx, c, name, id, "Delete", "and cancel its pending deliveries")); err != nil {
				return err
			}
			if err := c.DeleteWebhook(ctx, name.Org, name.Repo, id); err != nil {
				return err
			}
			deleted := struct {
				ID   string `json:"id"`
				Org  string `json:"org"`
				Repo string `json:"repo"`
			}{id, name.Org, name.Repo}
			return p.Confirm(deleted, func() { terminal.Printf(p.Stdout, "Deleted webhook %s\n", terminal.Printable(id)) })
		}),
	}, cli.RepoArg, "WEBHOOK")
	p.YesFlag(command)
	return command
}

// aboutWebhook returns a function that asks whether to do something to a webhook.
func aboutWebhook(
	ctx context.Context, c *cli.Connection, name cli.RepoName, id, what, consequence string,
) func() (string, error) {
	return func() (string, error) {
		w, err := c.Webhook(ctx, name.Org, name.Repo, id)
		return fmt.Sprintf("%s the webhook of %s to %s, %s?", what, name, w.URL, consequence), err
	}
}

func newWebhookRotate(p *cli.Program) *cobra.Command {
	overlap := outbound.DefaultOverlap
	command := p.Takes(&cobra.Command{
		Use:   "rotate",
		Short: "Replace the signing secret of a webhook (shown only once)",
		Long: `Creates a new signing secret and prints only the secret to standard output. It is
in effect immediately. During the overlap period the old secret signs as well, so
that receivers can switch without losing deliveries. X-ledger-Signature is made
with the new secret, X-ledger-Signature-Previous with the old one, and
webhook-signature with both.`,
		Example: `  ledgerd webhook rotate acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y >secret
  ledgerd webhook rotate acme/api whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --overlap 0s   # the old secret has leaked`,
		RunE: p.OnWebhook(func(ctx context.Context, c *cli.Connection, name cli.RepoName, id string) error {
			after := "and stop signing with the old one at once"
			if overlap > 0 {
				after = fmt.Sprintf("and stop signing with the old one in %s", overlap)
			}
			if err := p.Ask(aboutWebhook(ctx, c, name, id, "Replace the secret of", after)); err != nil {
				return err
			}
			w, err := c.RotateWebhook(ctx, name.Org, name.Repo, id, overlap)
			if err != nil {
				return err
			}

			old := "The old secret is no longer valid."
			if w.PreviousSecretUntil != 0 {
				old = "The old secret is valid until " + w.PreviousSecretUntil.String() + "."
			}
			terminal.Printf(p.Hints(), "Created a new secret for %s. Copy it now: it won't be shown again. %s\n", w.ID, old)
			return p.Print(w, func() { terminal.Printf(p.Stdout, "%s\n", w.Secret) })
		}),
	}, cli.RepoArg, "WEBHOOK")

	command.Flags().Var(
		&flagvalue.Parsed[ledger.Duration]{Value: &overlap, Text: overlap.String(), Kind: "DURATION", Parse: parseOverlap},
		"overlap", "how long the old secret stays valid, such as 12h or 7d; 0s: not at all")

	p.YesFlag(command)
	return command
}

func parseOverlap(s string) (d ledger.Duration, err error) {
	if err = d.UnmarshalText([]byte(s)); err != nil {
		return 0, err
	}
	r := outbound.Rotation{Overlap: &d}
	if e, ok := errors.AsType[*ledger.Error](r.Check()); ok {
		return 0, errors.New(e.Fields[0].Message)
	}
	return d, nil
}
