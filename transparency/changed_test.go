package transparency

import (
	"os"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/internal/must"
)

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
			must.OK(t, err)
		}
	}
	restore := func(content []byte) func() {
		return func() { must.OK(t, os.WriteFile(f.path, content, 0o600)) }
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
		backup = must.Read(t, f.path)
	})
	f.grow(50)
	f.reopen(func() { must.OK(t, os.WriteFile(f.path, backup, 0o600)) })
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
