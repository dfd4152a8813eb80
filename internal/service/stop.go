package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/term"
)

// Wait waits until ctx is done and returns nil. If the HTTP server fails first, it
// returns the error.
func (v *Instance) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-v.failed:
		return err
	}
}

// WaitReloading is Wait, and calls reload on each hangup signal. If the signal comes
// from the terminal, because it was closed, WaitReloading returns nil instead.
func (v *Instance) WaitReloading(ctx context.Context, hangups <-chan os.Signal, reload func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	interactive := onTerminal()
	var reloading sync.WaitGroup
	reloading.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-hangups:
				if interactive && !onTerminal() {
					stop()
				} else {
					reload()
				}
			}
		}
	})

	err := v.Wait(ctx)
	stop()
	reloading.Wait()
	return err
}

// onTerminal reports whether a standard stream is a terminal that is open.
func onTerminal() bool {
	return slices.ContainsFunc([]*os.File{os.Stdin, os.Stdout, os.Stderr}, func(f *os.File) bool {
		return term.IsTerminal(int(f.Fd()))
	})
}

// firstTimeout is how long Stop waits for the first requests of connections that have
// been accepted. Browsers open some in advance, without a request.
const firstTimeout = 500 * time.Millisecond

// serveFor waits for the delay. If the HTTP server fails first, it returns the error.
func (v *Instance) serveFor(delay time.Duration) error {
	if delay == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), delay)
	defer cancel()
	return v.Wait(ctx)
}

// shutDown shuts the HTTP server down. It returns an error if requests do not finish
// within the timeout for another reason than their clients.
func (v *Instance) shutDown(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := v.http.Shutdown(ctx)
	if err == nil {
		err = v.api.WaitForStreams(ctx)
	}
	if err == nil {
		return nil
	}

	open, waiting := v.clients.waitForClients()
	closed := errors.Join(v.http.Close(), v.clients.closeAll())
	if waiting {
		v.log.Warn("connections closed: their clients neither sent nor read anything", "connections", open)
		return closed
	}
	return errors.Join(fmt.Errorf("requests did not finish within %v: %w", timeout, err), closed)
}
