package service

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/transparency/witness/witnesstest"
)

// A watched is a server whose log a witness cosigns.
type watched struct {
	t        *testing.T
	settings config.Settings
	output   *testenv.Buffer
	running  *Instance
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	folder := t.TempDir()
	s := &watched{t: t, settings: config.Default(), output: new(testenv.Buffer)}
	s.settings.Listen = "127.0.0.1:0"
	s.settings.Database = config.Database(filepath.Join(folder, "ledger.db"))
	s.settings.NoCopy = true
	must.OK(t, s.settings.BaseURL.UnmarshalText([]byte("https://a.example")))
	t.Cleanup(s.stop)
	return s
}

func (s *watched) start() {
	s.t.Helper()
	v, err := Start(s.t.Context(), s.settings, &Log{Logger: slog.New(slog.NewTextHandler(s.output, nil))})
	must.OK(s.t, err)
	s.running = v
}

func (s *watched) stop() {
	if s.running != nil {
		if err := s.running.Stop(0, 5*time.Second); err != nil {
			s.t.Error(err)
		}
		s.running = nil
	}
}

// begin creates the org with its first event and checkpoint, and returns the key of the log.
func (s *watched) begin() string {
	s.t.Helper()
	s.start()
	storetest.CreateAcme(s.t, s.running.db)
	s.grow(1)
	s.sign()
	l, err := s.running.db.Log(s.t.Context(), "acme", 0)
	must.OK(s.t, err)
	return l.VKey
}

// grow adds an event.
func (s *watched) grow(i int) {
	s.t.Helper()
	_, err := s.running.db.LogKey(s.t.Context(), "acme", ledger.KeyEvent{Key: fmt.Sprint(i)})
	must.OK(s.t, err)
}

func (s *watched) sign() {
	s.t.Helper()
	if err := s.running.logs.signer.SignAll(s.t.Context(), true); err != nil {
		s.t.Error(err)
	}
}

// watch lets a witness cosign the log.
func (s *watched) watch(w *witnesstest.Witness, log string) {
	s.t.Helper()
	w.Trust(s.t, log)
	s.settings.Log.Policy = filepath.Join(filepath.Dir(string(s.settings.Database)), "policy")
	must.OK(s.t, os.WriteFile(s.settings.Log.Policy, w.Policy(), 0o600))
}

// verified verifies the newest checkpoint of a log with the policy of the server.
func (s *watched) verified(log string) (trustpolicy.Verification, store.Log, error) {
	s.t.Helper()
	l, err := s.running.db.Log(s.t.Context(), "acme", 0)
	must.OK(s.t, err)
	p, err := s.settings.Log.LoadPolicy()
	must.OK(s.t, err)
	key, err := trustpolicy.ParseKey(log, trustpolicy.LogTypes()...)
	must.OK(s.t, err)
	v, err := p.Verify(l.Checkpoint, key)
	return v, l, err
}

// wantCosigned returns the newest checkpoint, once it has been cosigned. Requests that failed, or took
// the witness too long, are repeated after a while.
func (s *watched) wantCosigned(log string) proof.Checkpoint {
	s.t.Helper()
	v, l, err := s.verified(log)
	for try := 0; err != nil; try++ {
		if try == 200 {
			s.t.Fatalf("%s\n%s\n%s", err, l.Checkpoint, s.output)
		}
		time.Sleep(50 * time.Millisecond)
		s.sign()
		v, l, err = s.verified(log)
	}

	c := must.Get(proof.ParseCheckpoint(v.Text))(s.t)
	if c.Size != l.Leaves {
		s.t.Fatalf("the checkpoint has size %d, and the log %d", c.Size, l.Leaves)
	}
	return c
}

func (s *watched) problem() string { return s.running.logs.signer.Problems()["acme"] }

