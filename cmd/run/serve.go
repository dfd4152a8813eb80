package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

func newServe(p *cli.Program) *cobra.Command {
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve the HTTP API and the web interface",
		Long: `Serves the HTTP API and the web interface on a database file. If the file does
not exist, it is created. If the database is empty, the command prints a one-time
link that creates the first org in a browser.

SIGINT and SIGTERM stop the server: for --shutdown-delay, /readyz returns 503
while requests are still served; then running requests finish. A second signal
ends it at once. SIGHUP reloads the log level from the configuration file. Every
flag can also be set in the environment or in the configuration file; see
'ledgerd config show'.`,
		Example: `  ledgerd serve --listen 127.0.0.1:8080 --database ledger.db
  ledgerd serve --config /etc/ledgerd/config.yaml`,
		RunE: func(command *cobra.Command, _ []string) error {
			if flag, url := p.Global.ServerFlag(); url != "" {
				return cli.Usagef("serve does not take %s: it is the server", flag)
			}

			s, err := p.Settings(command)
			if err != nil {
				return err
			}
			return serve(p, command, s)
		},
	}

	config.AddFlags(command)
	return command
}

// serve runs a server until a signal or the context stops it.
func serve(p *cli.Program, command *cobra.Command, s config.Settings) error {
	// The heap is small compared to SQLite's caches. Collecting half as often costs
	// a few megabytes and saves a tenth of the CPU time.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	signal.Ignore(syscall.SIGPIPE) // otherwise the server would end with the reader of its log
	ctx, release := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
	defer release()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	log := service.OpenLog(p.Stderr, s.Log)
	defer log.Close()

	reload := func() { log.Reload(s, func() (config.Settings, error) { return p.Settings(command) }) }

	running, err := service.Start(ctx, s, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout, "listening on %s\n", listeningOn(running))
	if running.Metrics != "" {
		fmt.Fprintf(p.Stdout, "metrics on %s\n", running.Metrics)
	}
	if err = printHint(ctx, p, running, s); err == nil {
		err = running.WaitReloading(ctx, hangups, reload)
	}
	release() // a second signal ends the program at once
	log.Info("stopping", "shutdown_delay", s.ShutdownDelay)
	return errors.Join(err, running.Stop(s.ShutdownDelay, service.StopTimeout))
}

// listeningOn returns where a server listens, for a person.
func listeningOn(running *service.Instance) string {
	if running.Socket != "" {
		return "unix:" + running.Socket + ", for " + running.URL
	}
	return running.URL
}

// printHint prints what to do next if the database is empty. It ignores the end of ctx: a
// signal during the start stops the server without an error.
func printHint(ctx context.Context, p *cli.Program, running *service.Instance, s config.Settings) error {
	host, err := running.Host()
	if err != nil {
		return err
	}
	orgs, err := client.Collect(host.Orgs(context.WithoutCancel(ctx)), 1)
	if err != nil || len(orgs) > 0 {
		return err
	}
	database, err := s.Database.Absolute()
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Hints(), `
The ledger is empty. To create the first org in a browser, open this one-time link:

  %[3]s

Or set up a git repository, with its org, keys and a token for CI. In another
terminal, in a clone of it, while the server is running:

  %[1]s init --org acme --database %[2]s

`, terminal.QuoteShell(os.Args[0]), terminal.QuoteShell(database), running.SetupURL())
	return nil
}
