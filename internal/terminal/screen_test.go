package terminal

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

func TestColours(t *testing.T) {
	tests := []struct {
		env      string
		terminal bool
		want     bool
	}{
		{"", true, true},
		{"", false, false},
		{"NO_COLOR=1", true, false},
		{"NO_COLOR=", true, true},
		{"NO_COLOR=0", true, false},
		{"CLICOLOR_FORCE=1", false, true},
		{"FORCE_COLOR=1", false, true},
		{"FORCE_COLOR=true TERM=dumb", true, true},
		{"CLICOLOR_FORCE=0", false, false},
		{"FORCE_COLOR=0", false, false},
		{"FORCE_COLOR=false", true, true},
		{"NO_COLOR=1 CLICOLOR_FORCE=1", true, false},
		{"CLICOLOR=0", true, false},
		{"CLICOLOR=1", true, true},
		{"CLICOLOR=1", false, false},
		{"TERM=dumb", true, false},
		{"TERM=xterm", true, true},
	}
	for _, test := range tests {
		env := map[string]string{"WT_SESSION": "1"}
		for pair := range strings.FieldsSeq(test.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		if got := hasColours(test.terminal, func(name string) string { return env[name] }); got != test.want {
			t.Errorf("%q, terminal %t: colours %t, want %t", test.env, test.terminal, got, test.want)
		}
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0:                    "just now",
		4 * time.Second:      "just now",
		-4 * time.Second:     "just now",
		5 * time.Second:      "5 seconds ago",
		59 * time.Second:     "59 seconds ago",
		time.Minute:          "1 minute ago",
		3*time.Minute + 59e9: "3 minutes ago",
		time.Hour:            "1 hour ago",
		47 * time.Hour:       "47 hours ago",
		48 * time.Hour:       "2 days ago",
		-48 * time.Hour:      "in 2 days",
		-90 * time.Second:    "in 1 minute",
		29 * 24 * time.Hour:  "29 days ago",
		30 * 24 * time.Hour:  "2026-10-23",
		-30 * 24 * time.Hour: "2026-12-22",
	} {
		if got := Ago(ledger.TimeOf(now.Add(-d)), now); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "…": 1, "→": 1, "✓": 1, "日本語": 6, "e\u0301": 1,
		"👩‍👩‍👧": 2, "🇩🇪": 2, "ﬁ": 1,
	} {
		if got := Width(text); got != want {
			t.Errorf("%q has width %d, want %d", text, got, want)
		}
	}
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"日本語", 4, "日…"}, {"日本語", 5, "日本…"},
		{"ee\u0301ee", 3, "ee\u0301…"},
		{"👩‍👩‍👧👩‍👩‍👧", 3, "👩‍👩‍👧…"},
	} {
		if got := CutTo(test.text, test.width); got != test.want {
			t.Errorf("%q cut to %d is %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"one two", []string{"one two"}},
		{"one two three", []string{"one two", "three"}},
		{"one234567890two", []string{"one23456", "7890two"}},
		{"日本語日本語", []string{"日本語日", "本語"}},
	} {
		if got := wrap(test.text, 8); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
	if got := wrap("日本", 1); !slices.Equal(got, []string{"日", "本"}) { // it ends, even so
		t.Errorf("%q", got)
	}
}

// onTerminal returns what a table of the given width prints, for a person.
func onTerminal(width int, print func(s *Screen)) string {
	var b bytes.Buffer
	print(&Screen{writer: &b, isTerminal: true, width: width, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)})
	return b.String()
}

var atNoon = ledger.TimeOf(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))

