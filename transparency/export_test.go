package transparency

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// export exports the log of the fixture to a folder.
func (f *fixture) export(folder string) (Exported, error) {
	return Export{Store: f.store, Org: "acme", Folder: folder}.Run(f.t.Context())
}

func filesIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	must.OK(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return files
}

func TestExport(t *testing.T) {
	f := newFixture(t)
	folder := filepath.Join(t.TempDir(), "new", "log")
	if _, err := f.export(folder); err == nil || !strings.Contains(err.Error(), "has no checkpoint yet") {
		t.Errorf("a log that is not signed: %v", err)
	}
	f.grow(3)
	f.sign(false)
	done, err := f.export(folder)
	must.OK(t, err)
	if l := f.log(); done.Files != 3 || done.Size != l.Size || done.Origin != l.Origin || done.Key != l.VKey {
		t.Errorf("exported %+v", done)
	}

	// It grows over the first full tile, and the files that are there stay as they are.
	before := filesIn(t, folder)
	f.grow(300)
	f.sign(true)
	done, err = f.export(folder)
	must.OK(t, err)
	files := filesIn(t, folder)
	for _, name := range []string{"checkpoint", "tile/0/000", "tile/entries/000", "tile/1/000.p/1"} {
		if files[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	for name, text := range before {
		if name != "checkpoint" && files[name] != text {
			t.Errorf("%s has changed", name)
		}
	}
	if done.Files != 6 || files["checkpoint"] != string(f.log().Checkpoint) { // and a partial tile with its entries
		t.Errorf("exported %+v: %d files", done, len(files))
	}

	// A damaged file and a lost one are written again.
	must.OK(t, os.WriteFile(filepath.Join(folder, "tile/0/000"), []byte("damaged"), 0o600))
	must.OK(t, os.Remove(filepath.Join(folder, "tile/entries/000")))
	if done, err = f.export(folder); err != nil || done.Files != 2 {
		t.Errorf("exported %+v, %v", done, err)
	}
	if again := filesIn(t, folder); again["tile/0/000"] != files["tile/0/000"] || len(again) != len(files) {
		t.Error("the damaged file was not written again")
	}

	// An export that was interrupted has no checkpoint.
	must.OK(t, os.Remove(filepath.Join(folder, "checkpoint")))
	if done, err = f.export(folder); err != nil || done.Files != 1 {
		t.Errorf("exported %+v, %v", done, err)
	}
}

func TestExportIsRefused(t *testing.T) {
	f := newFixture(t)
	f.grow(3)
	f.sign(false)
	newest := f.log().Checkpoint
	for name, c := range map[string]struct {
		file, content, want string
	}{
		"other files":        {"index.html", "hello", "has other files, such as index.html"},
		"another log":        {"checkpoint", strings.Replace(string(newest), "/acme/", "/umbrella/", 1), "has the log "},
		"no checkpoint":      {"checkpoint", "nonsense", "read the earlier export "},
		"a later checkpoint": {"checkpoint", later(t, newest), "ROLLBACK"},
	} {
		folder := t.TempDir()
		must.OK(t, os.WriteFile(filepath.Join(folder, c.file), []byte(c.content), 0o600))
		if _, err := f.export(folder); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if files := filesIn(t, folder); len(files) != 1 || files[c.file] != c.content {
			t.Errorf("%s: the folder has %d files", name, len(files))
		}
	}

	// The folder has another history of the log.
	other := newFixture(t)
	other.grow(2)
	other.sign(false)
	folder := t.TempDir()
	_, err := other.export(folder)
	must.OK(t, err)
	if _, err := f.export(folder); err == nil || !strings.Contains(err.Error(), "FORK") {
		t.Errorf("another history: %v", err)
	}
}

// later returns a checkpoint with one more event.
func later(t *testing.T, signed []byte) string {
	t.Helper()
	c := must.Get(proof.ReadCheckpoint(signed))(t)
	text := c.Text()
	c.Size++
	return strings.Replace(string(signed), text, c.Text(), 1)
}
