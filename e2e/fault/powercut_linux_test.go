package fault_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/e2e/internal/filecheck"
	"github.com/ledgerd/ledgerd/e2e/internal/powercut"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// traceOf runs a command and returns the trace of its calls that affect a folder.
func traceOf(t *testing.T, folder string, c *exec.Cmd) *powercut.Trace {
	t.Helper()
	start, file := readFolder(t, folder), filepath.Join(t.TempDir(), "trace")
	must.OK(t, powercut.Record(c, file))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return readTrace(t, folder, start, file, c.Process.Pid)
}

// readTrace reads the trace of a process that has ended.
func readTrace(t *testing.T, folder string, start map[string][]byte, file string, pid int) *powercut.Trace {
	t.Helper()
	must.OK(t, powercut.Wait(file, pid))
	in := must.Get(os.Open(file))(t)
	defer in.Close()
	trace, err := powercut.Parse(in, folder, start)
	must.OK(t, err)
	return trace
}

func readFolder(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must.OK(t, err)
	files := make(map[string][]byte)
	for _, entry := range entries {
		files[entry.Name()], err = os.ReadFile(filepath.Join(folder, entry.Name()))
		must.OK(t, err)
	}
	return files
}

// ends returns power cuts after the end of a process, one for each loss.
func ends(trace *powercut.Trace) (cuts []powercut.Cut) {
	for loss := powercut.LoseAll; loss <= powercut.LosePerFile; loss++ {
		for names := powercut.LoseAll; names <= powercut.LoseSome; names++ {
			cuts = append(cuts, powercut.Cut{At: trace.Lines(), Loss: loss, Name: names, Seed: 1, Why: "the end"})
		}
	}
	return cuts
}

// record restarts the server, runs what while its system calls are recorded, and stops it.
// It returns the trace and how the server ended.
func (v *victim) record(what func()) (*powercut.Trace, error) {
	v.t.Helper()
	must.OK(v.t, v.stop(syscall.SIGTERM))
	folder, file := filepath.Dir(v.database), filepath.Join(v.t.TempDir(), "trace")
	start := readFolder(v.t, folder)
	serve := v.command()
	must.OK(v.t, powercut.Record(serve, file))
	v.startAs(serve)

	what()
	err := v.stop(syscall.SIGTERM)
	return readTrace(v.t, folder, start, file, serve.Process.Pid), err
}

// isAnswer reports whether a message is the beginning of a response with a status of 2xx.
func isAnswer(m powercut.Message) bool { return bytes.HasPrefix(m.Text, []byte("HTTP/1.1 2")) }

// A recorded note is a note with the line of the trace at which the server sent its answer.
type recordedNote struct {
	filecheck.Note
	at int
}

// findAnswers finds the answers to all confirmed requests in the trace.
func findAnswers(t *testing.T, trace *powercut.Trace, notes []filecheck.Note) (list []recordedNote) {
	t.Helper()
	for _, n := range notes {
		r := recordedNote{Note: n, at: -1}
		mark := n.ID
		switch n.Kind {
		case filecheck.Commit:
			_, mark, _ = strings.Cut(n.Key, " ") // the message
			mark = fmt.Sprintf("%q", mark)
		case filecheck.Policy:
			mark = n.Content
		}

		for _, m := range trace.Messages() {
			if isAnswer(m) && bytes.Contains(m.Text, []byte(mark)) {
				r.at = m.At
				break
			}
		}
		if r.at < 0 && n.Outcome == filecheck.Confirmed {
			t.Errorf("the trace has no answer to the %s %s", n.Kind, n.Key)
		}
		list = append(list, r)
	}
	return list
}

// notesAt returns what clients know at a power cut: only what the server had begun to
// answer is confirmed.
func notesAt(list []recordedNote, c powercut.Cut) (notes []filecheck.Note) {
	for _, n := range list {
		if n.Outcome == filecheck.Confirmed && n.at >= c.At {
			n.Outcome = filecheck.Unknown
		}
		notes = append(notes, n.Note)
	}
	return notes
}

