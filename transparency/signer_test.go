package transparency

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/note"
	_ "modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

const origin = "ledger.example.com/base/v1/orgs/acme/log"

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A fixture is a database with the org acme, and the folder with the keys.
type fixture struct {
	t      *testing.T
	path   string
	folder string
	base   string
	output *bytes.Buffer
	store  *store.Store
	signer *Signer
	n      int // policies that were set
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, path: storetest.NewFile(t), folder: filepath.Join(t.TempDir(), "keys"),
		base: "https://ledger.example.com/base/", output: new(bytes.Buffer)}
	f.open()
	_, err := f.store.CreateOrg(t.Context(), "acme")
	check(t, err)
	_, err = f.store.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	check(t, err)
	return f
}

// open opens the database and the keys, as a start does.
func (f *fixture) open() {
	f.t.Helper()
	db, err := store.Open(f.t.Context(), f.path, store.Options{NoCopy: true})
	check(f.t, err)
	f.t.Cleanup(func() { db.Close() })
	keys, err := OpenKeys(f.folder)
	check(f.t, err)
	base, err := url.Parse(f.base)
	check(f.t, err)
	f.store = db
	f.signer = NewSigner(Config{Store: db, Keys: keys, BaseURL: base,
		Logger: slog.New(slog.NewTextHandler(f.output, nil))})
}

// reopen opens the database again, after what change does to its file.
func (f *fixture) reopen(change func()) {
	f.t.Helper()
	check(f.t, f.store.Close())
	change()
	f.open()
}

// edit changes the database behind the back of the server.
func (f *fixture) edit(statement string, args ...any) {
	f.t.Helper()
	db, err := sql.Open("sqlite", f.path)
	check(f.t, err)
	_, err = db.Exec(statement, args...)
	check(f.t, err)
	check(f.t, db.Close())
}

// grow adds n events.
func (f *fixture) grow(n int) {
	f.t.Helper()
	for range n {
		f.n++
		contract, err := policy.Parse(fmt.Appendf(nil,
			`{"requirements":[{"state":"ATTESTED","predicate":"test:%d","signers":["cn=ci"]}]}`, f.n))
		check(f.t, err)
		_, err = f.store.SetPolicy(f.t.Context(), "acme", "api", contract, 0, "host")
		check(f.t, err)
	}
}

func (f *fixture) sign(all bool) {
	f.t.Helper()
	check(f.t, f.signer.SignAll(f.t.Context(), all))
}

func (f *fixture) log() store.Log {
	f.t.Helper()
	l, err := f.store.Log(f.t.Context(), "acme", 0)
	check(f.t, err)
	return l
}

// file returns the content of a file next to the keys.
func (f *fixture) file(name string) []byte {
	f.t.Helper()
	content, err := os.ReadFile(filepath.Join(f.folder, name))
	check(f.t, err)
	return content
}

func (f *fixture) write(name string, content []byte) {
	f.t.Helper()
	check(f.t, os.WriteFile(filepath.Join(f.folder, name), content, 0o600))
}

// wantSigned checks that the newest checkpoint covers all events, is the one on disk, and is
// signed with the log's key.
func (f *fixture) wantSigned() proof.Checkpoint {
	f.t.Helper()
	if problems := f.signer.Problems(); len(problems) > 0 {
		f.t.Fatalf("problems: %v", problems)
	}
	l := f.log()
	verifier, err := note.NewVerifier(l.VKey)
	check(f.t, err)
	c, err := proof.OpenCheckpoint(l.Checkpoint, verifier)
	check(f.t, err)
	root, err := f.store.Root(f.t.Context(), l, l.Leaves)
	check(f.t, err)
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
	entries, err := os.ReadDir(f.folder)
	check(f.t, err)
	var b strings.Builder
	for _, entry := range entries {
		fmt.Fprintf(&b, "%s\n%s\n", entry.Name(), f.file(entry.Name()))
	}
	return b.String()
}