// TestWitnessCosignsUntilTheLogForks lets a witness cosign a log while it grows. Then the server
// serves another history, with the same key: the witness does not cosign it, and the server stops
// signing.
func TestWitnessCosignsUntilTheLogForks(t *testing.T) {
	t.Parallel() // mostly waits
	a, w := newWatched(t), witnesstest.New(t)
	log := a.begin()
	a.stop()
	a.watch(w, log)
	a.start()
	a.wantCosigned(log)

	growths := testenv.Pick(25, 100, 500)
	for i := range growths {
		a.grow(i + 2)
		a.sign()
	}
	last := a.wantCosigned(log)
	// On a busy machine, some of them are too late.
	if got := w.Cosigned(); got < growths/2 {
		t.Errorf("the witness has cosigned %d checkpoints, want at least %d", got, growths/2)
	}
	wantLatest(t, w, last)
	wantShown(t, a, last)

	for name, grown := range map[string]int{"smaller": 3, "larger": growths + 20} {
		fork(t, a, grown)
		a.sign()
		size := a.leaves()
		if !strings.Contains(a.problem(), "witness w") || !strings.Contains(a.output.String(),
			"A WITNESS KNOWS ANOTHER HISTORY OF THE LOG") {
			t.Errorf("%s fork: got the problem %q, and log:\n%s", name, a.problem(), a.output)
		}

		signed := must.Read(t, filepath.Join(a.settings.KeyDir(), "acme.1.checkpoint"))
		a.grow(5000)
		a.sign()
		again := must.Read(t, filepath.Join(a.settings.KeyDir(), "acme.1.checkpoint"))
		if !bytes.Equal(signed, again) || a.leaves() != size+1 {
			t.Errorf("%s fork: the log is still signed:\n%s", name, again)
		}
		wantLatest(t, w, last)
	}
}

// wantLatest checks the latest checkpoint that a witness has cosigned.
func wantLatest(t *testing.T, w *witnesstest.Witness, want proof.Checkpoint) {
	t.Helper()
	if c, err := proof.ReadCheckpoint(w.Latest(want.Origin)); err != nil || c != want {
		t.Errorf("the witness has cosigned %+v, %v, want %+v", c, err, want)
	}
}

// wantShown checks that the witness of s is asked for what it has cosigned.
func wantShown(t *testing.T, s *watched, want proof.Checkpoint) {
	t.Helper()
	ask, err := AskWitnesses(s.settings)
	must.OK(t, err)
	shown, unchecked := ask(t.Context(), want.Origin)
	if len(shown) != 1 || len(unchecked) > 0 || shown[0].What != "the witness w" {
		t.Fatalf("%+v, %q", shown, unchecked)
	}
	if c, err := proof.ReadCheckpoint(shown[0].Signed); err != nil || c != want {
		t.Errorf("the witness shows %+v, %v, want %+v", c, err, want)
	}

	shown, unchecked = ask(t.Context(), "unknown.example/log")
	if len(shown) > 0 || len(unchecked) != 1 ||
		!strings.HasSuffix(unchecked[0], "unknown.example/log: it shows no checkpoint") {
		t.Errorf("of an unknown log: %+v, %q", shown, unchecked)
	}
	alone := s.settings
	alone.Log.Policy = ""
	if _, err := AskWitnesses(alone); err == nil {
		t.Error("without a policy, witnesses are asked")
	}
}

func (s *watched) leaves() int64 {
	s.t.Helper()
	l, err := s.running.db.Log(s.t.Context(), "acme", 0)
	must.OK(s.t, err)
	return l.Leaves
}

// fork replaces the database by one with another history, and removes what the server
// remembers of its last checkpoint. The key of the log stays.
func fork(t *testing.T, s *watched, growths int) {
	t.Helper()
	s.stop()
	database := string(s.settings.Database)
	for _, file := range []string{database, database + "-wal", database + "-shm",
		filepath.Join(s.settings.KeyDir(), "acme.1.checkpoint")} {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}

	policyFile := s.settings.Log.Policy
	s.settings.Log.Policy, s.settings.BaseURL = "", ""
	s.start()
	storetest.CreateAcme(t, s.running.db)
	for i := range growths {
		s.grow(i + 2000)
	}
	s.stop()
	s.settings.Log.Policy = policyFile
	must.OK(t, s.settings.BaseURL.UnmarshalText([]byte("https://a.example")))
	s.start()
}

// TestLogIsSignedWithoutItsWitness: a witness that fails stops nothing, and cosigns again once it
// works.
func TestLogIsSignedWithoutItsWitness(t *testing.T) {
	t.Parallel() // mostly waits
	a, w := newWatched(t), witnesstest.New(t)
	log := a.begin()
	a.stop()
	a.watch(w, log)
	w.Answer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		http.Error(rw, "out of order", http.StatusServiceUnavailable)
	}))
	a.start()
	a.grow(2)
	a.sign()
	_, l, err := a.verified(log)
	if err == nil || l.Size != l.Leaves || a.problem() != "" {
		t.Errorf("got size %d of %d, problem %q, %v", l.Size, l.Leaves, a.problem(), err)
	}
	status := a.running.logs.pool.Status("a.example/v1/orgs/acme/log")
	if len(status) != 1 || !strings.Contains(status[0].Error, "out of order") {
		t.Errorf("got status %+v", status)
	}

	w.Answer(nil)
	a.wantCosigned(log)
}
