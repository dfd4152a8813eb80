package transparency

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// rolledBack returns a fixture whose database was restored from a backup: it has lost 100
// events that were signed. The newest checkpoint of them is known.
func rolledBack(t *testing.T) (f *fixture, newest []byte) {
	t.Helper()
	f = newFixture(t)
	f.grow(3)
	f.sign(false)
	var backup []byte
	f.reopen(func() {
		backup = must.Read(t, f.path)
	})
	f.grow(100)
	f.sign(false)
	newest = f.log().Checkpoint
	f.reopen(func() { must.OK(t, os.WriteFile(f.path, backup, 0o600)) })
	f.grow(2)
	f.sign(true)
	return f, newest
}

func (f *fixture) begin(n NewEpoch) (Begun, error) {
	f.t.Helper()
	if n.Org == "" {
		n.Org = "acme"
	}
	if n.Reason == "" {
		n.Reason = "restored from a backup"
	}
	return f.signer.Begin(f.t.Context(), n)
}

// wantBegun checks that a new log has begun, with its first event, and is signed.
func (f *fixture) wantBegun(b Begun, epoch string, checkpoint []byte) ledger.KeyEvent {
	f.t.Helper()
	l := f.log()
	if want := origin + "/" + epoch; b.Origin != want || l.Origin != "" || l.Leaves != 2 || b.Epoch != l.Epoch {
		f.t.Fatalf("got %+v, and the log %+v", b, l)
	}
	f.sign(false)
	if l = f.log(); l.Origin != b.Origin || l.VKey != b.Key || l.Size != 2 || len(f.signer.Problems()) > 0 {
		f.t.Errorf("the log is %+v, problems: %v", l, f.signer.Problems())
	}

	body, err := f.store.Event(f.t.Context(), "acme", b.Event)
	must.OK(f.t, err)
	var e ledger.KeyEvent
	must.OK(f.t, json.Unmarshal(body, &e))
	digest := sha256.Sum256(e.PublicKey)
	key := must.Get(base64.StdEncoding.DecodeString(strings.SplitN(b.Key, "+", 3)[2]))(f.t)
	if e.Action != ledger.KeyAdded || e.Purpose != ledger.KeyOfLog || e.Key != hex.EncodeToString(digest[:]) ||
		!strings.HasSuffix(string(e.PublicKey), string(key[1:])) || e.Previous.Origin != origin ||
		e.Previous.Checkpoint != string(checkpoint) {
		f.t.Errorf("the event is %s", body)
	}
	return e
}

// After a restore, a new log is signed with a new key. It names what was signed before, and
// the old log stays as it is.
func TestNewEpochAfterARestore(t *testing.T) {
	f, newest := rolledBack(t)
	if problem := f.signer.Problems()["acme"]; !strings.Contains(problem, "new-epoch acme --reason") {
		t.Errorf("problem: %s", problem)
	}
	old := f.log()
	b, err := f.begin(NewEpoch{})
	must.OK(t, err)
	c := must.Get(proof.ReadCheckpoint(newest))(t)
	if b.Epoch != 2 || b.Previous != origin || b.Known != c.Size || b.Key == old.VKey {
		t.Errorf("got %+v", b)
	}
	e := f.wantBegun(b, "2", newest)
	if e.Reason != "restored from a backup" || e.Previous.Size != old.Leaves {
		t.Errorf("the event is %+v", e)
	}
	if !strings.Contains(f.output.String(), "signed again") {
		t.Errorf("logged:\n%s", f.output)
	}

	for range 3 {
		f.grow(2)
		f.reopen(func() {})
		f.sign(true)
	}
	l, err := f.store.Log(t.Context(), "acme", 1)
	must.OK(t, err)
	if !l.Frozen || l.Size != old.Size || string(l.Checkpoint) != string(old.Checkpoint) || l.Leaves != old.Leaves {
		t.Errorf("the old log was %+v, and is %+v", old, l)
	}
	if l := f.log(); l.Size != 8 || string(f.file("acme.2.checkpoint")) != string(l.Checkpoint) {
		t.Errorf("the new log is %+v", l)
	}
	if string(f.file("acme.1.checkpoint")) != string(newest) {
		t.Error("the last checkpoint of the old log was replaced")
	}
	if _, err := f.begin(NewEpoch{}); err == nil || !strings.Contains(err.Error(), "is in order") {
		t.Errorf("a new epoch again: %v", err)
	}
}

// Without the folder of the keys, the checkpoint in the database, or a given one, is the last
// that is known.
func TestNewEpochWithoutTheKeys(t *testing.T) {
	for _, given := range []bool{false, true} {
		f, newest := rolledBack(t)
		want := f.log().Checkpoint
		f.reopen(func() { must.OK(t, os.RemoveAll(f.folder)) })
		n := NewEpoch{}
		if given {
			n.Checkpoint, want = []byte(string(newest)+"\u2014 witness.example AAAAAAAA\n"), newest
		}
		f.sign(true)
		b, err := f.begin(n)
		must.OK(t, err)
		f.wantBegun(b, "2", want)
	}
}