func TestLogIsSignedAsItGrows(t *testing.T) {
	f := newFixture(t)
	f.sign(true)
	if l := f.log(); l.Leaves > 0 {
		f.wantSigned()
	}
	for _, n := range []int{1, 1, 300} {
		f.grow(n)
		f.sign(false)
		f.wantSigned()
	}

	before := f.files()
	f.sign(false)
	f.sign(true)
	if f.files() != before {
		t.Error("a log that has not grown was signed again")
	}

	f.reopen(func() {})
	f.sign(true)
	f.wantSigned()
	f.grow(1)
	f.sign(false)
	f.wantSigned()
	if l := f.log(); strings.Contains(f.output.String(), "NOT SIGNED") || l.SignedAt == 0 {
		t.Errorf("signed at %v; logged:\n%s", l.SignedAt, f.output)
	}
}

// Each org has its own key, in files that only the owner can read.
func TestKeysOfOrgs(t *testing.T) {
	f := newFixture(t)
	_, err := f.store.CreateOrg(t.Context(), "umbrella")
	check(t, err)
	_, err = f.store.CreateRepo(t.Context(), "umbrella", ledger.NewRepo{Name: "api"}, "host")
	check(t, err)
	contract, err := policy.Parse([]byte(`{"requirements":[]}`))
	check(t, err)
	_, err = f.store.SetPolicy(t.Context(), "umbrella", "api", contract, 0, "host")
	check(t, err)
	f.grow(1)
	f.sign(false)

	other, err := f.store.Log(t.Context(), "umbrella", 0)
	check(t, err)
	if l := f.log(); l.Origin != origin || other.Origin != strings.Replace(origin, "acme", "umbrella", 1) ||
		strings.SplitN(l.VKey, "+", 3)[2] == strings.SplitN(other.VKey, "+", 3)[2] {
		t.Errorf("got keys %s and %s", l.VKey, other.VKey)
	}
	if !enforcesModes {
		return
	}
	for name, want := range map[string]os.FileMode{"": os.ModeDir | 0o700, "acme.1.key": 0o600, "acme.1.checkpoint": 0o600,
		"umbrella.1.key": 0o600, "umbrella.1.checkpoint": 0o600} {
		info, err := os.Stat(filepath.Join(f.folder, name))
		check(t, err)
		if info.Mode() != want {
			t.Errorf("%q has mode %v, want %v", name, info.Mode(), want)
		}
	}
}

