// Package demo plays three weeks of a team's work on a ledger, and shows what to look at.
// The story is in chapters.go. The clock of its server starts three weeks ago.
package demo

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/internal/service"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
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
	// The end of the reader of its output, such as head, stops the demo like Ctrl-C, so that
	// its files are removed.
	ctx, unpipe := signal.NotifyContext(ctx, syscall.SIGPIPE)
	defer unpipe()
	dir, err := os.MkdirTemp("", "ledgerd-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	d := &demo{Options: o, printer: printer{terminal.NewScreen(o.Out)}, dir: dir, began: time.Now()}
	if err = d.prepare(ctx); err == nil {
		err = d.play(ctx)
	}
	if ctx.Err() != nil {
		err = nil // interrupted
	}
	release() // a second Ctrl-C ends the program at once
	return errors.Join(err, d.stop())
}

// logBase begins the name of the transparency log. A log is signed only if it has a name.
const logBase = "http://ledgerd-demo.localhost"

// A demo is one run.
type demo struct {
	Options
	printer
	dir      string
	began    time.Time
	settings config.Settings
	story    *story
	stage    *stage
}

// prepare creates the repositories and starts the server, three weeks ago.
func (d *demo) prepare(ctx context.Context) error {
	c, err := findCast(ctx)
	if err != nil {
		return err
	}
	d.story = newStory(c, d.began)
	git := filepath.Join(d.dir, "git") // no name of a repo is that of another file
	if err := os.Mkdir(git, 0o755); err != nil {
		return err
	}
	tasks := []func() error{func() error { return d.start(ctx) }}
	for _, r := range d.story.repos {
		r.Dir, r.Isolated = filepath.Join(git, r.name), true
		tasks = append(tasks, func() error { return r.create(ctx, d.story.end) })
	}
	return parallel.Do(tasks...)
}

func (d *demo) start(ctx context.Context) error {
	d.settings = config.Default()
	d.settings.Listen, d.settings.Database = d.Listen, config.Database(filepath.Join(d.dir, "ledger.db"))
	d.settings.BaseURL = logBase
	d.settings.Log.Level = "error"
	d.settings.Webhooks.AllowedNetworks = config.Networks{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
	}
	past := newClock(length + time.Since(d.story.end))
	log := &service.Log{Logger: d.settings.Log.Logger(d.Log, d.settings.Log.MinLevel())}
	running, err := service.StartAt(ctx, d.settings, log, past.now)
	if err != nil {
		return err
	}
	d.stage = &stage{clock: past, running: running, org: d.Org, observers: newObservers()}
	if d.stage.logs, err = serveLogs(); err != nil {
		return err
	}
	return d.stage.setUp(ctx, d.story.signers())
}

// play plays the story and then the show, and serves until ctx is done.
func (d *demo) play(ctx context.Context) error {
	if err := d.story.play(ctx, d.stage); err != nil {
		return err
	}
	opened := d.introduce()
	w := &show{printer: d.printer, stage: d.stage, story: d.story}
	if err := w.follow(ctx); err != nil {
		return err
	}
	if d.Once {
		d.heading("Live: a commit on its way to production")
		return w.deliver(ctx, d.story.sights.live[0])
	}

	w.pause = livePause
	if err := d.perform(ctx, w, opened); err != nil {
		return err
	}
	return d.stage.running.Wait(ctx)
}

const (
	// signInTime is how long the link works that signs in.
	signInTime = 15 * time.Minute
	// patience is how long the live part waits for somebody to open this link.
	patience = 30 * time.Second
	// lookTime is how long a visitor looks at the first page before it moves.
	lookTime = 3 * time.Second
	// livePause is the time between two steps of the live part, for people to see them.
	livePause = 1500 * time.Millisecond
)

// perform plays the live part once somebody has opened the link, but at the latest when the
// patience is over. If nobody had by then, it plays again for the first who does.
func (d *demo) perform(ctx context.Context, w *show, opened <-chan struct{}) error {
	d.heading("Live: a commit on its way to production")
	d.print("  %s", d.faint("begins when you open the link, or in half a minute"))
	commits := d.story.sights.live
	select {
	case <-opened:
		commits = commits[:1]
	case <-time.After(patience):
	case <-ctx.Done():
		return ctx.Err()
	}

	for i, c := range commits {
		if i > 0 {
			select {
			case <-opened:
				d.heading("Live: another one, since you are here now")
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := sleep(ctx, lookTime); err != nil {
			return err
		}
		if err := w.deliver(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// stop stops the server and everything that listens to it.
func (d *demo) stop() error {
	if d.stage == nil {
		return nil // it has not started
	}
	d.stage.observers.unfollow()
	err := errors.Join(d.stage.running.Stop(0, service.StopTimeout), d.stage.stopReceivers())
	if d.stage.logs != nil {
		err = errors.Join(err, d.stage.logs.stop())
	}
	return err
}

// introduce prints what there is, and what to look at. The channel is closed when somebody has
// signed in with the link that it prints.
func (d *demo) introduce() (opened <-chan struct{}) {
	s := d.story
	d.print("%s", d.Paint(terminal.Bold, "Three weeks of a team's work"))
	d.print("  %d repos, %d commits, %d signed attestations, recorded in %.1f s.", len(s.repos), s.commits(),
		d.stage.attestations, time.Since(d.began).Seconds())
	if s.folder == "" {
		d.print("  A sample team that ships parcels.")
	} else {
		d.print("  Names come from this git work tree, %s. What happens is made up.", terminal.Printable(s.folder))
	}
	if !d.Once {
		d.print("  The server runs until Ctrl-C, which deletes everything.")
	}

	link, opened := d.stage.running.SignInURL(d.stage.visitor, signInTime)
	d.heading("Open this link to sign in")
	d.print("  %s", d.Paint(terminal.Underlined, link))
	d.print("  %s", d.faint("It works once, on this machine, for 15 minutes. After that, sign in with this token:"))
	d.print("  %s", d.faint(d.stage.visitor.Secret))

	d.heading("Six things to look at")
	page, _, _ := strings.Cut(link, "/login")
	page += "/orgs/" + d.Org
	commit := func(c *commit) string { return page + "/repos/" + c.in.name + "/commits/" + ledger.Short(c.sha) }
	for i, look := range []struct{ what, url string }{
		{"Two deployments that the policy did not allow: one was excused, one is open", page + "/violations?status=all"},
		{"A squash in production: tests and review carry from its branch", commit(s.sights.squash)},
		{"Branches that will conflict, before anyone merges them", page + "/repos/" + s.product + "/radar"},
		{"A commit that has waited for its review for three days", commit(s.sights.waiting)},
		{"A webhook whose receiver is down, next to one that works", page + "/repos/" + s.product + "/webhooks"},
		{"The transparency log, with which anybody can check that nothing was altered", page + "/log"},
	} {
		d.print("  %d  %s\n     %s", i+1, look.what, d.faint(look.url))
	}
	return opened
}
