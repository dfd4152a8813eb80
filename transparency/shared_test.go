package transparency

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	_ "modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// newReplicas returns two servers with one database and seed, and folders of their own.
func newReplicas(t *testing.T, database string) [2]*fixture {
	t.Helper()
	a := newFixtureOn(t, database, newKeyDir(t, testSeed))
	return [2]*fixture{a.share(), a.replica(a.keys)}
}

func (f *fixture) share() *fixture {
	f.shared, f.signer.Shared = true, true
	return f
}

// replica returns another server with the database.
func (f *fixture) replica(keys string) *fixture {
	f.t.Helper()
	r := &fixture{t: f.t, path: f.path, folder: filepath.Join(f.t.TempDir(), "state"), keys: keys, base: f.base,
		output: new(bytes.Buffer), shared: true}
	r.open()
	return r
}

// wantPrefixes checks that checkpoints are signed and of the log, and each at least as large as
// the one before.
func (f *fixture) wantPrefixes(checkpoints [][]byte) {
	f.t.Helper()
	l := f.log()
	verifier := must.Get(note.NewVerifier(l.VKey))(f.t)
	var last int64
	for _, signed := range checkpoints {
		c := must.Get(proof.OpenCheckpoint(signed, verifier))(f.t)
		root, err := f.store.Root(f.t.Context(), l, c.Size)
		must.OK(f.t, err)
		if c.Size < last || c.Root != root {
			f.t.Errorf("a checkpoint of size %d after one of %d has the root %v, want %v", c.Size, last, c.Root, root)
		}
		last = c.Size
	}
}

// Two servers sign the same log, in turns and at the same time. Each stored checkpoint extends
// those before, and both servers have the last one on disk.
func TestReplicasSignOneLog(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { testReplicas(t, newReplicas(t, storetest.NewFile(t))) })
	t.Run("PostgreSQL", func(t *testing.T) {
		testReplicas(t, newReplicas(t, pgtest.Start(t, pgtest.Fast()...).NewDatabase(t)))
	})
}

func testReplicas(t *testing.T, replicas [2]*fixture) {
	const turns = 100
	var checkpoints [][]byte
	for n := range turns {
		r := replicas[n%2]
		r.grow(1)
		r.sign(false)
		checkpoints = append(checkpoints, r.wantStored())
	}

	var wait sync.WaitGroup
	for _, r := range replicas {
		wait.Go(func() { r.growAndSign(turns / 2) })
	}
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	for running := true; running; time.Sleep(time.Millisecond) {
		select {
		case <-done:
			running = false
		default:
		}
		checkpoints = append(checkpoints, replicas[0].log().Checkpoint)
	}

	for range 2 {
		replicas[0].sign(false)
		replicas[1].sign(false)
	}
	for _, r := range replicas {
		r.wantSigned()
		if strings.Contains(r.output.String(), "ERROR") {
			t.Errorf("logged:\n%s", r.output)
		}
	}
	if l := replicas[0].log(); l.Leaves < 2*turns {
		t.Errorf("the log has %d events", l.Leaves)
	}
	replicas[1].wantPrefixes(checkpoints)
}

// wantStored checks that the checkpoint on disk is the stored one, and returns it.
func (f *fixture) wantStored() []byte {
	f.t.Helper()
	l := f.log()
	if l.Size != l.Leaves || !bytes.Equal(f.file("acme.1.checkpoint"), l.Checkpoint) {
		f.t.Fatalf("the checkpoint of size %d of %d is not the one on disk", l.Size, l.Leaves)
	}
	return l.Checkpoint
}

// growAndSign adds n events, and signs the log after each.
func (f *fixture) growAndSign(n int) {
	for i := range n {
		_, err := f.store.LogKey(f.t.Context(), "acme", ledger.KeyEvent{Key: fmt.Sprint(i)})
		if err == nil {
			err = f.signer.SignAll(f.t.Context(), i%10 == 0)
		}
		if err != nil {
			f.t.Error(err)
		}
		if problems := f.signer.Problems(); len(problems) > 0 {
			f.t.Errorf("problems: %v", problems)
		}
	}
}

// A database that is older than what any server has signed is signed by none of them, also not
// by one that only saw what another has signed.
func TestDatabaseThatIsOlderThanWhatAnotherSigned(t *testing.T) {
	replicas := newReplicas(t, storetest.NewFile(t))
	a, b := replicas[0], replicas[1]
	a.grow(3)
	a.sign(false)
	b.sign(true)
	must.OK(t, b.store.Close())
	var backup []byte
	a.reopen(func() {
		backup = must.Read(t, a.path)
	})
	b.open()
	b.sign(true)
	a.grow(100)
	a.sign(false)
	b.sign(false)
	b.wantSigned()

	must.OK(t, b.store.Close())
	a.reopen(func() { must.OK(t, os.WriteFile(a.path, backup, 0o600)) })
	b.open()
	for _, r := range replicas {
		r.wantRefused("it is older than the log")
	}
	b.grow(200)
	for _, r := range replicas {
		r.wantRefused("are not those that were signed")
	}
}