func TestFolderOfKeysIsRefused(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	check(t, os.WriteFile(file, nil, 0o600))
	for name, want := range map[string]string{file: "is not a folder", filepath.Join(file, "keys"): "not a directory",
		filepath.Join(folder, "none", "keys"): "create the folder of the log keys"} {
		if _, err := OpenKeys(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for _, mode := range []os.FileMode{0o740, 0o710, 0o704, 0o701, 0o755} {
		check(t, os.Chmod(folder, mode))
		if _, err := OpenKeys(folder); enforcesModes && (err == nil || !strings.Contains(err.Error(), "chmod 700")) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	check(t, os.Chmod(folder, 0o500))
	_, err := OpenKeys(folder)
	check(t, err)
	check(t, os.Chmod(folder, 0o700))
}

// A log is signed at most once a second, and within a second.
func TestLogIsSignedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.grow(1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { f.signer.Run(ctx); close(done) }()
		synctest.Wait()

		start, last, size := time.Now(), time.Now(), f.log().Size
		if size == 0 {
			t.Error("the log is not signed at the start")
		}
		signed := 0
		for time.Since(start) < 20*time.Second {
			f.grow(1)
			time.Sleep(90 * time.Millisecond)
			synctest.Wait()
			now := f.log().Size
			if now == size {
				continue
			}
			if since := time.Since(last); since < interval-90*time.Millisecond || since > interval+90*time.Millisecond {
				t.Errorf("signed after %v", since)
			}
			size, last = now, time.Now()
			signed++
		}
		if signed < 18 || signed > 20 {
			t.Errorf("signed %d times in 20 seconds", signed)
		}
		cancel()
		<-done
		check(t, f.store.Close())
	})
}

// Without a base URL, the name of a log would depend on who asks.
func TestNothingIsSignedWithoutABaseURL(t *testing.T) {
	f := newFixture(t)
	f.grow(1)
	f.signer.BaseURL = nil
	f.signer.Run(t.Context()) // returns
	if l := f.log(); l.Size != 0 || l.Origin != "" || f.files() != "" {
		t.Errorf("got %+v", l)
	}
}

// The name of a log is fixed when it begins, whatever base_url is later.
func TestOriginIsFixed(t *testing.T) {
	f := newFixture(t)
	f.grow(1)
	f.sign(false)
	vkey := f.log().VKey
	for _, base := range []string{"https://elsewhere.example", "https://ledger.example.com/"} {
		f.reopen(func() { f.base = base })
		f.grow(1)
		f.sign(false)
		f.wantSigned()
		if l := f.log(); l.Origin != origin || l.VKey != vkey {
			t.Errorf("the log became %s, %s", l.Origin, l.VKey)
		}
	}
	if entries, err := os.ReadDir(f.folder); err != nil || len(entries) != 2 {
		t.Errorf("got %v, %v", entries, err)
	}
}

func TestOrigins(t *testing.T) {
	for base, want := range map[string]string{
		"https://ledger.example":          "ledger.example/v1/orgs/acme/log",
		"http://ledger.example:8080/":     "ledger.example:8080/v1/orgs/acme/log",
		"https://ledger.example/a%20b/c/": "ledger.example/a%20b/c/v1/orgs/acme/log",
	} {
		u, err := url.Parse(base)
		check(t, err)
		for epoch, suffix := range map[int]string{1: "", 2: "/2", 17: "/17"} {
			if got := Origin(u, LogName{"acme", epoch}); got != want+suffix {
				t.Errorf("%s, epoch %d: got %s", base, epoch, got)
			}
		}
	}
}

// Nothing is signed without the key of the log. When it is back, signing goes on.
func TestMissingAndForeignKeys(t *testing.T) {
	other := newFixture(t)
	other.grow(1)
	other.sign(false)
	elsewhere := newFixture(t)
	elsewhere.base = "https://elsewhere.example"
	elsewhere.reopen(func() {})
	elsewhere.grow(1)
	elsewhere.sign(false)

	f := newFixture(t)
	f.grow(2)
	f.sign(false)
	f.wantSigned()
	key := f.file("acme.1.key")
	for _, test := range []struct {
		key    []byte
		reason string
	}{
		{nil, "its key is missing in log.key_dir"},
		{other.file("acme.1.key"), "is not the one of the log"},
		{elsewhere.file("acme.1.key"), "is not the one of the log"},
		{[]byte("PRIVATE+KEY+nonsense\n"), "read the key of the log"},
		{bytes.Replace(key, []byte("PRIVATE"), []byte("PUBLIC"), 1), "read the key of the log"},
		{key[:len(key)-3], "read the key of the log"},
	} {
		check(t, os.Remove(filepath.Join(f.folder, "acme.1.key")))
		if test.key != nil {
			f.write("acme.1.key", test.key)
		}
		f.wantRefused(test.reason)
		f.write("acme.1.key", key)
		f.sign(true)
		f.wantSigned()
		if !strings.Contains(f.output.String(), "signed again") {
			t.Errorf("logged:\n%s", f.output)
		}
	}
}

// A database that does not extend the last checkpoint is not signed, whether it is older, or
// has another history of the same length or more.
func TestDatabaseThatDoesNotExtendTheCheckpoint(t *testing.T) {
	f := newFixture(t)
	f.grow(3)
	f.sign(false)
	f.wantSigned()
	var backup, newest []byte
	read := func(content *[]byte) func() {
		return func() {
			var err error
			*content, err = os.ReadFile(f.path)
			check(t, err)
		}
	}
	restore := func(content []byte) func() {
		return func() { check(t, os.WriteFile(f.path, content, 0o600)) }
	}
	f.reopen(read(&backup))
	f.grow(100)
	f.sign(false)
	f.wantSigned()
	f.reopen(read(&newest))

	f.reopen(restore(backup))
	f.wantRefused("it is older than the log")
	f.grow(200) // more events than were signed
	f.wantRefused("are not those that were signed")
	f.reopen(func() {})
	f.wantRefused("are not those that were signed")

	f.reopen(restore(newest))
	f.sign(true)
	f.wantSigned()
	f.grow(1)
	f.sign(false)
	f.wantSigned()
}

// A database that lost what it had since the last checkpoint continues: nobody has seen it.
func TestDatabaseMayLoseWhatWasNotSigned(t *testing.T) {
	f := newFixture(t)
	f.grow(300)
	f.sign(false)
	c := f.wantSigned()
	var backup []byte
	f.reopen(func() {
		var err error
		backup, err = os.ReadFile(f.path)
		check(t, err)
	})
	f.grow(50)
	f.reopen(func() { check(t, os.WriteFile(f.path, backup, 0o600)) })
	f.sign(true)
	if got := f.wantSigned(); got != c {
		t.Errorf("got %v, want %v", got, c)
	}
	f.grow(50)
	f.sign(false)
	f.wantSigned()
}

// A changed leaf is not signed, at the start also if there are no new events.
func TestChangedLeaves(t *testing.T) {
	for name, statement := range map[string]string{
		"leaf": "UPDATE events SET leaf = zeroblob(32) WHERE seq = 0",
		"type": "UPDATE events SET type = 'state' WHERE seq = 0",
		"time": "UPDATE events SET at = at + 1 WHERE seq = 0",
		"order": "UPDATE events SET seq = -1 WHERE seq = 0; UPDATE events SET seq = 0 WHERE seq = 1;" +
			"UPDATE events SET seq = 1 WHERE seq = -1",
		"tile": "UPDATE tiles SET hashes = zeroblob(length(hashes)) WHERE level = 1",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			n := 3
			if name == "tile" {
				n = 300
			}
			f.grow(n)
			f.sign(false)
			f.wantSigned()
			f.reopen(func() { f.edit(statement) })
			f.wantRefused("are not those that were signed")
		})
	}
}

