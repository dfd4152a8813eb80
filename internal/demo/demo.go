// Package demo plays the ledger's work on the last commits of a git repository.
package demo

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

// Options say how a demo is played.
type Options struct {
	Org    string    // name of the org
	Listen string    // address of the server
	Once   bool      // end after the last step
	Out    io.Writer // gets what happens
	Log    io.Writer // gets the server's log
}

// Play starts the server, plays the demo, and serves until the context or a signal
// ends it.
func Play(ctx context.Context, o Options) (err error) {
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
	s.Listen, s.Database = o.Listen, filepath.Join(dir, "ledger.db")
	s.Log.Level = "warn"
	s.Webhooks.AllowedNetworks = config.Networks{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	running, err := service.Start(ctx, s, s.Log.Logger(o.Log))
	if err != nil {
		return err
	}
	stage := &stage{out: o.Out, Painter: terminal.NewPainter(o.Out), url: running.URL, org: o.Org, git: git,
		witnesses: newWitnesses()}
	if err = stage.play(ctx, running); err == nil && !o.Once {
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
