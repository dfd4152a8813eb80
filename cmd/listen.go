package cmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/eventline"
	"github.com/ledgerd/ledgerd/internal/receiver"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

func newWebhookListen(p *program) *cobra.Command {
	var v receiver.Handler
	var listen string
	command := &cobra.Command{
		Use:   "listen",
		Short: "Receive webhooks here, check their signatures and print them",
		Long: `Receives webhooks on this machine, to try them out: checks the signature of what
arrives, prints a line for it and answers 204, or 401 where the signature is
wrong. Without a secret it takes everything and says that it is not verified.
It begins by telling how to have a server deliver to it. Ctrl-C ends it.

With -o json it prints an object a line: what arrived as its body, and whether it
is verified.`,
		Example: `  LEDGERD_WEBHOOK_SECRET_FILE=secret ledgerd webhook listen
  ledgerd webhook listen --listen 127.0.0.1:9000 --status 500   # see how it is tried again`,
		Args: takes(),
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if v.Status != 0 && (v.Status < 200 || v.Status > 599) {
				return usagef("--status %d is not valid: use 200 to 599", v.Status)
			}
			if v.Path != "" && !strings.HasPrefix(v.Path, "/") {
				return usagef("--path %q does not begin with /", v.Path)
			}
			if v.Secret, err = webhookSecret(v.Secret); err != nil {
				return err
			}
			return p.receive(command.Context(), listen, &v)
		},
	}
	flags := command.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:9000", "`address` to listen on; port 0 takes a free one")
	flags.StringVar(&v.Secret, "secret", "", "the webhook's signing `secret`; others on this machine can see it, so "+
		"rather set "+config.WebhookSecretVariable+" or "+config.WebhookSecretVariable+"_FILE")
	flags.StringVar(&v.Path, "path", "", "`path` that is answered, and no other (default every one)")
	flags.IntVar(&v.Status, "status", 0, "HTTP `status` to answer with instead of 204")
	return command
}

// webhookSecret returns the signing secret that the flag or the environment
// gives, empty where none does.
func webhookSecret(flag string) (string, error) {
	const none = "the secret is none of a webhook: it has to begin with whsec_"
	secret := strings.TrimSpace(flag)
	if secret != "" && !isWebhookSecret(secret) {
		return "", usagef(none)
	}
	if secret == "" {
		secret = os.Getenv(config.WebhookSecretVariable)
	}
	if file := os.Getenv(config.WebhookSecretVariable + "_FILE"); secret == "" && file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("%s_FILE: %w", config.WebhookSecretVariable, err)
		}
		if secret = strings.TrimSpace(string(text)); secret == "" {
			return "", fmt.Errorf("%s_FILE: %s is empty", config.WebhookSecretVariable, file)
		}
	}
	secret = strings.TrimSpace(secret)
	if secret != "" && !isWebhookSecret(secret) {
		return "", errors.New(none)
	}
	return secret, nil
}

func isWebhookSecret(text string) bool { return strings.HasPrefix(text, "whsec_") }

// receive prints what arrives until it is interrupted.
func (p *program) receive(ctx context.Context, listen string, v *receiver.Handler) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	written := make(chan error, 1)
	print := p.receiptPrinter()
	v.Took = func(t receiver.Receipt) {
		if err := print(t); err != nil {
			select {
			case written <- err:
			default: // one is enough
			}
		}
	}
	p.receiveHint(listener.Addr(), v)
	r := receiver.Serve(listener, v, config.Default().Log.Logger(p.stderr))
	select {
	case <-ctx.Done():
		return r.Stop() // Ctrl-C is how it ends
	case err = <-written:
		return errors.Join(err, r.Stop())
	case err = <-r.Failed:
		return fmt.Errorf("receiving: %w", err)
	}
}

// receiveHint tells how to have a server deliver to where we listen.
func (p *program) receiveHint(address net.Addr, v *receiver.Handler) {
	at, network := hintAddress(address)
	url := "http://" + at + v.Path
	fmt.Fprintf(p.stderr, `receiving on %[1]s until Ctrl-C

To have a server on this machine deliver here, give it leave to post to private
addresses, and likewise to 'webhook add' where that works on the database file:

  export %[2]s=%[3]s
  ledgerd serve
  ledgerd webhook add ORG/REPO --url %[1]s

`, terminal.QuoteShell(url), config.Variable("webhooks.allowed_networks"), network)
	if v.Secret == "" {
		fmt.Fprintf(p.stderr, "Nothing is verified: there is no --secret and no %s or %[1]s_FILE.\n\n",
			config.WebhookSecretVariable)
	}
}

// hintAddress returns where this machine reaches what listens on an address,
// and the network that has to be allowed for that.
func hintAddress(address net.Addr) (at, network string) {
	a, err := netip.ParseAddrPort(address.String())
	if err != nil || a.Addr().IsUnspecified() {
		a = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.Port())
	}
	if ip := a.Addr(); ip.Is4() && ip.IsLoopback() {
		return a.String(), "127.0.0.0/8"
	}
	return a.String(), netip.PrefixFrom(a.Addr().WithZone(""), a.Addr().BitLen()).String()
}

// receiptPrinter returns what prints a line for each delivery.
func (p *program) receiptPrinter() func(receiver.Receipt) error {
	if p.global.output == "json" {
		return func(t receiver.Receipt) error {
			text, err := json.Marshal(t)
			if err != nil {
				return fmt.Errorf("writing JSON: %w", err)
			}
			_, err = p.stdout.Write(append(text, '\n'))
			return err
		}
	}
	lines := &eventline.Printer{Painter: terminal.NewPainter(p.stdout)}
	return func(t receiver.Receipt) error {
		_, err := p.stdout.Write(lines.Receipt(t))
		return err
	}
}
