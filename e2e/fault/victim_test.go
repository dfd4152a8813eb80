package fault_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ledgerd/ledgerd/cmd"
	"github.com/ledgerd/ledgerd/e2e/internal/daemon"
	"github.com/ledgerd/ledgerd/e2e/internal/filecheck"
	"github.com/ledgerd/ledgerd/e2e/internal/load"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// isLong reports whether everything is run, as often as docs/reliability.md says.
func isLong() bool { return testenv.CurrentLevel() == testenv.Full }

// times returns the number of runs of a scenario.
func times(short, all int) int { return testenv.Pick(short, short, all) }

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ledgerd": func() { os.Exit(cmd.Execute()) },
	})
}

// slow skips the test below the full level. Together, these tests take a minute of both cores.
func slow(t *testing.T) {
	t.Helper()
	testenv.From(t, testenv.Full, "takes seconds of both cores")
}

// A victim is a server with its database, and clients that use it.
type victim struct {
	t                      *testing.T
	database, address, url string
	load                   *load.Load
	follower               *load.Follower
	server                 *exec.Cmd
	log                    testenv.Buffer
	// answersAll reports whether nothing may be recorded of a request without an answer.
	answersAll bool

	tally
}

// A tally counts checks of the file and what they found.
type tally struct {
	runs, intact int
	lost, kept   int // records that were confirmed and are not there, or refused and are there
}

// add adds a check with the problems that it found.
func (c *tally) add(problems []string) {
	c.runs++
	if len(problems) == 0 {
		c.intact++
	}
	for _, p := range problems {
		if strings.HasSuffix(p, filecheck.Lost) {
			c.lost++
		}
		if strings.HasSuffix(p, filecheck.Kept) {
			c.kept++
		}
	}
}

// newVictim creates a database in dir, and starts a server.
func newVictim(t *testing.T, dir string) *victim {
	t.Helper()
	testenv.Need(t, "python3")
	v := &victim{t: t, database: filepath.Join(dir, "ledger.db")}
	var err error
	v.address, err = testenv.FreeAddress()
	must.OK(t, err)
	v.url = "http://" + v.address
	v.load, err = load.New(t.Context(), v.database)
	must.OK(t, err)
	t.Cleanup(v.load.Close)

	v.start()
	v.follower, err = v.load.Follow(t.Context(), v.url)
	must.OK(t, err)
	t.Cleanup(v.follower.Close)
	return v
}

// start starts the server and waits until it is ready.
func (v *victim) start() {
	v.t.Helper()
	v.startAs(v.command())
}

// command returns the command that serves the database.
func (v *victim) command() *exec.Cmd {
	serve := exec.Command("ledgerd", "serve", "--listen", v.address, "--database", v.database)
	serve.Env = append(append(os.Environ(), load.Settings()...), "LEDGERD_SHUTDOWN_DELAY=300ms")
	return serve
}

// startAs starts the server with a command and waits until it is ready.
func (v *victim) startAs(serve *exec.Cmd) {
	v.t.Helper()
	v.server = serve
	v.log.Reset()
	must.OK(v.t, daemon.Start(v.server, &v.log))
	v.t.Cleanup(func() { v.stop(syscall.SIGKILL) })
	v.waitReady()
}

// stop sends a signal to the server and returns how it ended.
func (v *victim) stop(s os.Signal) error {
	v.server.Process.Signal(s)
	return v.server.Wait()
}

// ready returns the status of /readyz; 0 if the server does not answer.
func (v *victim) ready() int { return statusOf(v.url) }

// statusOf returns the status of /readyz of a server; 0 if it does not answer.
func statusOf(url string) int {
	response, err := http.Get(url + "/readyz")
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

func (v *victim) waitReady() {
	v.t.Helper()
	v.wait("/readyz to return 200", func() bool { return v.ready() == http.StatusOK })
}

// wait polls done until it returns true.
func (v *victim) wait(what string, done func() bool) {
	v.t.Helper()
	waitFor(v.t, what, &v.log, done)
}

// waitForRefusals waits until a load has been refused n times since now.
func waitForRefusals(t *testing.T, l *load.Load, log *testenv.Buffer, n int) {
	t.Helper()
	n += l.Book.Count(filecheck.Refused)
	waitFor(t, "refused requests", log, func() bool { return l.Book.Count(filecheck.Refused) >= n })
}

// waitFor polls done until it returns true. If that takes too long, the test fails with the log of
// a server.
func waitFor(t *testing.T, what string, log *testenv.Buffer, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s\n%s", what, log.String())
		}
	}
}

// under puts the server under load while what runs.
func (v *victim) under(what func()) {
	v.t.Helper()
	ctx, stop := context.WithCancel(v.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.load.Run(ctx, v.url, 4, 2*time.Millisecond) }()
	defer func() {
		stop()
		must.OK(v.t, <-ended)
	}()
	what()
}

// works checks that the server is ready and records again.
func (v *victim) works() {
	v.t.Helper()
	v.waitReady()
	before := v.load.Book.Count(filecheck.Confirmed)
	v.under(func() {
		v.wait("new records", func() bool { return v.load.Book.Count(filecheck.Confirmed) >= before+20 })
	})
}

// check checks the file of the stopped server. It counts a run.
func (v *victim) check() {
	v.t.Helper()
	notes := v.load.Book.Notes()
	for i, n := range notes {
		if n.Outcome == filecheck.Unknown && v.answersAll {
			notes[i].Outcome = filecheck.Refused
		}
	}
	problems, err := filecheck.Check(v.t.Context(), v.database, notes, time.Now)
	must.OK(v.t, err)
	if v.add(problems); len(problems) > 0 {
		v.t.Errorf("run %d: the file has these problems:\n%s", v.runs, strings.Join(problems, "\n"))
	}
}

// finish checks that the server works, that it delivers all that it has recorded, and that
// it stops well. Then it checks the file once more, and logs a row of the table in
// docs/reliability.md.
func (v *victim) finish(fault string) {
	v.t.Helper()
	v.works()
	_, err := v.load.Delivered(v.t.Context(), v.url, v.follower, 2*time.Minute)
	if err != nil {
		v.t.Errorf("not everything was delivered: %v\n%s", err, v.log.String())
	}
	if err := v.stop(syscall.SIGTERM); err != nil {
		v.t.Errorf("stop: %v\n%s", err, v.log.String())
	}
	runs := v.runs
	v.check()
	v.logRow(fault, runs, v.load.Book)
}

// logRow logs a row of the table in docs/reliability.md.
func (v *victim) logRow(fault string, runs int, book *filecheck.Notebook) {
	v.t.Helper()
	v.t.Logf("\n| %s | %d | %d | %d | %d | %d | %d | %d of %d |", fault, runs, book.Count(filecheck.Confirmed),
		v.lost, book.Count(filecheck.Refused), v.kept, book.Count(filecheck.Unknown), v.intact, v.runs)
}

// exitStatus returns the exit status of a process.
func exitStatus(err error) int {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// copyFile copies a file.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}
