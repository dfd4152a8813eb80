package service

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/transparency/witness"
)

// A neighbour is a ledgerd that watches another one, and is watched by it.
type neighbour struct {
	t        *testing.T
	settings config.Settings
	output   *syncBuffer
	running  *Instance
}

// syncBuffer is a bytes.Buffer for concurrent use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newNeighbour(t *testing.T, name string) *neighbour {
	t.Helper()
	folder := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	check(t, listener.Close())
	n := &neighbour{t: t, settings: config.Default(), output: new(syncBuffer)}
	n.settings.Listen = listener.Addr().String()
	n.settings.Database = config.Database(filepath.Join(folder, "ledger.db"))
	n.settings.NoCopy = true
	check(t, n.settings.BaseURL.UnmarshalText([]byte("https://"+name+".example")))
	n.settings.Log.WitnessNetworks = config.Networks{netip.MustParsePrefix("127.0.0.0/8")}
	t.Cleanup(n.stop)
	return n
}

func (n *neighbour) start() {
	n.t.Helper()
	v, err := Start(n.t.Context(), n.settings, &Log{Logger: slog.New(slog.NewTextHandler(n.output, nil))})
	check(n.t, err)
	n.running = v
}

func (n *neighbour) stop() {
	if n.running != nil {
		if err := n.running.Stop(0, 5*time.Second); err != nil {
			n.t.Error(err)
		}
		n.running = nil
	}
}