func TestTableFitsTheTerminal(t *testing.T) {
	show := func(s *Screen) {
		table := NewTable(s, "ID", "DN", "EMAIL", "CREATED")
		table.Row("idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y", "cn=日本語の名前,ou=build,o=acme", "a@acme.example",
			atNoon.Add(-3*time.Minute))
		table.Row("idn_2", "cn=b", "-", ledger.Time(0))
		table.Flush()
	}
	for width, want := range map[int]string{
		100: `ID                              DN                               EMAIL           CREATED
idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y  cn=日本語の名前,ou=build,o=acme  a@acme.example  3 minutes ago
idn_2                           cn=b                             -               -
`,
		80: `ID                              DN                 EMAIL           CREATED
idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y  cn=日本語の名前,…  a@acme.example  3 minutes ago
idn_2                           cn=b               -               -
`,
		62: `ID                              DN               CREATED
idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y  cn=日本語の名…   3 minutes ago
idn_2                           cn=b             -
Not shown: EMAIL (use --wide)
`,
		20: `ID                              DN
idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y  cn=日本語の名…
idn_2                           cn=b
Not shown: EMAIL, CREATED (use --wide)
`,
	} {
		got := onTerminal(width, show)
		for line := range strings.Lines(got) {
			if w := Width(strings.TrimSuffix(line, "\n")); w > width && width >= 62 {
				t.Errorf("width %d: a line has %d columns: %s", width, w, line)
			}
		}
		if got != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, got, want)
		}
		if !strings.Contains(got, "idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y  cn=") {
			t.Errorf("width %d: the id is cut:\n%s", width, got)
		}
		if lacks := strings.Contains(got, "Not shown: EMAIL"); lacks != (width <= 62) {
			t.Errorf("width %d:\n%s", width, got)
		}
	}

	wide := onTerminal(20, func(s *Screen) { s.Wide = true; show(s) })
	if !strings.Contains(wide, "o=acme  a@acme.example  3 minutes ago") || strings.Contains(wide, "Not shown") {
		t.Errorf("with Wide:\n%s", wide)
	}
}

// What is read by a program is never cut, whatever COLUMNS is.
func TestPipesAreNeverCut(t *testing.T) {
	t.Setenv("COLUMNS", "20")
	var b bytes.Buffer
	table := NewTable(&b, "COMMIT", "MESSAGE", "CREATED")
	table.Row("1234", strings.Repeat("long ", 100), atNoon)
	table.Flush()
	want := "1234    " + strings.Repeat("long ", 99) + "long  2026-11-22T12:00:00.000Z\n"
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("%s", &b)
	}
}

func TestTableWraps(t *testing.T) {
	got := onTerminal(50, func(s *Screen) {
		table := NewTable(s, "", "STATE", "REASON")
		table.Wrap = true
		table.Row("✗", ledger.Promotable, "review:code: 0 of 1 signatures matching ou=reviewers,o=acme")
		table.Row("✓", ledger.Attested, "met by cn=ci")
		table.Flush()
	})
	const want = `   STATE       REASON
✗  PROMOTABLE  review:code: 0 of 1 signatures
               matching ou=reviewers,o=acme
✓  ATTESTED    met by cn=ci
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestRecordHasExactTimes(t *testing.T) {
	got := onTerminal(80, func(s *Screen) {
		table := NewTable(s)
		table.Row("created", atNoon.Add(-time.Hour))
		table.Row("state", Parts{ledger.Draft, " since ", atNoon.Add(-2 * time.Hour)})
		table.Row("used", ledger.Time(0))
		table.Flush()
	})
	const want = `created  1 hour ago (2026-11-22T11:00:00Z)
state    DRAFT since 2 hours ago (2026-11-22T10:00:00Z)
used     -
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestCellsHaveColours(t *testing.T) {
	var b bytes.Buffer
	s := &Screen{writer: &b, Painter: newPainter(), isTerminal: true, width: 80}
	table := NewTable(s, "", "STATUS", "NOTE")
	table.Row("✗", ledger.Fail, "x\x1b[31m")
	table.Row("✓", ledger.Pass, "y")
	table.Flush()
	const want = "   \x1b[1mSTATUS\x1b[0m  \x1b[1mNOTE\x1b[0m\n" +
		"\x1b[31m✗\x1b[0m  \x1b[31mfail\x1b[0m    x\uFFFD[31m\n\x1b[32m✓\x1b[0m  \x1b[32mpass\x1b[0m    y\n"
	if b.String() != want {
		t.Errorf("%q\nwant\n%q", b.String(), want)
	}
}

// A Screen on a real terminal takes its width, unless COLUMNS says otherwise.
func TestScreenOfATerminal(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminals:", err)
	}
	defer master.Close()
	defer slave.Close()
	for _, name := range []string{"NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "COLUMNS"} {
		t.Setenv(name, "")
	}
	t.Setenv("TERM", "xterm")

	if s := NewScreen(slave); !s.isTerminal || s.width != usualWidth || s.mark == "" {
		t.Errorf("without a size: %+v", s)
	}
	must.OK(t, pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 133}))
	if s := NewScreen(slave); s.width != 133 {
		t.Errorf("width %d, want 133", s.width)
	}
	t.Setenv("COLUMNS", "44")
	if s := NewScreen(slave); s.width != 44 {
		t.Errorf("width %d, want that of COLUMNS", s.width)
	}
	if !IsTerminal(slave) || IsTerminal((*os.File)(nil)) || IsTerminal(strings.NewReader("")) {
		t.Error("only a terminal can be asked")
	}
}

