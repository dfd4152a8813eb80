// Package demo demonstrates the ledger on the latest commits of a git repository.
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

// Options configures a demo.
type Options struct {
	Org    string    // name of the org
	Listen string    // address of the server
	Once   bool      // exit after the last step
	Out    io.Writer // receives the narration
	Log    io.Writer // receives the server's log
}

// Play starts a server on a temporary database and runs the demo. Unless o.Once is
// set, it then serves until the context is cancelled or a signal arrives.
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
	running, err := service.Start(ctx, s, s.Log.Logger(o.Log, s.Log.MinLevel()))
	if err != nil {
		return err
	}

	r := &runner{out: o.Out, Painter: terminal.NewPainter(o.Out), url: running.URL, org: o.Org, git: git,
		observers: newObservers()}
	if err = r.run(ctx, running); err == nil && !o.Once {
		r.showAccess()
		r.print("\nServing until Ctrl-C. Then the database is deleted.")
		err = running.Wait(ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = nil // interrupted
	}
	release() // a second Ctrl-C ends the program at once
	r.observers.unfollow()
	return errors.Join(err, running.Stop(0, s.ShutdownTimeout), r.observers.close())
}