// write writes files into a new folder.
func write(t *testing.T, files map[string][]byte) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range files {
		must.OK(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	return folder
}

// randomCuts chooses n power cuts, and logs how to choose them again.
func randomCuts(t *testing.T, trace *powercut.Trace, n int) []powercut.Cut {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("%s, seed %d", trace, seed)
	return trace.Cuts(n, rand.New(rand.NewPCG(seed, 0)), isAnswer)
}

// After a power cut at any moment, everything that was answered is in the file, the file
// is intact, and the server goes on.
func TestFaultPowerCut(t *testing.T) {
	slow(t)
	testenv.Need(t, "strace")
	t.Parallel()
	v := newVictim(t, t.TempDir())
	trace, err := v.record(func() {
		confirmed := v.load.Book.Count(filecheck.Confirmed)
		v.under(func() {
			v.wait("records", func() bool { return v.load.Book.Count(filecheck.Confirmed) >= confirmed+times(300, 400) })
		})
	})
	if err != nil {
		t.Errorf("stop: %v\n%s", err, v.log.String())
	}
	list := findAnswers(t, trace, v.load.Book.Notes())

	book, cuts := v.load.Book, randomCuts(t, trace, times(9, 75))
	for i, c := range cuts {
		v.replay(trace, c, list, isLong() || i%4 == 0)
	}
	v.logRow("power cut", len(cuts), book)

	// The checks find what a server would lose that does not sync.
	for _, name := range []string{"ledger.db", "ledger.db-wal"} {
		trace.IgnoreSyncs(name)
		if !findLoss(t, trace, list) {
			t.Errorf("nothing is lost without syncs of %s", name)
		}
	}
}

// replay runs the server after a power cut, and checks the file. If first is set, it also
// checks it before the server opens it.
func (v *victim) replay(trace *powercut.Trace, c powercut.Cut, list []recordedNote, first bool) {
	v.t.Run(c.String(), func(t *testing.T) {
		folder := write(t, trace.Disk(c))
		again := &victim{
			t: t, database: filepath.Join(folder, "ledger.db"), address: v.address, url: v.url, load: v.load,
		}
		notes := notesAt(list, c)
		again.load.Book = filecheck.NewNotebook()
		if first {
			v.add(wantIntact(t, again.database, notes))
		}

		again.start()
		again.works()
		if err := again.stop(syscall.SIGTERM); err != nil {
			t.Errorf("stop: %v\n%s", err, again.log.String())
		}
		for _, n := range again.load.Book.Notes() {
			n.Sent, n.Answered = n.Sent+1<<50, n.Answered+1<<50 // after the notes before the cut
			notes = append(notes, n)
		}
		v.add(wantIntact(t, again.database, notes))
	})
}

// wantIntact checks a database and returns the problems.
func wantIntact(t *testing.T, database string, notes []filecheck.Note) (problems []string) {
	t.Helper()
	problems, err := filecheck.Check(t.Context(), database, notes, time.Now)
	must.OK(t, err)
	if len(problems) > 0 {
		t.Errorf("the file has these problems:\n%s", strings.Join(problems, "\n"))
	}
	return problems
}

// findLoss reports whether one of ten power cuts in the second half of the trace loses
// something.
func findLoss(t *testing.T, trace *powercut.Trace, list []recordedNote) bool {
	t.Helper()
	for i := range 10 {
		c := powercut.Cut{At: trace.Lines() * (20 - i) / 20, Loss: powercut.LoseAll, Name: powercut.LoseNone}
		database := filepath.Join(write(t, trace.Disk(c)), "ledger.db")
		problems, err := filecheck.Check(t.Context(), database, notesAt(list, c), time.Now)
		must.OK(t, err)
		if len(problems) > 0 {
			t.Logf("%s: %d problems, such as: %s", c, len(problems), problems[0])
			return true
		}
	}
	return false
}

// A power cut while a database is created leaves one that can be used, or none.
func TestFaultPowerCutDuringCreation(t *testing.T) {
	slow(t)
	testenv.Need(t, "strace", "python3")
	t.Parallel()
	ledgerd := func(folder string, args ...string) *exec.Cmd {
		return exec.Command("ledgerd", append(args, "--database", filepath.Join(folder, "ledger.db"))...)
	}
	created := func(t *testing.T, folder string) bool {
		out, err := ledgerd(folder, "org", "list").CombinedOutput()
		if err != nil && !strings.Contains(string(out), "not found: create it") {
			t.Errorf("org list: %v\n%s", err, out)
		}
		return err == nil && strings.Contains(string(out), "acme")
	}
	folder := t.TempDir()
	trace := traceOf(t, folder, ledgerd(folder, "org", "create", "acme"))

	cuts := randomCuts(t, trace, times(3, 60))
	for loss := powercut.LoseAll; loss <= powercut.TearSectors; loss++ {
		cuts = append(cuts, powercut.Cut{
			At: trace.Syncs("ledger.db")[0], Loss: loss, Name: powercut.LoseNone, Why: "first sync of the database",
		})
	}
	for _, c := range cuts {
		t.Run(c.String(), func(t *testing.T) {
			folder := write(t, trace.Disk(c))
			if !created(t, folder) {
				if out, err := ledgerd(folder, "org", "create", "acme").CombinedOutput(); err != nil {
					t.Errorf("org create: %v\n%s", err, out)
				}
			}
			wantIntact(t, filepath.Join(folder, "ledger.db"), nil)
		})
	}
	for _, c := range ends(trace)[:times(3, 24)] {
		if !created(t, write(t, trace.Disk(c))) {
			t.Errorf("%s: the org is lost", c)
		}
	}
}

// After a power cut during a migration, the next start finishes it, and the copy of the
// old database is complete if there is one.
func TestFaultPowerCutDuringMigration(t *testing.T) {
	slow(t)
	testenv.Need(t, "strace", "python3")
	t.Parallel()
	packed := must.Get(os.Open("../../store/testdata/v5.db.gz"))(t)
	defer packed.Close()
	unpacked := must.Get(gzip.NewReader(packed))(t)
	old := must.Get(io.ReadAll(unpacked))(t)
	list := func(folder string) *exec.Cmd {
		return exec.Command("ledgerd", "org", "list", "--database", filepath.Join(folder, "ledger.db"))
	}
	folder := write(t, map[string][]byte{"ledger.db": old})
	trace := traceOf(t, folder, list(folder))
	want, err := list(folder).Output()
	must.OK(t, err)
	saved := readFolder(t, folder)["ledger.db.v5"]

	for _, c := range append(randomCuts(t, trace, times(3, 30)), ends(trace)[0]) {
		t.Run(c.String(), func(t *testing.T) {
			files := trace.Disk(c)
			if got, ok := files["ledger.db.v5"]; ok && !bytes.Equal(got, saved) {
				t.Error("the copy is not complete")
			} else if !ok && c.At == trace.Lines() {
				t.Error("the copy is lost")
			}

			folder := write(t, files)
			if got, err := list(folder).CombinedOutput(); err != nil || !bytes.Equal(got, want) {
				t.Errorf("org list: %v\n%s\nwant:\n%s", err, got, want)
			}
			wantIntact(t, filepath.Join(folder, "ledger.db"), nil)
		})
	}
}

// The copy that a server writes if its database was deleted survives a power cut.
func TestFaultPowerCutAfterRescue(t *testing.T) {
	slow(t)
	testenv.Need(t, "strace")
	t.Parallel()
	v := newVictim(t, t.TempDir())
	trace, err := v.record(func() {
		v.works()
		must.OK(t, os.Remove(v.database))
	})
	if exitStatus(err) != 1 {
		t.Errorf("the server ended with %v, want 1\n%s", err, v.log.String())
	}
	for _, c := range ends(trace)[:3] {
		rescued, ok := trace.Disk(c)["ledger.db.rescued-1"]
		if !ok {
			t.Errorf("%s: the copy is lost", c)
			continue
		}
		folder := write(t, map[string][]byte{"ledger.db": rescued})
		wantIntact(t, filepath.Join(folder, "ledger.db"), v.load.Book.Notes())
	}
}