// begin creates the org with its first event and checkpoint, and returns the key of the log.
func (n *neighbour) begin() string {
	n.t.Helper()
	n.start()
	_, err := n.running.db.CreateOrg(n.t.Context(), "acme")
	check(n.t, err)
	_, err = n.running.db.CreateRepo(n.t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	check(n.t, err)
	n.grow(1)
	n.sign()
	l, err := n.running.db.Log(n.t.Context(), "acme", 0)
	check(n.t, err)
	return l.VKey
}

// grow adds an event.
func (n *neighbour) grow(i int) {
	n.t.Helper()
	_, err := n.running.db.LogKey(n.t.Context(), "acme", ledger.KeyEvent{Key: fmt.Sprint(i)})
	check(n.t, err)
}

func (n *neighbour) sign() {
	n.t.Helper()
	if err := n.running.logs.signer.SignAll(n.t.Context(), true); err != nil {
		n.t.Error(err)
	}
}

// watch makes a neighbour witness a log, and use the other as its witness.
func (n *neighbour) watch(log string, other *neighbour, key trustpolicy.Key) {
	n.t.Helper()
	folder := filepath.Dir(string(n.settings.Database))
	n.settings.Witness.Logs, n.settings.Log.Policy = filepath.Join(folder, "logs"), filepath.Join(folder, "policy")
	check(n.t, os.WriteFile(n.settings.Witness.Logs, []byte("# our neighbour\nlog "+log+"\n"), 0o600))
	policy := fmt.Appendf(nil, "witness neighbour %s http://%s/v1/witness\nquorum neighbour\n", key, other.settings.Listen)
	check(n.t, os.WriteFile(n.settings.Log.Policy, policy, 0o600))
}

// newKey makes the key of the witness, as "ledgerd witness new-key" does.
func (n *neighbour) newKey() trustpolicy.Key {
	n.t.Helper()
	name, err := n.settings.WitnessName()
	check(n.t, err)
	key, err := witness.NewKey(n.settings.KeyDir(), name)
	check(n.t, err)
	return key
}

// verified verifies the newest checkpoint of a log with the policy of the neighbour.
func (n *neighbour) verified(log string) (trustpolicy.Verification, store.Log, error) {
	n.t.Helper()
	l, err := n.running.db.Log(n.t.Context(), "acme", 0)
	check(n.t, err)
	p, err := n.settings.Log.LoadPolicy()
	check(n.t, err)
	key, err := trustpolicy.ParseKey(log, trustpolicy.LogTypes()...)
	check(n.t, err)
	v, err := p.Verify(l.Checkpoint, key)
	return v, l, err
}

// cosigned returns the newest checkpoint, once it has been cosigned. Requests that were sent before
// the neighbour had started, or took it too long, are repeated after a while.
func (n *neighbour) cosigned(log string) proof.Checkpoint {
	n.t.Helper()
	v, l, err := n.verified(log)
	for try := 0; err != nil; try++ {
		if try == 200 {
			n.t.Fatalf("%s\n%s\n%s", err, l.Checkpoint, n.output)
		}
		time.Sleep(50 * time.Millisecond)
		n.sign()
		v, l, err = n.verified(log)
	}

	c, err := proof.ParseCheckpoint(v.Text)
	check(n.t, err)
	if c.Size != l.Leaves {
		n.t.Fatalf("the checkpoint has size %d, and the log %d", c.Size, l.Leaves)
	}
	return c
}

func (n *neighbour) problem() string { return n.running.logs.signer.Problems()["acme"] }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTwoNeighboursWatchEachOther lets two servers witness each other while their logs grow.
// Then one of them serves another history, with the same key: the other does not cosign it,
// says so, and the first one stops signing.
func TestTwoNeighboursWatchEachOther(t *testing.T) {
	t.Parallel() // mostly waits
	a, b := newNeighbour(t, "a"), newNeighbour(t, "b")
	logA, logB := a.begin(), b.begin()
	a.stop()
	b.stop()
	keyA, keyB := a.newKey(), b.newKey()
	a.watch(logB, b, keyB)
	b.watch(logA, a, keyA)
	a.start()
	b.start()

	a.cosigned(logA)
	b.cosigned(logB)

	growths := testenv.Pick(50, 200, 1000)
	if testing.Short() {
		growths = 50
	}
	for i := range growths / 2 {
		var both sync.WaitGroup
		for _, n := range []*neighbour{a, b} {
			both.Go(func() { n.grow(i + 2); n.sign() })
		}
		both.Wait()
		if i%100 == 0 {
			a.cosigned(logA)
		}
	}
	last := a.cosigned(logA)
	b.cosigned(logB)
	// On a busy machine, some of them are too late.
	if got := b.running.logs.witness.Requests()["cosigned"]; got < uint64(growths/4) {
		t.Errorf("b has cosigned %d checkpoints, want at least %d", got, growths/4)
	}
	wantServed(t, b, last)
	wantShown(t, a, last)

	for name, grown := range map[string]int{"smaller": 3, "larger": growths/2 + 20} {
		fork(t, a, grown)
		a.sign()
		size := a.leaves()
		if !strings.Contains(a.problem(), "witness neighbour") || !strings.Contains(a.output.String(),
			"A WITNESS KNOWS ANOTHER HISTORY OF THE LOG") {
			t.Errorf("%s fork: got the problem %q, and log:\n%s", name, a.problem(), a.output)
		}

		signed, err := os.ReadFile(filepath.Join(a.settings.KeyDir(), "acme.1.checkpoint"))
		check(t, err)
		a.grow(5000)
		a.sign()
		again, err := os.ReadFile(filepath.Join(a.settings.KeyDir(), "acme.1.checkpoint"))
		check(t, err)
		if !bytes.Equal(signed, again) || a.leaves() != size+1 {
			t.Errorf("%s fork: the log is still signed:\n%s", name, again)
		}
		wantServed(t, b, last)
	}
	if !strings.Contains(b.output.String(), "A WITNESSED LOG IS NOT CONSISTENT") ||
		b.running.logs.witness.Inconsistent()[last.Origin] != 1 {
		t.Errorf("b has counted %v, and logged:\n%s", b.running.logs.witness.Inconsistent(), b.output)
	}
	evidence, err := b.running.db.Evidence(t.Context(), last.Origin)
	if err != nil || len(evidence) != 1 {
		t.Errorf("b has kept %d checkpoints as evidence, %v", len(evidence), err)
	}
}

// wantShown checks that the neighbours of n are asked for what they have cosigned.
func wantShown(t *testing.T, n *neighbour, want proof.Checkpoint) {
	t.Helper()
	ask, err := AskWitnesses(n.settings)
	check(t, err)
	shown, unchecked := ask(t.Context(), want.Origin)
	if len(shown) != 1 || len(unchecked) > 0 || shown[0].What != "the witness neighbour" {
		t.Fatalf("%+v, %q", shown, unchecked)
	}
	if c, err := proof.ReadCheckpoint(shown[0].Signed); err != nil || c != want {
		t.Errorf("the neighbour shows %+v, %v, want %+v", c, err, want)
	}

	shown, unchecked = ask(t.Context(), "unknown.example/log")
	if len(shown) > 0 || len(unchecked) != 1 ||
		!strings.HasSuffix(unchecked[0], "unknown.example/log: it shows no checkpoint") {
		t.Errorf("of an unknown log: %+v, %q", shown, unchecked)
	}
	alone := n.settings
	alone.Log.Policy = ""
	if _, err := AskWitnesses(alone); err == nil {
		t.Error("without a policy, witnesses are asked")
	}
}

func (n *neighbour) leaves() int64 {
	n.t.Helper()
	l, err := n.running.db.Log(n.t.Context(), "acme", 0)
	check(n.t, err)
	return l.Leaves
}

// fork replaces the database by one with another history, and removes what the server
// remembers of its last checkpoint. The key of the log stays.
func fork(t *testing.T, n *neighbour, growths int) {
	t.Helper()
	n.stop()
	database := string(n.settings.Database)
	for _, file := range []string{database, database + "-wal", database + "-shm",
		filepath.Join(n.settings.KeyDir(), "acme.1.checkpoint")} {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}

	policyFile := n.settings.Log.Policy
	n.settings.Log.Policy, n.settings.BaseURL = "", ""
	n.settings.Witness.Name = "a.example/v1/witness"
	n.start()
	_, err := n.running.db.CreateOrg(t.Context(), "acme")
	check(t, err)
	_, err = n.running.db.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	check(t, err)
	for i := range growths {
		n.grow(i + 2000)
	}
	n.stop()
	n.settings.Log.Policy = policyFile
	check(t, n.settings.BaseURL.UnmarshalText([]byte("https://a.example")))
	n.start()
}

// wantServed checks the checkpoint that a witness serves to monitors.
func wantServed(t *testing.T, n *neighbour, want proof.Checkpoint) {
	t.Helper()
	hash := sha256.Sum256([]byte(want.Origin))
	response, err := http.Get(fmt.Sprintf("%s/v1/witness/%x/checkpoint", n.running.URL, hash))
	check(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(t, err)
	if c, err := proof.ReadCheckpoint(body); err != nil || c != want {
		t.Errorf("status %d, %s, want the checkpoint %v", response.StatusCode, body, want)
	}
}

// TestReadinessSaysThatTheWitnessIsOff restores the database of a witness from a backup.
func TestReadinessSaysThatTheWitnessIsOff(t *testing.T) {
	a, b := newNeighbour(t, "a"), newNeighbour(t, "b")
	logA, logB := a.begin(), b.begin()
	a.stop()
	b.stop()
	a.watch(logB, b, b.newKey())
	b.watch(logA, a, a.newKey())
	b.start()
	a.start()
	a.sign()
	a.cosigned(logA)

	b.stop()
	backup, err := os.ReadFile(string(b.settings.Database))
	check(t, err)
	b.start()
	a.grow(2)
	a.sign()
	a.cosigned(logA)
	b.stop()
	check(t, os.WriteFile(string(b.settings.Database), backup, 0o600))
	b.start()
	if got := b.readiness(); !strings.Contains(got, `"witness":{"off":true`) {
		t.Errorf("got readiness %s", got)
	}
	if !strings.Contains(b.output.String(), "THE WITNESS IS OFF") || !strings.Contains(b.output.String(), "new-key") {
		t.Errorf("got log\n%s", b.output)
	}
	a.grow(3)
	a.sign()
	status := a.running.logs.pool.Status("a.example/v1/orgs/acme/log")
	if text, _ := json.Marshal(status); !strings.Contains(string(text), "witness_off") || a.problem() != "" {
		t.Errorf("a has status %s, problem %q", text, a.problem())
	}

	b.stop()
	a.stop()
	a.watch(logB, b, b.newKey())
	b.start()
	a.start()
	a.sign()
	a.cosigned(logA)
	if got := b.readiness(); strings.Contains(got, "witness") {
		t.Errorf("got readiness %s", got)
	}
}

func (n *neighbour) readiness() string {
	n.t.Helper()
	response, err := http.Get(n.running.URL + "/readyz")
	check(n.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(n.t, err)
	return string(body)
}
