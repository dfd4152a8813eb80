package powercut

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// parse parses a trace in which strings are not escaped.
func parse(t *testing.T, text string, start map[string]string) (*Trace, error) {
	t.Helper()
	text = regexp.MustCompile(`"[^"]*"|</[^>]*>|<socket[^>]*>`).ReplaceAllStringFunc(text, func(s string) string {
		var escaped strings.Builder
		for _, b := range []byte(s[1 : len(s)-1]) {
			fmt.Fprintf(&escaped, `\x%02x`, b)
		}
		return s[:1] + escaped.String() + s[len(s)-1:]
	})
	files := make(map[string][]byte)
	for name, content := range start {
		files[name] = []byte(content)
	}
	return Parse(strings.NewReader(strings.Trim(text, "\n")+"\n"), "/db", files)
}

// show returns files as text.
func show(files map[string][]byte) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, fmt.Sprintf("%s=%q", name, files[name]))
	}
	return strings.Join(list, " ")
}

func TestDisk(t *testing.T) {
	start := map[string]string{"a": "old"}
	const create = `7 openat(AT_FDCWD</>, "/db/b", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 3</db/b>` + "\n"
	tests := []struct {
		name, trace string
		at          int // 0 for the end
		lost, kept  string
	}{
		{name: "a write", trace: `7 pwrite64(3</db/a>, "NEW", 3, 1) = 3`, lost: `a="old"`, kept: `a="oNEW"`},
		{name: "a write behind the end", trace: `7 pwrite64(3</db/a>, "x", 1, 5) = 1`, lost: `a="old"`,
			kept: `a="old\x00\x00x"`},
		{name: "a write that failed", trace: `7 pwrite64(3</db/a>, "NEW", 3, 1) = -1 ENOSPC (No space left on device)`,
			lost: `a="old"`, kept: `a="old"`},
		{name: "a short write", trace: `7 pwrite64(3</db/a>, "NEW", 3, 0) = 2`, lost: `a="old"`, kept: `a="NEd"`},
		{name: "a synced write", trace: `
7 pwrite64(3</db/a>, "NEW", 3, 0) = 3
7 fsync(3</db/a>)               = 0`, lost: `a="NEW"`, kept: `a="NEW"`},
		{name: "before the sync", at: 1, trace: `
7 pwrite64(3</db/a>, "NEW", 3, 0) = 3
7 fdatasync(3</db/a>)           = 0`, lost: `a="old"`, kept: `a="NEW"`},
		{name: "before the write", at: 1, trace: `
7 fsync(3</db/a>) = 0
7 pwrite64(3</db/a>, "NEW", 3, 0) = 3`, lost: `a="old"`, kept: `a="old"`},
		{name: "before the name", at: 1, trace: `
7 fsync(3</db/a>) = 0
7 unlink("/db/a") = 0`, lost: `a="old"`, kept: `a="old"`},
		{name: "a sync that failed", trace: `
7 pwrite64(3</db/a>, "NEW", 3, 0) = 3
7 fsync(3</db/a>) = -1 EIO (Input/output error)`, lost: `a="old"`, kept: `a="NEW"`},
		{name: "a write during the sync", trace: `
7 fsync(3</db/a> <unfinished ...>
8 pwrite64(3</db/a>, "NEW", 3, 0) = 3
7 <... fsync resumed>)          = 0`, lost: `a="old"`, kept: `a="NEW"`},
		{name: "a sync during the write", trace: `
8 pwrite64(3</db/a>, "NEW", 3, 0 <unfinished ...>
7 fsync(3</db/a>) = 0
8 <... pwrite64 resumed>) = 3`, lost: `a="old"`, kept: `a="NEW"`},
		{name: "a write that did not end", trace: `7 pwrite64(3</db/a>, "NEW", 3, 0 <unfinished ...>`, lost: `a="old"`,
			kept: `a="NEW"`},
		{name: "a sync of another file", trace: create + `
7 pwrite64(3</db/a>, "NEW", 3, 0) = 3
7 fsync(4</db/b>) = 0`[1:], lost: `a="old"`, kept: `a="NEW" b=""`},
		{name: "a new size", trace: `7 ftruncate(3</db/a>, 1) = 0`, lost: `a="old"`, kept: `a="o"`},
		{name: "emptied when opened", trace: `7 open("/db/a", O_WRONLY|O_TRUNC) = 3</db/a>`, lost: `a="old"`, kept: `a=""`},
		{name: "sequential writes", trace: create + `
7 write(3</db/b>, "one", 3) = 3
7 write(3</db/b>, "two", 3) = 3`[1:], lost: `a="old"`, kept: `a="old" b="onetwo"`},

		{name: "a new file that is synced", trace: create + `
7 pwrite64(3</db/b>, "x", 1, 0) = 1
7 fsync(3</db/b>) = 0`[1:], lost: `a="old"`, kept: `a="old" b="x"`},
		{name: "a new file whose folder is synced", trace: create + `
7 pwrite64(3</db/b>, "x", 1, 0) = 1
7 fsync(4</db>) = 0`[1:], lost: `a="old" b=""`, kept: `a="old" b="x"`},
		{name: "a renamed file", trace: `7 renameat(AT_FDCWD</db>, "a", AT_FDCWD</>, "/db/c") = 0`, lost: `a="old"`,
			kept: `c="old"`},
		{name: "a deleted file", trace: `7 unlinkat(AT_FDCWD</>, "/db/a", 0) = 0`, lost: `a="old"`, kept: ``},
		{name: "a deleted file whose folder is synced", trace: `
7 unlink("/db/a") = 0
7 fsync(4</db>) = 0`, lost: ``, kept: ``},
		{name: "a write to a deleted file", trace: `
7 unlink("/db/a") = 0
7 pwrite64(3</db/a>(deleted), "NEW", 3, 0) = 3`, lost: `a="old"`, kept: ``},
		{name: "a new file of an old name", trace: `
7 unlink("/db/a") = 0
7 open("/db/a", O_RDWR|O_CREAT, 0600) = 3</db/a>
7 pwrite64(3</db/a>, "NEW", 3, 0) = 3`, lost: `a="old"`, kept: `a="NEW"`},
		{name: "other folders", trace: `
7 pwrite64(3</dbx/a>, "NEW", 3, 0) = 3
7 unlink("/dbx/a") = 0
7 mkdirat(AT_FDCWD</>, "/dbx/y", 0700) = 0
7 --- SIGURG {si_signo=SIGURG, si_code=SI_TKILL, si_pid=7, si_uid=0} ---
7 +++ exited with 0 +++`, lost: `a="old"`, kept: `a="old"`},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			trace := must.Get(parse(t, test.trace, start))(t)
			at := test.at
			if at == 0 {
				at = trace.Lines() + 1
			}
			if got := show(trace.Disk(Cut{At: at, Loss: LoseAll, Name: LoseAll})); got != test.lost {
				t.Errorf("if all is lost: %s, want %s", got, test.lost)
			}
			if got := show(trace.Disk(Cut{At: at, Loss: LoseNone, Name: LoseNone})); got != test.kept {
				t.Errorf("if nothing is lost: %s, want %s", got, test.kept)
			}
		})
	}
}

