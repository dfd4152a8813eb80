package cmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

func newServe(p *program) *cobra.Command {
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve the HTTP API and the web interface",
		Long: `Serves the HTTP API and the web interface on a database file, which is made
where there is none. On an empty one it prints a link that works once, by which
the first org is made in a browser.
SIGINT and SIGTERM stop it: requests under way are finished first. Every flag can
also be set in the environment or in the file that --config names; see
'ledgerd config show'.`,
		Example: `  ledgerd serve --listen 127.0.0.1:8080 --database ledger.db
  ledgerd serve --config /etc/ledgerd/config.yaml`,
		Args: takes(),
		RunE: func(command *cobra.Command, _ []string) error {
			if p.global.url != "" {
				return usagef("serve takes no --url: it is the server")
			}
			s, err := p.settings(command)
			if err != nil {
				return err
			}
			return p.serve(command.Context(), s)
		},
	}
	config.AddFlags(command)
	return command
}

// serve runs a server until a signal or the context stops it.
func (p *program) serve(ctx context.Context, s config.Settings) error {
	// The heap is small beside SQLite's caches: to collect half as often costs
	// a few megabytes, and spares a tenth of the time.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer release()
	log := s.Log.Logger(p.stderr)
	running, err := service.Start(ctx, s, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "listening on %s\n", running.URL)
	err = p.hint(ctx, running, s)
	if err == nil {
		err = running.Wait(ctx)
	}
	release() // a second signal ends the program at once
	log.Info("stopping")
	return errors.Join(err, running.Stop(s.ShutdownTimeout))
}

// hint tells, on an empty database, what to do next.
func (p *program) hint(ctx context.Context, running *service.Instance, s config.Settings) error {
	host, err := running.Host()
	if err != nil {
		return err
	}
	orgs, err := client.Collect(host.Orgs(ctx), 1)
	if err != nil || len(orgs) > 0 {
		return err
	}
	fmt.Fprintf(p.stderr, `
The ledger is empty. Make its first org in a browser, by this link that works once:

  %[3]s

Or, while this runs, in another terminal:

  %[1]s org create acme --database %[2]s
  %[1]s repo create acme/api --database %[2]s
  %[1]s keygen --dn 'cn=ci,ou=build,o=acme' --out ci
  %[1]s identity add --org acme --cert ci.crt --database %[2]s
  %[1]s token create --org acme --name ci --scope write --database %[2]s

`, terminal.QuoteShell(os.Args[0]), terminal.QuoteShell(s.Database), visitURL(running.URL)+running.SetupPath())
	return nil
}

// visitURL returns the URL by which a browser on this machine gets to where
// the server listens: [::]:8080 is no place to go.
func visitURL(listening string) string {
	u, err := url.Parse(listening)
	if err != nil {
		return listening
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", u.Port())
	}
	return u.String()
}