func TestAsk(t *testing.T) {
	for answer, want := range map[string]bool{
		"y\n": true, "Yes\r\n": true, " YES \n": true, "y": true, "n\n": false, "\n": false, "": false, "yep\n": false,
		strings.Repeat(" ", maxAnswer) + "y\n": false,
	} {
		var b bytes.Buffer
		in := strings.NewReader(answer + "rest")
		if answer == "y" || answer == "" {
			in = strings.NewReader(answer)
		}
		got, err := Ask(in, &b, "Revoke cn=a\x1b?")
		if err != nil || got != want {
			t.Errorf("%q: %t, %v, want %t", answer, got, err, want)
		}
		if !strings.HasPrefix(b.String(), "Revoke cn=a\uFFFD? [y/N] ") {
			t.Errorf("asked %q", b.String())
		}
		if rest, _ := io.ReadAll(in); strings.HasSuffix(answer, "\n") && len(answer) < maxAnswer && string(rest) != "rest" {
			t.Errorf("%q: left %q", answer, rest)
		}
	}
}

// What is written to a screen cannot control the terminal. Only what its Painter has painted has colours.
func TestScreenNeutralizesWhatItIsGiven(t *testing.T) {
	painter := newPainter()
	for text, want := range map[string]string{
		"a line\n\twith ümläuts ✓ 漢字\n": "a line\n\twith ümläuts ✓ 漢字\n",
		painter.Paint(Red, "fail"):      "\x1b[31mfail\x1b[0m",
		"green \x1b[32mok\x1b[0m":       "green \uFFFD[32mok\uFFFD[0m",
		"title \x1b]0;x\x07":            "title \uFFFD]0;x\uFFFD",
		"cleared \x1b[2J\x1b[H":         "cleared \uFFFD[2J\uFFFD[H",
		"concealed \x1b[8m":             "concealed \uFFFD[8m",
		"many \x1b[31;8m \x1b[":         "many \uFFFD[31;8m \uFFFD[",
		"back\rto the start":            "back\uFFFDto the start",
		"C1 \u009b2J":                   "C1 \uFFFD2J",
		"turned \u202e\u2066":           "turned \uFFFD\uFFFD",
		"hidden \u200b\u2060\ufeff":     "hidden \uFFFD\uFFFD\uFFFD",
		"lines \u2028\u2029\x0b\x0c":    "lines \uFFFD\uFFFD\uFFFD\uFFFD",
		"bytes \xff\x9b":                "bytes \uFFFD\uFFFD",
	} {
		var b bytes.Buffer
		n, err := (&Screen{writer: &b, Painter: painter}).Write([]byte(text))
		if err != nil || n != len(text) || b.String() != want {
			t.Errorf("%q: wrote %q, %d, %v, want %q", text, b.String(), n, err, want)
		}
	}

	if got, want := painter.Inline("a\n\x1b[32m\tb "+painter.Paint(Red, "c\r\nd")),
		"a \uFFFD[32m b "+painter.Paint(Red, "c d"); got != want {
		t.Errorf("a line: %q, want %q", got, want)
	}
	var b bytes.Buffer
	if _, err := NewScreen(&b).Exact().Write([]byte("\x1b\xff")); err != nil || b.String() != "\x1b\xff" {
		t.Errorf("exact bytes: %q, %v", b.String(), err)
	}
}