// Each loss leaves all contents that it may leave, and no others.
func TestLosses(t *testing.T) {
	sectors := strings.Repeat("a", 512) + strings.Repeat("b", 512)
	page := strings.Repeat("A", 4096)
	tests := []struct {
		loss  Loss
		trace string
		want  []string // contents, with runs of a letter as one
	}{
		{LoseSome, `
7 pwrite64(3</db/f>, "1", 1, 0) = 1
7 pwrite64(3</db/f>, "2", 1, 1) = 1`, []string{"--", "1-", "-2", "12"}},
		{LoseOlder, `
7 pwrite64(3</db/f>, "1", 1, 0) = 1
7 pwrite64(3</db/f>, "2", 1, 1) = 1`, []string{"--", "-2", "12"}},
		{LoseData, `7 pwrite64(3</db/f>, "123", 3, 1) = 3`, []string{"--00"}},
		{TearSectors, `7 pwrite64(3</db/f>, "` + sectors + `", 1024, 0) = 1024`, []string{"--", "a", "--0b", "ab"}},
		{TearSectors, `7 pwrite64(3</db/f>, "ab", 2, 511) = 2`, []string{"--", "--0a", "--0b", "--0ab"}},
		{TearPages, `7 pwrite64(3</db/f>, "` + page + `B", 4097, 0) = 4097`, []string{"--", "A", "--0B", "AB"}},
		{TearPages, `7 ftruncate(3</db/f>, 1) = 0`, []string{"--", "-"}},
	}

	for _, test := range tests {
		t.Run(test.loss.String(), func(t *testing.T) {
			trace := must.Get(parse(t, test.trace, map[string]string{"f": "--"}))(t)
			got := make(map[string]bool)
			for seed := range uint64(100) {
				text := trace.Disk(Cut{At: trace.Lines(), Loss: test.loss, Seed: seed})["f"]
				text = bytes.ReplaceAll(text, []byte{0}, []byte("0"))
				got[regexp.MustCompile(`0+`).ReplaceAllString(runs(string(text)), "0")] = true
			}

			want := make(map[string]bool)
			for _, text := range test.want {
				want[regexp.MustCompile(`0+`).ReplaceAllString(runs(text), "0")] = true
			}
			if !maps.Equal(got, want) {
				t.Errorf("got %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
		})
	}
}

// runs shortens runs of a letter to one.
func runs(text string) string {
	for _, letter := range []string{"a", "b", "A"} {
		text = regexp.MustCompile(letter+"+").ReplaceAllString(text, letter)
	}
	return text
}

// Later changes of a name are lost with the earlier ones.
func TestLostNames(t *testing.T) {
	trace, err := parse(t, `
7 open("/db/b", O_RDWR|O_CREAT, 0600) = 3</db/b>
7 renameat(AT_FDCWD</>, "/db/b", AT_FDCWD</>, "/db/a") = 0
7 unlink("/db/a") = 0
7 open("/db/c", O_RDWR|O_CREAT, 0600) = 3</db/c>`, map[string]string{"a": "old"})
	must.OK(t, err)
	got := make(map[string]bool)
	for seed := range uint64(200) {
		got[show(trace.Disk(Cut{At: trace.Lines(), Name: LoseSome, Seed: seed}))] = true
	}
	want := map[string]bool{
		`a="old"`: true, `a="old" b=""`: true, `a=""`: true, ``: true,
		`a="old" c=""`: true, `a="old" b="" c=""`: true, `a="" c=""`: true, `c=""`: true,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

func TestMessages(t *testing.T) {
	trace, err := parse(t, `
7 fsync(4</other>) = 0
7 write(5<socket:[12]>, "HTTP/1.1 201 Created", 20 <unfinished ...>
8 fsync(4</other>) = 0
7 <... write resumed>) = 20`, nil)
	must.OK(t, err)
	if m := trace.Messages(); len(m) != 1 || m[0].At != 1 || string(m[0].Text) != "HTTP/1.1 201 Created" {
		t.Errorf("got %+v, want one message at line 1", m)
	}
}

// A call that the model does not know is an error if it affects the folder.
func TestUnknownCalls(t *testing.T) {
	for _, call := range []string{
		`fallocate(3</db/a>, 0, 0, 4096) = 0`,
		`pwritev(3</db/a>, [{iov_base="x", iov_len=1}], 1, 0) = 1`,
		`linkat(AT_FDCWD</>, "/db/a", AT_FDCWD</>, "/x", 0) = 0`,
		`mkdirat(AT_FDCWD</>, "/db/x", 0700) = 0`,
		`renameat(AT_FDCWD</>, "/db/a", AT_FDCWD</>, "/x") = 0`,
		`open("/db/a", O_WRONLY|O_APPEND) = 3</db/a>`,
		`pwrite64(3</db/a>, "x"..., 2, 0) = 2`,
		`nonsense`,
	} {
		if _, err := parse(t, "7 "+call, map[string]string{"a": "old"}); err == nil {
			t.Errorf("%s: no error", call)
		}
	}
}
