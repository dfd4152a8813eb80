package powercut

import (
	"bufio"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// If this variable is set, the test binary is a program that writes a database with this
// setting of PRAGMA synchronous.
const synchronous = "LEDGERD_TEST_SYNCHRONOUS"

func TestMain(m *testing.M) {
	if mode := os.Getenv(synchronous); mode != "" {
		if err := writeDatabase(os.Args[1], mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// rows is the number of rows that writeDatabase writes.
const rows = 60

// writeDatabase writes rows into a new database and prints a line after each commit.
func writeDatabase(path, mode string) error {
	db, err := sql.Open("sqlite", "file:"+path+
		"?_pragma=journal_mode(wal)&_pragma=wal_autocheckpoint(20)&_pragma=synchronous("+mode+")")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE rows (n INTEGER PRIMARY KEY, text TEXT)"); err != nil {
		return err
	}
	for n := range rows {
		if _, err := db.Exec("INSERT INTO rows VALUES (?, ?)", n, strings.Repeat("x", 3000)); err != nil {
			return err
		}
		if _, err := fmt.Println("row", n); err != nil {
			return err
		}
	}
	return nil
}

// recordDatabase returns the trace of writeDatabase.
func recordDatabase(t *testing.T, mode string) *Trace {
	t.Helper()
	testenv.Need(t, "strace")
	folder, trace := t.TempDir(), filepath.Join(t.TempDir(), "trace")
	writer := exec.Command(os.Args[0], filepath.Join(folder, "test.db"))
	writer.Env = append(os.Environ(), synchronous+"="+mode)
	writer.Stderr = os.Stderr
	must.OK(t, Record(writer, trace))
	stdout := must.Get(writer.StdoutPipe())(t)
	must.OK(t, writer.Start())
	lines := 0
	for in := bufio.NewScanner(stdout); in.Scan(); {
		lines++
	}
	must.OK(t, writer.Wait())
	if lines != rows {
		t.Fatalf("the writer printed %d lines, want %d", lines, rows)
	}

	must.OK(t, Wait(trace, writer.Process.Pid))
	in := must.Get(os.Open(trace))(t)
	defer in.Close()
	parsed := must.Get(Parse(in, folder, nil))(t)
	compareWithFolder(t, parsed, folder)
	return parsed
}

// compareWithFolder checks that the files of a trace at its end are those in the folder.
func compareWithFolder(t *testing.T, trace *Trace, folder string) {
	t.Helper()
	files := trace.Disk(Cut{At: trace.Lines(), Loss: LoseNone, Name: LoseNone})
	entries := must.Get(os.ReadDir(folder))(t)
	for _, entry := range entries {
		text := must.Read(t, filepath.Join(folder, entry.Name()))
		if string(files[entry.Name()]) != string(text) {
			t.Errorf("%s has %d bytes, the file of the trace differs: it has %d", entry.Name(), len(text),
				len(files[entry.Name()]))
		}
	}
	if len(files) != len(entries) {
		t.Errorf("the trace ends with %d files, the folder has %d", len(files), len(entries))
	}
}

// A verdict counts the cuts by what is wrong after them.
type verdict struct{ lost, damaged, fine int }

// replay opens the database after each of n cuts.
func replay(t *testing.T, trace *Trace, n int) (v verdict) {
	t.Helper()
	isRow := func(m Message) bool { return strings.HasPrefix(string(m.Text), "row ") }
	for _, c := range trace.Cuts(n, rand.New(rand.NewPCG(1, 2)), isRow) {
		printed := 0
		for _, m := range trace.Messages() {
			if isRow(m) && m.At < c.At {
				printed++
			}
		}

		folder := t.TempDir()
		for name, text := range trace.Disk(c) {
			must.OK(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
		}
		switch n, err := intactRows(filepath.Join(folder, "test.db")); {
		case err != nil:
			t.Logf("%s: %v", c, err)
			v.damaged++
		case n < printed:
			t.Logf("%s: the database has %d rows, %d were printed", c, n, printed)
			v.lost++
		default:
			v.fine++
		}
	}
	return v
}

// intactRows returns the number of rows in a database, or an error if it is damaged.
func intactRows(path string) (n int, err error) {
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil {
		return 0, err
	}
	if verdict != "ok" {
		return 0, fmt.Errorf("damaged: %s", verdict)
	}
	err = db.QueryRow("SELECT count(*) FROM rows").Scan(&n)
	if err != nil && strings.Contains(err.Error(), "no such table") {
		return 0, nil
	}
	return n, err
}

// The replay finds what each setting of PRAGMA synchronous loses, as SQLite documents it.
func TestFaultReplayFindsWhatIsNotSynced(t *testing.T) {
	const cuts = 240
	t.Run("full", func(t *testing.T) {
		if v := replay(t, recordDatabase(t, "full"), cuts); v.fine != cuts {
			t.Errorf("got %+v, want no loss", v)
		}
	})
	t.Run("normal", func(t *testing.T) {
		if v := replay(t, recordDatabase(t, "normal"), cuts); v.lost == 0 || v.damaged > 0 {
			t.Errorf("got %+v, want lost rows and no damage", v)
		}
	})
	t.Run("off", func(t *testing.T) {
		if v := replay(t, recordDatabase(t, "off"), cuts); v.lost == 0 || v.damaged == 0 {
			t.Errorf("got %+v, want lost rows and damage", v)
		}
	})

	trace := recordDatabase(t, "full")
	for _, name := range []string{"test.db", "test.db-wal", ""} {
		t.Run("full, without syncs of "+name, func(t *testing.T) {
			trace.IgnoreSyncs(name)
			if v := replay(t, trace, cuts); v.fine == cuts {
				t.Errorf("got %+v, want a loss", v)
			}
		})
	}
}
