package manage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/events"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

func newWebhookListen(p *cli.Program) *cobra.Command {
	var v events.Receiver
	var listen string
	command := &cobra.Command{
		Use:   "listen",
		Short: "Receive webhooks on this machine, verify and print them",
		Long: `Receives webhooks on this machine, for testing. It verifies the signature of each
delivery, prints a line and responds with 204, or with 401 if the signature is
invalid. Without a secret it accepts every delivery and marks it as not verified.
On start it prints how to have a server deliver to it. Ctrl-C stops it.

With -o json it prints one JSON object per line, with the body of the delivery
and whether it was verified.`,
		Example: `  LEDGERD_WEBHOOK_SECRET_FILE=secret ledgerd webhook listen
  ledgerd webhook listen --listen 127.0.0.1:9000 --status 500   # watch the retries`,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if v.Status != 0 && (v.Status < 200 || v.Status > 599) {
				return cli.Usagef("invalid --status %d: use 200 to 599", v.Status)
			}
			if v.Path != "" && !strings.HasPrefix(v.Path, "/") {
				return cli.Usagef("invalid --path %q: start it with /", v.Path)
			}
			if v.Secret, err = webhookSecret(v.Secret, command.Flags().Changed("secret")); err != nil {
				return err
			}
			return receive(command.Context(), p, listen, &v)
		},
	}
	flags := command.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:9000", "`address` to listen on; port 0 picks a free port")
	flags.StringVar(&v.Secret, "secret", "", "the webhook's signing `secret`; visible to other users of this machine: "+
		"prefer "+config.WebhookSecretVariable+" or "+config.WebhookSecretVariable+"_FILE")
	flags.StringVar(&v.Path, "path", "", "only accept deliveries to this `path` (default any)")
	flags.IntVar(&v.Status, "status", 0, "HTTP `status` to respond with instead of 204")
	return command
}

// errWebhookSecret does not contain the secret.
var errWebhookSecret = errors.New(
	"invalid webhook secret: use whsec_ and the base64 after it, as 'ledgerd webhook add' printed it")

// webhookSecret returns the signing secret from the flag, if it was given, or else the environment,
// or "" if neither is set. Its errors do not contain the secret.
func webhookSecret(flag string, given bool) (string, error) {
	if given {
		secret, err := checkedSecret(flag)
		if err != nil {
			return "", cli.Usagef("%w", err)
		}
		return secret, nil
	}

	if secret := os.Getenv(config.WebhookSecretVariable); secret != "" {
		return checkedSecret(secret)
	}
	secret, err := cli.SecretIn(config.WebhookSecretVariable + "_FILE")
	if secret == "" || err != nil {
		return "", err
	}
	return checkedSecret(secret)
}

// checkedSecret returns a signing secret without the spaces around it.
func checkedSecret(text string) (string, error) {
	secret := strings.TrimSpace(text)
	if _, ok := outbound.WebhookKey(secret); !ok {
		return "", errWebhookSecret
	}
	return secret, nil
}

// receive prints deliveries as they arrive, until interrupted.
func receive(ctx context.Context, p *cli.Program, listen string, v *events.Receiver) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}

	failed := make(chan error, 1)
	print := events.ReceiptPrinter(p.Lines(), p.Global.Output == "json")
	v.Received = func(t events.Receipt) {
		if err := print(t); err != nil {
			select {
			case failed <- err:
			default: // an error is already reported
			}
		}
	}

	receiveHint(p, listener.Addr(), v)
	log := config.Default().Log
	r := events.Serve(listener, v, log.Logger(p.Stderr, log.MinLevel()))
	select {
	case <-ctx.Done():
		return r.Stop() // interrupted: the usual end
	case err = <-failed:
		return errors.Join(err, r.Stop())
	case err = <-r.Failed:
		return fmt.Errorf("receiving: %w", err)
	}
}

// receiveHint prints how to have a server deliver to this receiver.
func receiveHint(p *cli.Program, address net.Addr, v *events.Receiver) {
	hostPort, network := events.LocalAddress(address)
	url := "http://" + hostPort + v.Path
	terminal.Printf(p.Hints(), `receiving on %[1]s (Ctrl-C to stop)

To have a server on this machine deliver here, allow it to post to private
addresses. 'webhook add' needs the same setting if it works on the database file:

  export %[2]s=%[3]s
  ledgerd serve
  ledgerd webhook add ORG/REPO --url %[1]s

`, terminal.QuoteShell(url), config.Variable("webhooks.allowed_networks"), network)
	if v.Secret == "" {
		terminal.Printf(p.Hints(), "Signatures are not verified: set --secret, %s or %[1]s_FILE.\n\n",
			config.WebhookSecretVariable)
	}
}