// A log whose key is missing, or is another, is replaced too.
func TestNewEpochAfterALostKey(t *testing.T) {
	other, _ := rolledBack(t)
	for _, key := range [][]byte{nil, []byte("nonsense"), other.file("acme.1.key")} {
		f := newFixture(t)
		f.grow(5)
		f.sign(false)
		want := f.log().Checkpoint
		must.OK(t, os.Remove(filepath.Join(f.folder, "acme.1.key")))
		if key != nil {
			f.write("acme.1.key", key)
		}
		b, err := f.begin(NewEpoch{})
		must.OK(t, err)
		f.wantBegun(b, "2", want)
	}
}

func TestNewEpochIsRefused(t *testing.T) {
	f := newFixture(t)
	f.grow(2)
	refused := func(want string, n NewEpoch) {
		t.Helper()
		before := f.log()
		files := f.files()
		if _, err := f.begin(n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", n, err, want)
		}
		if l := f.log(); l.Epoch != before.Epoch || l.Leaves != before.Leaves || f.files() != files {
			t.Errorf("the log became %+v", l)
		}
	}
	refused("never been signed", NewEpoch{})
	refused("never been signed", NewEpoch{Force: true})
	f.sign(false)
	refused("is in order", NewEpoch{})
	refused("give a reason", NewEpoch{Reason: " ", Force: true})
	refused("want at most 500", NewEpoch{Reason: strings.Repeat("x", 501), Force: true})
	refused("one line", NewEpoch{Reason: "a\nb", Force: true})
	refused("one line", NewEpoch{Reason: "a\xff", Force: true})
	refused("not found", NewEpoch{Org: "none", Force: true})
	refused("the given checkpoint", NewEpoch{Checkpoint: []byte("nonsense"), Force: true})
	other, foreign := rolledBack(t)
	other.sign(true)
	refused("the given checkpoint", NewEpoch{Checkpoint: foreign, Force: true})
	refused("is in order", NewEpoch{Checkpoint: f.log().Checkpoint})

	base := f.signer.BaseURL
	f.signer.BaseURL = nil
	refused("set base_url", NewEpoch{Force: true})
	f.signer.BaseURL = base
	f.edit("UPDATE orgs SET log_built = 0; UPDATE logs SET size = 0, checkpoint = ''")
	refused("is being built", NewEpoch{Force: true})
}

func TestNewEpochThatIsNotSignedYetIsNotReplaced(t *testing.T) {
	f := newFixture(t)
	f.grow(2)
	f.sign(false)
	_, err := f.begin(NewEpoch{Force: true})
	must.OK(t, err)
	_, err = f.begin(NewEpoch{Force: true})
	if err == nil || !strings.Contains(err.Error(), "has already begun epoch 2") {
		t.Errorf("again: %v", err)
	}
	f.sign(false)
	_, err = f.begin(NewEpoch{Force: true})
	must.OK(t, err)
}

// A log in order is replaced if that is forced, or if another history of it is known.
func TestNewEpochOfALogInOrder(t *testing.T) {
	f := newFixture(t)
	f.grow(3)
	f.sign(false)
	want := f.log().Checkpoint
	b, err := f.begin(NewEpoch{Reason: strings.Repeat("x", MaxReason), Force: true})
	must.OK(t, err)
	f.wantBegun(b, "2", want)

	// Both the database and the keys were restored, and only a witness knows more.
	f, newest := rolledBack(t)
	f.write("acme.1.checkpoint", f.log().Checkpoint)
	if _, err := f.begin(NewEpoch{}); err == nil || !strings.Contains(err.Error(), "is in order") {
		t.Errorf("got %v", err)
	}
	b, err = f.begin(NewEpoch{Checkpoint: newest})
	must.OK(t, err)
	f.wantBegun(b, "2", newest)
}

// A key that an interrupted command has left is used. A number whose log was signed before, with
// another database, is not.
func TestInterruptedNewEpoch(t *testing.T) {
	f, newest := rolledBack(t)
	key, err := f.signer.Keys.Create(LogName{"acme", 2}, origin+"/2")
	must.OK(t, err)
	f.sign(true) // the key of a later epoch changes nothing
	if len(f.signer.Problems()) != 1 {
		t.Error("the log is signed")
	}
	b, err := f.begin(NewEpoch{})
	must.OK(t, err)
	if b.Key != key.VKey {
		t.Errorf("another key was made: %+v", b)
	}
	f.wantBegun(b, "2", newest)

	second := newFixture(t) // a new database next to the keys of the old one
	second.folder = f.folder
	second.reopen(func() {})
	second.grow(1)
	b, err = second.begin(NewEpoch{}) // before the server has run
	must.OK(t, err)
	second.wantBegun(b, "3", newest)

	third := newFixture(t)
	third.folder = f.folder
	third.reopen(func() {})
	third.grow(1)
	third.sign(true) // refused, but its log has an origin now
	b, err = third.begin(NewEpoch{})
	must.OK(t, err)
	third.wantBegun(b, "4", newest)
}
