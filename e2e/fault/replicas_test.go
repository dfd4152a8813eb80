//go:build unix

package fault_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/e2e/internal/daemon"
	"github.com/ledgerd/ledgerd/e2e/internal/filecheck"
	"github.com/ledgerd/ledgerd/e2e/internal/load"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// Replicas are servers with one PostgreSQL database, and clients that use all of them.
type replicas struct {
	t    *testing.T
	url  string // of the database
	keys string
	load *load.Load
	list []*replica
	tally
}

// A replica is one of the servers, with a client that follows its stream.
type replica struct {
	address, url string
	state        string // the folder with what it has signed
	server       *exec.Cmd
	log          testenv.Buffer
	follower     *load.Follower
}

// newReplicas starts n replicas with the database at a URL.
func newReplicas(t *testing.T, n int, url string) *replicas {
	t.Helper()
	testenv.Need(t, "python3")
	r := &replicas{t: t, url: url, keys: filepath.Join(t.TempDir(), "keys")}
	r.run("log", "new-seed", r.keys)
	var err error
	r.load, err = load.New(t.Context(), r.url)
	must.OK(t, err)
	t.Cleanup(r.load.Close)

	for range n {
		address := must.Get(testenv.FreeAddress())(t)
		state := filepath.Join(t.TempDir(), "state")
		r.list = append(r.list, &replica{address: address, url: "http://" + address, state: state})
	}
	for _, one := range r.list {
		r.start(one)
		one.follower, err = r.load.Follow(t.Context(), one.url)
		must.OK(t, err)
		t.Cleanup(one.follower.Close)
	}
	return r
}

// start starts a replica and waits until it is ready.
func (r *replicas) start(one *replica) {
	r.t.Helper()
	one.server = exec.Command("ledgerd", "serve", "--listen", one.address)
	one.server.Env = append(append(os.Environ(), load.Settings()...), "LEDGERD_DATABASE="+r.url,
		"LEDGERD_LOG_KEY_DIR="+r.keys, "LEDGERD_LOG_STATE_DIR="+one.state, "LEDGERD_BASE_URL=http://ledger.example",
		"LEDGERD_SHUTDOWN_DELAY=300ms")
	one.log.Reset()
	server := one.server
	must.OK(r.t, daemon.Start(server, &one.log))
	r.t.Cleanup(func() { _ = server.Process.Kill() })
	waitFor(r.t, "the replica to be ready", &one.log, func() bool { return statusOf(one.url) == http.StatusOK })
}

// signed returns how many events the last checkpoint covers that the replica knows.
func (r *replica) signed(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.state, "acme.1.checkpoint"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	must.OK(t, err)
	checkpoint := must.Get(proof.ReadCheckpoint(text))(t)
	return checkpoint.Size
}

// under puts all replicas under load while what runs.
func (r *replicas) under(what func()) {
	r.t.Helper()
	ctx, stop := context.WithCancel(r.t.Context())
	ended := make(chan error, len(r.list))
	for _, one := range r.list {
		go func() { ended <- r.load.Run(ctx, one.url, 3, 2*time.Millisecond) }()
	}
	defer func() {
		stop()
		for range r.list {
			must.OK(r.t, <-ended)
		}
	}()
	what()
}

// finish waits until all is delivered, on the streams of all replicas and to the webhooks, and
// stops them. Then it checks a copy of the database as one of SQLite, with the answers of clients.
func (r *replicas) finish(fault string, runs int) {
	r.t.Helper()
	before := r.load.Book.Count(filecheck.Confirmed)
	r.under(func() {
		recorded := func() bool { return r.load.Book.Count(filecheck.Confirmed) >= before+20 }
		waitFor(r.t, "new records", &r.list[0].log, recorded)
	})
	for _, one := range r.list {
		events, err := r.load.Delivered(r.t.Context(), one.url, one.follower, 2*time.Minute)
		if err != nil {
			r.t.Errorf("not everything was delivered: %v\n%s", err, one.log.String())
		}
		r.t.Logf("%d events on the stream of %s", events, one.address)
	}
	for _, one := range r.list {
		one.server.Process.Signal(syscall.SIGTERM)
		if err := one.server.Wait(); err != nil {
			r.t.Errorf("stop: %v\n%s", err, one.log.String())
		}
		log := one.log.String()
		if strings.Count(log, "LOG IS NOT SIGNED") > strings.Count(log, "is signed again") {
			r.t.Errorf("a log was not signed:\n%s", log)
		}
	}

	file := filepath.Join(r.t.TempDir(), "copy.db")
	r.run("copy", "--from", r.url, "--to", file)
	problems, err := filecheck.Check(r.t.Context(), file, r.load.Book.Notes(), time.Now)
	must.OK(r.t, err)
	if r.add(problems); len(problems) > 0 {
		r.t.Errorf("the copy has these problems:\n%s", strings.Join(problems, "\n"))
	}
	for _, one := range r.list {
		r.run("check", "--database", file, "--seen", filepath.Join(one.state, "acme.1.checkpoint"))
	}
	book := r.load.Book
	r.t.Logf("\n| %s | %d | %d | %d | %d | %d | %d | %d of %d |", fault, runs, book.Count(filecheck.Confirmed),
		r.lost, book.Count(filecheck.Refused), r.kept, book.Count(filecheck.Unknown), r.intact, r.runs)
}

// get returns the status and the body of a response.
func (r *replicas) get(url string) (status int, body string) {
	request := must.Get(http.NewRequestWithContext(r.t.Context(), http.MethodGet, url, nil))(r.t)
	request.Header.Set("Authorization", "Bearer "+r.load.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text := must.Get(io.ReadAll(response.Body))(r.t)
	return response.StatusCode, string(text)
}

// run runs a command on the host.
func (r *replicas) run(args ...string) {
	r.t.Helper()
	command := exec.Command("ledgerd", args...)
	command.Env = append(os.Environ(), "LEDGERD_LOG_KEY_DIR="+r.keys)
	if output, err := command.CombinedOutput(); err != nil {
		r.t.Errorf("ledgerd %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// Two replicas lose nothing and send nothing twice, whichever of them is killed, whichever of
// their sessions end, and when the database crashes.
func TestFaultReplicas(t *testing.T) {
	slow(t)
	t.Parallel()
	cluster := pgtest.Start(t)
	r := newReplicas(t, 2, cluster.NewDatabase(t))
	runs := times(6, 50)
	for run := range runs {
		r.under(func() {
			aMoment()
			victim := r.list[rand.IntN(len(r.list))]
			switch run % 3 {
			case 0:
				victim.server.Process.Kill()
				_ = victim.server.Wait() // it was killed
			case 1:
				must.OK(t, cluster.Exec(t.Context(), cluster.AdminURL(), `
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ledgerd' AND random() < 0.5`))
			case 2:
				cluster.Stop(t, "immediate")
				cluster.Run(t)
			}
			aMoment()
			if run%3 == 0 {
				r.start(victim)
			}
		})

		for _, one := range r.list {
			waitFor(t, "the replica to recover", &one.log, func() bool { return statusOf(one.url) == http.StatusOK })
		}
	}
	r.finish("two replicas: `kill -9`, ended sessions, crash of PostgreSQL", runs)
}