// A missing leaf makes the log incomplete.
func TestDeletedEvent(t *testing.T) {
	f := newFixture(t)
	f.grow(5)
	f.sign(false)
	f.wantSigned()
	f.reopen(func() { f.edit("PRAGMA foreign_keys = OFF; DELETE FROM events WHERE seq = 1") })
	f.wantRefused("incomplete")
}

// A new database next to old keys has another history.
func TestNewDatabaseWithOldKeys(t *testing.T) {
	f := newFixture(t)
	f.grow(30)
	f.sign(false)
	f.wantSigned()
	second := newFixture(t)
	second.folder = f.folder
	second.reopen(func() {})
	second.wantRefused("it is older than the log")
	second.grow(40)
	second.wantRefused("are not those that were signed")
}

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
	check(t, os.Remove(filepath.Join(f.folder, "acme.1.checkpoint")))
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
	key, err := f.signer.Keys.Load(LogName{"acme", 1})
	check(t, err)
	fork, err := proof.Checkpoint{Origin: origin, Size: 4}.Sign(key)
	check(t, err)
	smaller := func() []byte {
		l := f.log()
		root, err := f.store.Root(t.Context(), l, 3)
		check(t, err)
		signed, err := proof.Checkpoint{Origin: origin, Size: 3, Root: root}.Sign(key)
		check(t, err)
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
			check(t, os.Remove(filepath.Join(f.folder, "acme.1.checkpoint")))
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
	u, err := url.Parse(f.base)
	check(t, err)
	key, err := f.signer.Keys.Create(LogName{"acme", 1}, Origin(u, LogName{"acme", 1}))
	check(t, err)
	f.reopen(func() { f.base = "https://elsewhere.example" })
	f.sign(true)
	f.wantSigned()
	if l := f.log(); l.VKey != key.VKey {
		t.Errorf("the key %s became %s", key.VKey, l.VKey)
	}

	f = newFixture(t)
	f.grow(2)
	key, err = f.signer.Keys.Create(LogName{"acme", 1}, origin)
	check(t, err)
	check(t, f.store.BeginOrigin(t.Context(), f.log(), key.Name(), key.VKey))
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
