package transparency

import (
	"bytes"
	"cmp"
	"database/sql"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	_ "modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

const origin = "ledger.example.com/base/v1/orgs/acme/log"

// A fixture is a database with the org acme, and the folder with what a server has signed.
type fixture struct {
	t      *testing.T
	path   string
	folder string
	keys   string // the folder with the keys; empty if it is the same
	shared bool
	base   string
	output *bytes.Buffer
	store  *store.Store
	signer *Signer
	n      int // policies that were set
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOn(t, storetest.NewFile(t), "")
}

// newFixtureOn returns a fixture on a new database, with a folder of keys of its own or none.
func newFixtureOn(t *testing.T, database, keys string) *fixture {
	t.Helper()
	f := &fixture{t: t, path: database, folder: filepath.Join(t.TempDir(), "state"), keys: keys,
		base: "https://ledger.example.com/base/", output: new(bytes.Buffer)}
	f.open()
	storetest.CreateAcme(t, f.store)
	return f
}

// open opens the database and the keys, as a start does.
func (f *fixture) open() {
	f.t.Helper()
	db := must.Get(store.Open(f.t.Context(), f.path, store.Options{NoCopy: true}))(f.t)
	f.t.Cleanup(func() { db.Close() })
	keys := must.Get(OpenKeys(cmp.Or(f.keys, f.folder), f.folder))(f.t)
	base := must.Get(url.Parse(f.base))(f.t)
	f.store = db
	f.signer = NewSigner(Config{Store: db, Keys: keys, BaseURL: base, Shared: f.shared,
		Logger: slog.New(slog.NewTextHandler(f.output, nil))})
}

// reopen opens the database again, after what change does to its file.
func (f *fixture) reopen(change func()) {
	f.t.Helper()
	must.OK(f.t, f.store.Close())
	change()
	f.open()
}

// edit changes the database behind the back of the server.
func (f *fixture) edit(statement string, args ...any) {
	f.t.Helper()
	db, err := sql.Open("sqlite", f.path)
	must.OK(f.t, err)
	_, err = db.Exec(statement, args...)
	must.OK(f.t, err)
	must.OK(f.t, db.Close())
}

// grow adds n events.
func (f *fixture) grow(n int) {
	f.t.Helper()
	for range n {
		f.n++
		_, err := f.store.LogKey(f.t.Context(), "acme", ledger.KeyEvent{Key: fmt.Sprint(f.n)})
		must.OK(f.t, err)
	}
}

func (f *fixture) sign(all bool) {
	f.t.Helper()
	must.OK(f.t, f.signer.SignAll(f.t.Context(), all))
}

func (f *fixture) log() store.Log {
	f.t.Helper()
	l, err := f.store.Log(f.t.Context(), "acme", 0)
	must.OK(f.t, err)
	return l
}

// file returns the content of a file next to the keys.
func (f *fixture) file(name string) []byte {
	f.t.Helper()
	return must.Read(f.t, filepath.Join(f.folder, name))
}

func (f *fixture) write(name string, content []byte) {
	f.t.Helper()
	must.OK(f.t, os.WriteFile(filepath.Join(f.folder, name), content, 0o600))
}

// wantSigned checks that the newest checkpoint covers all events, is the one on disk, and is
// signed with the log's key.
func (f *fixture) wantSigned() proof.Checkpoint {
	f.t.Helper()
	if problems := f.signer.Problems(); len(problems) > 0 {
		f.t.Fatalf("problems: %v", problems)
	}
	l := f.log()
	verifier := must.Get(note.NewVerifier(l.VKey))(f.t)
	c := must.Get(proof.OpenCheckpoint(l.Checkpoint, verifier))(f.t)
	root, err := f.store.Root(f.t.Context(), l, l.Leaves)
	must.OK(f.t, err)
	if want := (proof.Checkpoint{Origin: origin, Size: l.Leaves, Root: root}); c != want || l.Size != c.Size {
		f.t.Fatalf("got checkpoint %+v of size %d, want %+v", c, l.Size, want)
	}
	if onDisk := f.file("acme.1.checkpoint"); !bytes.Equal(onDisk, l.Checkpoint) {
		f.t.Fatalf("on disk is\n%s, and served is\n%s", onDisk, l.Checkpoint)
	}
	return c
}

// wantRefused checks that nothing is signed, that the reason is reported, once in the log, and
// that the events can still be read and recorded.
func (f *fixture) wantRefused(reason string) {
	f.t.Helper()
	f.output.Reset()
	before, files := f.log(), f.files()
	for range 3 {
		f.grow(1)
		f.sign(true)
		f.sign(false)
	}
	l := f.log()
	if l.Size != before.Size || !bytes.Equal(l.Checkpoint, before.Checkpoint) || f.files() != files {
		f.t.Errorf("a checkpoint of size %d was signed (before: %d)", l.Size, before.Size)
	}
	if l.Leaves != before.Leaves+3 {
		f.t.Errorf("%d events were recorded, want 3", l.Leaves-before.Leaves)
	}
	if _, err := f.store.Events(f.t.Context(), "acme", store.EventFilter{Query: store.Query{Limit: 10}}); err != nil {
		f.t.Errorf("reading events: %v", err)
	}

	problems := f.signer.Problems()
	if len(problems) != 1 || !strings.Contains(problems["acme"], reason) {
		f.t.Errorf("problems: %q, want %q", problems, reason)
	}
	if n := strings.Count(f.output.String(), "THE TRANSPARENCY LOG IS NOT SIGNED"); n != 1 {
		f.t.Errorf("it was logged %d times, want once:\n%s", n, f.output)
	}
}

// files returns names and content of all files next to the keys.
func (f *fixture) files() string {
	f.t.Helper()
	entries := must.Get(os.ReadDir(f.folder))(f.t)
	var b strings.Builder
	for _, entry := range entries {
		fmt.Fprintf(&b, "%s\n%s\n", entry.Name(), f.file(entry.Name()))
	}
	return b.String()
}