// A server does not replace what it has with a stored checkpoint that does not extend it, and
// says so, although it would sign nothing.
func TestStoredCheckpointIsNotTakenOver(t *testing.T) {
	replicas := newReplicas(t, storetest.NewFile(t))
	a, b := replicas[0], replicas[1]
	a.grow(5)
	a.sign(false)
	b.sign(false)
	b.wantSigned()

	key, err := a.signer.Keys.Load(LogName{"acme", 1}, origin)
	must.OK(t, err)
	l := a.log()
	for _, c := range []proof.Checkpoint{{Origin: origin, Size: l.Leaves}, {Origin: "other", Size: l.Leaves}} {
		before := b.files()
		forged, err := c.Sign(key)
		if c.Origin == "other" {
			forged, err = []byte("nonsense"), nil
		}
		must.OK(t, err)
		b.edit("UPDATE logs SET checkpoint = ?", string(forged))
		b.sign(false)
		if problem := b.signer.Problems()["acme"]; !strings.Contains(problem, "signed") || b.files() != before {
			t.Errorf("problem: %q", problem)
		}
	}
}

// Each pass looks only at what was stored since the one before. The check of all logs finds the rest.
func TestOldCheckpointIsLeftToTheCheck(t *testing.T) {
	replicas := newReplicas(t, storetest.NewFile(t))
	a, b := replicas[0], replicas[1]
	a.grow(1)
	a.sign(false)
	b.sign(false)
	b.wantSigned()

	must.OK(t, os.Remove(filepath.Join(b.folder, "acme.1.checkpoint")))
	b.edit("UPDATE logs SET signed_at = 1")
	b.sign(false)
	if b.signer.Keys.hasSigned(LogName{"acme", 1}) {
		t.Error("a checkpoint of long ago was taken over")
	}
	b.sign(true)
	b.wantSigned()
}

// Processes that share a state folder do not mistake a log that was read before the other has
// signed for one of an older database.
func TestLogThatWasReadBeforeTheFile(t *testing.T) {
	a := newReplicas(t, storetest.NewFile(t))[0]
	a.grow(2)
	before := a.log()
	a.grow(2)
	a.sign(false)
	must.OK(t, a.signer.extends(t.Context(), before, a.wantSigned()))
	must.OK(t, a.signer.sign(t.Context(), before))
	a.sign(true)
	a.wantSigned()
}

// A server with another seed signs nothing, whether it comes first or later.
func TestReplicaWithAnotherSeed(t *testing.T) {
	a := newReplicas(t, storetest.NewFile(t))[0]
	b := a.replica(newKeyDir(t, strings.Replace(testSeed, "AAE", "BBE", 1)))
	a.grow(1)
	begun := a.log()
	a.sign(false)
	vkey := a.log().VKey
	_, err := b.signer.key(t.Context(), &begun)
	if err == nil || !strings.Contains(err.Error(), "another server has begun the log of acme") {
		t.Errorf("at the same time: %v", err)
	}
	b.wantRefused("the seed in log.key_dir is not the one of the log (it gives the key " + origin)
	if l := a.log(); l.VKey != vkey {
		t.Errorf("the key became %s", l.VKey)
	}
	a.sign(false)
	a.wantSigned()
}

// Servers that begin a log at the same time give it the same name and key.
func TestReplicasBeginALog(t *testing.T) {
	replicas := newReplicas(t, storetest.NewFile(t))
	replicas[0].grow(1)
	l := replicas[0].log()
	for _, r := range replicas {
		must.OK(t, r.signer.sign(t.Context(), l))
		r.wantSigned()
	}
	vkey := replicas[0].log().VKey
	for _, other := range [][2]string{{origin, "other"}, {"other", vkey}} {
		if err := replicas[0].store.BeginOrigin(t.Context(), l, other[0], other[1]); err == nil {
			t.Errorf("the log became %q", other)
		}
	}

	want := replicas[0].log().Checkpoint
	b, err := replicas[0].begin(NewEpoch{Force: true})
	must.OK(t, err)
	replicas[1].wantBegun(b, "2", want)
	replicas[0].sign(false)
	if got := replicas[0].file("acme.2.checkpoint"); !bytes.Equal(got, replicas[0].log().Checkpoint) {
		t.Errorf("the checkpoint of the new log is\n%s", got)
	}
}

// Of checkpoints that servers store at the same time, the largest is kept, with the most
// cosignatures.
func TestLargestCheckpointIsKept(t *testing.T) {
	f := newFixture(t)
	f.grow(5)
	f.sign(false)
	l := f.log()
	plain := string(l.Checkpoint)
	cosigned, again := plain+"\u2014 witness.example AAAA\n", plain+"\u2014 witness.example BBBB\n"
	for _, step := range []struct {
		size       int64
		save, want string
	}{
		{l.Size, cosigned, cosigned}, {l.Size, plain, cosigned}, {l.Size, again, again},
		{l.Size - 1, again + "longer", again}, {l.Size + 1, "larger", "larger"}, {l.Size, cosigned, "larger"},
	} {
		must.OK(t, f.store.SaveCheckpoint(t.Context(), l, step.size, []byte(step.save)))
		if got := string(f.log().Checkpoint); got != step.want {
			t.Errorf("after %q of size %d: got %q, want %q", step.save, step.size, got, step.want)
		}
	}
}
