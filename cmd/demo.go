package cmd

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// demoCommits is how many commits the demo shows: one for each state.
const demoCommits = 5

func newDemo(p *program) *cobra.Command {
	var once bool
	var org, listen string
	command := &cobra.Command{
		Use:   "demo",
		Short: "See the ledger at work, on the last commits of this git repository",
		Long: `Starts a server on a throw-away database, makes an org, a repo, keys and tokens,
and takes the last commits of the git work tree it stands in from DRAFT to
DEPLOYED, by signed attestations through the HTTP API. What happens is shown as
the live stream tells it, and as it reaches a webhook, whose receiver checks the
signatures. Outside of a git work tree it makes a small history of its own. The
results it signs are made up.

Then it goes on serving until Ctrl-C. Nothing of it is kept.`,
		Example: "  ledgerd demo\n  ledgerd demo --once",
		Args:    takes(),
		RunE: func(command *cobra.Command, _ []string) error {
			if p.global.url != "" || command.Flags().Changed("database") {
				return usagef("demo takes no --url and no --database: it makes its own")
			}
			if err := ledger.CheckOrg(org); err != nil {
				return err
			}
			return p.demo(command.Context(), org, listen, once)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&once, "once", false, "end after the last step")
	flags.StringVar(&org, "org", "demo", "`name` of the org")
	flags.StringVar(&listen, "listen", "127.0.0.1:0", "`address` to listen on; port 0 takes a free one")
	return command
}

// demo starts the server, plays the demo, and serves on.
func (p *program) demo(ctx context.Context, org, listen string, once bool) (err error) {
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer release()
	dir, err := os.MkdirTemp("", "ledgerd-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	git, err := findHistory(ctx, filepath.Join(dir, "sample"))
	if err != nil {
		return err
	}
	s := config.Default()
	s.Listen, s.Database = listen, filepath.Join(dir, "ledger.db")
	s.Log.Level = "warn"
	s.Webhooks.AllowedNetworks = config.Networks{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	running, err := service.Start(ctx, s, s.Log.Logger(p.stderr))
	if err != nil {
		return err
	}
	stage := &stage{out: p.stdout, Painter: terminal.NewPainter(p.stdout), url: running.URL, org: org, git: git, witnesses: newWitnesses()}
	if err = stage.play(ctx, running); err == nil && !once {
		stage.showDoors()
		stage.say("\nServing until Ctrl-C; then all of it is gone.")
		err = running.Wait(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = nil // Ctrl-C in the middle
	}
	release() // a second Ctrl-C ends the program at once
	stage.witnesses.leave()
	return errors.Join(err, running.Stop(s.ShutdownTimeout), stage.witnesses.close())
}
