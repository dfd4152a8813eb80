package seen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

const origin = "ledger.example/v1/orgs/acme/log"

func (m *Memory) mustReplace(t *testing.T, known, l Log, want bool) {
	t.Helper()
	if replaced, err := m.Replace(t.Context(), known, l); err != nil || replaced != want {
		t.Fatalf("replaced: %v, %v", replaced, err)
	}
}

func (m *Memory) wantLog(t *testing.T, origin string, want Log) {
	t.Helper()
	if got, err := m.Log(origin); err != nil || got != want {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestMemory(t *testing.T) {
	m := Open(filepath.Join(t.TempDir(), "state", "ledgerd"))
	m.wantLog(t, origin, Log{})
	first := Log{Origin: origin, Key: "k", Checkpoint: "c1\n", SeenAt: 1}
	second := first
	second.Checkpoint = "c2\n"

	m.mustReplace(t, second, first, false)
	m.wantLog(t, origin, Log{})
	m.mustReplace(t, Log{}, first, true)
	m.wantLog(t, origin, first)
	m.mustReplace(t, Log{}, second, false)
	m.wantLog(t, origin, first)
	m.mustReplace(t, first, second, true)
	m.wantLog(t, origin, second)
	m.wantLog(t, origin+"/2", Log{})

	place := Place{Server: "https://ledger.example", Org: "acme", Origin: origin}
	must.OK(t, m.SavePlace(t.Context(), place))
	for org, want := range map[string]string{"acme": origin, "globex": ""} {
		if got, err := m.Place(place.Server, org); err != nil || got.Origin != want || got.Org != org {
			t.Errorf("%s: %+v, %v", org, got, err)
		}
	}
}

// Of those that replace the same, one does.
func TestOneOfManyReplaces(t *testing.T) {
	m := Open(t.TempDir())
	var wait sync.WaitGroup
	var mu sync.Mutex
	var winners []int
	for i := range 20 {
		wait.Go(func() {
			replaced, err := m.Replace(t.Context(), Log{}, Log{Origin: origin, SeenAt: ledger.Time(i + 1)})
			if err != nil {
				t.Error(err)
			}
			if mu.Lock(); replaced {
				winners = append(winners, i)
			}
			mu.Unlock()
		})
	}
	wait.Wait()

	if len(winners) != 1 {
		t.Fatalf("%v have replaced it", winners)
	}
	m.wantLog(t, origin, Log{Origin: origin, SeenAt: ledger.Time(winners[0] + 1)})
}

func TestFilesThatAreRefused(t *testing.T) {
	m := Open(t.TempDir())
	must.OK(t, os.MkdirAll(filepath.Dir(m.LogFile(origin)), 0o700))
	for name, text := range map[string]string{
		"not JSON":       "x",
		"empty":          "",
		"another log":    `{"origin":"other.example"}`,
		"unknown member": `{"origin":"` + origin + `","size":1}`,
		"too large":      `{"origin":"` + origin + `"}` + strings.Repeat(" ", maxFile),
	} {
		must.OK(t, os.WriteFile(m.LogFile(origin), []byte(text), 0o600))
		if l, err := m.Log(origin); err == nil || !strings.Contains(err.Error(), m.LogFile(origin)) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
		if replaced, err := m.Replace(t.Context(), Log{}, Log{Origin: origin}); err == nil || replaced {
			t.Errorf("%s: replaced", name)
		}
	}
}

// The names of files are readable, differ, and stay in the folder, whatever the origin.
func TestNamesOfFiles(t *testing.T) {
	m := Open("/state")
	names := make(map[string]string)
	for _, origin := range []string{origin, "a/b", "a_b", "", "../../etc/passwd", "..", strings.Repeat("x", 5000),
		strings.Repeat("x", 5001), "a\x00b", "a\nb", "é", strings.Repeat("é", 41)} {
		name := m.LogFile(origin)
		if filepath.Dir(name) != "/state/logs" || len(filepath.Base(name)) > maxName+32 ||
			strings.ContainsAny(filepath.Base(name), "/\\\x00\n:") || strings.HasPrefix(filepath.Base(name), ".") {
			t.Errorf("%q: %q", origin, name)
		}
		if other, has := names[name]; has {
			t.Errorf("%q and %q have the same file", origin, other)
		}
		names[name] = origin
	}
	if got := m.LogFile(origin); got != "/state/logs/ledger.example_v1_orgs_acme_log-"+got[len(got)-21:] {
		t.Error(got)
	}
}

func TestFolder(t *testing.T) {
	for _, test := range []struct{ state, want string }{
		{"/xdg", "/xdg/ledgerd"}, {"", "/home/ada/.local/state/ledgerd"}, {"relative", "/home/ada/.local/state/ledgerd"},
	} {
		t.Setenv("HOME", "/home/ada")
		t.Setenv("XDG_STATE_HOME", test.state)
		if got, err := Folder(); err != nil || filepath.ToSlash(got) != test.want {
			t.Errorf("%q: %s, %v", test.state, got, err)
		}
	}
}

func TestEvidence(t *testing.T) {
	m := Open(t.TempDir())
	paths, err := m.SaveEvidence(1_795_000_000_000, origin, map[string][]byte{
		"seen.checkpoint": []byte("a"), "served.checkpoint": []byte("b"), "nothing": nil,
	})
	must.OK(t, err)
	if len(paths) != 2 {
		t.Fatalf("stored %q", paths)
	}
	for i, want := range []string{"a", "b"} {
		text, err := os.ReadFile(paths[i])
		info, _ := os.Stat(paths[i])
		if err != nil || string(text) != want || fmt.Sprint(info.Mode()) != "-rw-------" {
			t.Errorf("%s: %q, %v", paths[i], text, err)
		}
	}
}

// FuzzLog checks that no file causes a panic, and that one that is read is about the log.
func FuzzLog(f *testing.F) {
	f.Add([]byte(`{"origin":"` + origin + `","key":"k","checkpoint":"c","seen_at":"2026-11-20T09:00:00.000Z"}`))
	m := Open(f.TempDir())
	must.OK(f, os.MkdirAll(filepath.Dir(m.LogFile(origin)), 0o700))
	f.Fuzz(func(t *testing.T, text []byte) {
		must.OK(t, os.WriteFile(m.LogFile(origin), text, 0o600))
		if l, err := m.Log(origin); err == nil && l != (Log{}) && l.Origin != origin {
			t.Errorf("read %+v", l)
		}
	})
}
