package transparency

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// A recorder sees what is on disk and in the database when a checkpoint is signed.
type recorder struct {
	*fixture
	seen int
	fail error
}

func (r *recorder) Cosign(_ context.Context, c Signed) (string, error) {
	r.seen++
	if !bytes.Equal(r.file("acme.1.checkpoint"), c.Note) {
		r.t.Errorf("a checkpoint of size %d leaves the server before it is on disk", c.Size)
	}
	if l := r.log(); l.Size >= c.Size && !bytes.HasPrefix(l.Checkpoint, c.Note) {
		r.t.Errorf("a checkpoint of size %d is served before it is on disk", l.Size)
	}
	return "", r.fail
}

func (r *recorder) Stopped(string) error { return nil }

func (r *recorder) Lagging() bool { return false }

// A checkpoint is on disk before it is served. If the server stops between both, it serves
// the same checkpoint later.
func TestCheckpointIsOnDiskFirst(t *testing.T) {
	f := newFixture(t)
	r := &recorder{fixture: f}
	f.signer.Cosigner = r
	f.grow(1)
	f.sign(false)
	f.wantSigned()

	r.fail = errors.New("interrupted")
	f.grow(2)
	f.sign(false)
	onDisk := f.file("acme.1.checkpoint")
	if l := f.log(); l.Size != l.Leaves-2 || r.seen != 2 {
		t.Fatalf("the checkpoint of size %d is served; the log has %d events", l.Size, l.Leaves)
	}
	f.reopen(func() {})
	f.sign(true)
	f.wantSigned()
	if !bytes.Equal(f.file("acme.1.checkpoint"), onDisk) {
		t.Errorf("another checkpoint was signed")
	}
}

// A checkpoint that is missing on disk, or older there, is taken from the database.
func TestCheckpointIsBroughtBack(t *testing.T) {
	f := newFixture(t)
	f.grow(2)
	f.sign(false)
	older := f.file("acme.1.checkpoint")
	f.grow(2)
	f.sign(false)
	want := f.wantSigned()

	f.write("acme.1.checkpoint", older)
	f.sign(true)
	if got := f.wantSigned(); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	must.OK(t, os.Remove(filepath.Join(f.folder, "acme.1.checkpoint")))
	f.sign(true)
	if got := f.wantSigned(); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What the database says was signed must be signed, and be a prefix of the log, also if
// the file is missing.
func TestCheckpointInTheDatabase(t *testing.T) {
	f := newFixture(t)
	f.grow(5)
	f.sign(false)
	f.wantSigned()
	key, err := f.signer.Keys.Load(LogName{"acme", 1}, origin)
	must.OK(t, err)
	fork, err := proof.Checkpoint{Origin: origin, Size: 4}.Sign(key)
	must.OK(t, err)
	smaller := func() []byte {
		l := f.log()
		root, err := f.store.Root(t.Context(), l, 3)
		must.OK(t, err)
		signed, err := proof.Checkpoint{Origin: origin, Size: 3, Root: root}.Sign(key)
		must.OK(t, err)
		return signed
	}()

	size := f.log().Size
	for _, test := range []struct {
		what       string
		checkpoint []byte
		size       int64
		reason     string // empty: it is signed
	}{
		{"one that was signed before", smaller, 3, ""},
		{"another size", f.log().Checkpoint, size - 1, "is not the one that was signed"},
		{"nothing", nil, size, "is not the one that was signed"},
		{"another root", fork, 4, "are not those that were signed"},
	} {
		f.reopen(func() {
			f.edit("UPDATE logs SET checkpoint = ?, size = ?", string(test.checkpoint), test.size)
		})
		if test.reason != "" {
			f.wantRefused(test.reason)
			must.OK(t, os.Remove(filepath.Join(f.folder, "acme.1.checkpoint")))
			f.reopen(func() {})
			f.wantRefused(test.reason)
			f.reopen(func() { f.edit("UPDATE logs SET checkpoint = ?, size = 3", string(smaller)) })
		}
		f.sign(true)
		f.wantSigned()
	}
}

// A key or an origin that a start has left is used by the next.
func TestInterruptedBeginning(t *testing.T) {
	f := newFixture(t)
	f.grow(2)
	u := must.Get(url.Parse(f.base))(t)
	key, err := f.signer.Keys.Create(LogName{"acme", 1}, Origin(u, LogName{"acme", 1}))
	must.OK(t, err)
	f.reopen(func() { f.base = "https://elsewhere.example" })
	f.sign(true)
	f.wantSigned()
	if l := f.log(); l.VKey != key.VKey {
		t.Errorf("the key %s became %s", key.VKey, l.VKey)
	}

	f = newFixture(t)
	f.grow(2)
	key, err = f.signer.Keys.Create(LogName{"acme", 1}, origin)
	must.OK(t, err)
	must.OK(t, f.store.BeginOrigin(t.Context(), f.log(), key.Name(), key.VKey))
	f.reopen(func() {})
	f.sign(true)
	f.wantSigned()
	if l := f.log(); l.VKey != key.VKey {
		t.Errorf("the key %s became %s", key.VKey, l.VKey)
	}
	if err := f.store.BeginOrigin(t.Context(), f.log(), "other.example", key.VKey); err == nil {
		t.Error("the origin was changed")
	}
}
