package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestCoAuthors(t *testing.T) {
	ann, bob := Author{Name: "Ann", Email: "ann@x"}, Author{Name: "Bob"}
	listed := []Author{{"Ann X, Bob", "b@x"}, {Name: "Ann X"}, {"Bob", "b@x"}}
	for name, test := range map[string]struct {
		message string
		want    []Author
	}{
		"none":              {"Fix it\n\nSigned-off-by: Ann <ann@x>\n", nil},
		"one":               {"Fix it\n\nCo-authored-by: Ann <ann@x>\n", []Author{ann}},
		"any case":          {"Fix it\n\nCO-AUTHORED-BY: Ann <ann@x>", []Author{ann}},
		"between others":    {"Fix\n\nFixes: #1\nco-authored-by: Ann <ann@x>\nAcked-by: Eve\n", []Author{ann}},
		"carriage returns":  {"Fix\r\n\r\nCo-authored-by: Ann <ann@x>\r\nAcked-by: Eve\r\n", []Author{ann}},
		"blanks":            {"Fix\n\n Co-authored-by :  Ann   <ann@x>  \n", []Author{ann}},
		"no blank":          {"Fix\n\nCo-authored-by:Ann<ann@x>", []Author{ann}},
		"a name":            {"Fix\n\nCo-authored-by: Bob\n", []Author{bob}},
		"an address":        {"Fix\n\nCo-authored-by: <ann@x>\n", []Author{{Email: "ann@x"}}},
		"continued":         {"Fix\n\nCo-authored-by: Ann\n  <ann@x>\n\tand more\nBob\n", []Author{ann, {Name: "more"}}},
		"a squashed commit": {"A\n\nCo-authored-by: Ann <ann@x>\n\nB\n\nCo-authored-by: Bob\n", []Author{ann, bob}},
		"twice":             {"A\n\nCo-authored-by: Ann <ann@x>\nCo-authored-by: Ann <ann@x>\n", []Author{ann}},
		"nobody":            {"A\n\nCo-authored-by:\nCo-authored-by: <>\n", []Author{{}}},
		"several": {"A\n\nCo-authored-by: Ann <ann@x>, Bob <bob@x>\n",
			[]Author{ann, {"Bob", "bob@x"}}},
		"several with words": {"A\n\nCo-Authored-By: Ann <ann@x> and Smith, Bob <bob@x> & <eve@x>;\n",
			[]Author{ann, {"Smith, Bob", "bob@x"}, {"Smith", "bob@x"}, {"Bob", "bob@x"}, {Email: "eve@x"}}},
		"several on lines":  {"A\n\nCo-authored-by: Ann <ann@x>,\n Bob <bob@x>\n", []Author{ann, {"Bob", "bob@x"}}},
		"several addresses": {"A\n\nCo-authored-by: ann@x, bob@x\n", []Author{{Email: "ann@x"}, {Email: "bob@x"}}},
		"several names":     {"A\n\nCo-authored-by: Ann, Bob\n", []Author{{Name: "Ann"}, bob, {Name: "Ann, Bob"}}},
		"a name at the end": {"A\n\nCo-authored-by: Ann <ann@x>, Bob\n", []Author{ann, bob}},
		"a comment":         {"A\n\nCo-authored-by: Ann <ann@x> (at home)\n", []Author{ann}},
		"a name with a comma": {"A\n\nCo-authored-by: X, Ann <ann@x>\n", []Author{{"X, Ann", "ann@x"}, {"X", "ann@x"},
			{"Ann", "ann@x"}}},
		"ended by an empty line": {"A\n\nCo-authored-by: Ann <ann@x>\n\n  curl -u <user>\n", []Author{ann}},
		"unnamed":                {"A\n\nCo-authored-by: - <->\n", []Author{{Email: "-"}}},
		"an item":                {"A\n\n* Co-authored-by: Bob\n", []Author{bob}},
		"a nested item":          {"A\n\n  - Co-authored-by: Bob\n", []Author{bob}},
		"quoted":                 {"A\n\n> Co-authored-by: Bob\n", []Author{bob}},
		"emphasized":             {"A\n\n**Co-authored-by:** Bob\n", []Author{bob}},
		"with blanks":            {"A\n\nCo authored by: Bob\n", []Author{bob}},
		"a list of both":         {"A\n\nCo-authored-by: Ann X, Bob <b@x>\n", listed},
		"words before an address": {"A\n\nCo-authored-by: Ann X & Bob <b@x>\n",
			[]Author{{"Ann X & Bob", "b@x"}, {Name: "Ann X"}, {"Bob", "b@x"}}},
		"a word after an address": {"A\n\nCo-authored-by: Bob <b@x> and Ann X\n", []Author{{"Bob", "b@x"}, {Name: "Ann X"}}},
		"a bare address":          {"A\n\nCo-authored-by: X eve@x\n", []Author{{"X", "eve@x"}}},
		"in other brackets":       {"A\n\nCo-authored-by: X (eve@x)\n", []Author{{"X", "eve@x"}}},
		"in square brackets":      {"A\n\nCo-authored-by: X [eve@x]\n", []Author{{"X", "eve@x"}}},
		"two addresses":           {"A\n\nCo-authored-by: eve@x ann@x\n", []Author{{Email: "eve@x"}, {Email: "ann@x"}}},
		"two in brackets":         {"A\n\nCo-authored-by: X <b@x, eve@x>\n", []Author{{"X", "b@x"}, {Email: "eve@x"}}},
		"quotes":                  {"A\n\nCo-authored-by: \"X\" <\"eve@x\">\n", []Author{{"X", "eve@x"}}},
		"an account":              {"A\n\nCo-authored-by: @eve\n", []Author{{Email: "@eve"}}},
		"an address in a comment": {"A\n\nCo-authored-by: Ann <ann@x> (eve@x)\n", []Author{ann, {Email: "eve@x"}}},
		"a bot": {"A\n\nCo-authored-by: b[bot] <1+b[bot]@users.noreply.github.com>\n",
			[]Author{{"b[bot]", "1+b[bot]@users.noreply.github.com"}}},
		"an address in words": {"A\n\nCo-authored-by: Ann <ann at x>\n", []Author{{"Ann", "ann at x"}}},
		"a name with a dash":  {"A\n\nCo-authored-by: Ann - X <ann@x>\n", []Author{{"Ann - X", "ann@x"}}},
		"a name, then a person": {"A\n\nCo-authored-by: Stone, Ann\n", []Author{{Name: "Stone"}, {Name: "Ann"},
			{Name: "Stone, Ann"}}},
		"a word in the text": {"A\n\nThis has no Co-authored-by: line.\n", nil},
		"control characters": {"A\n\nCo-authored-by: Bob\x00\x1b\n", []Author{bob}},
	} {
		if got := CoAuthors(test.message); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A message of the maximum size takes no longer to read than it takes to copy it a few times.
func TestCoAuthorsAreBounded(t *testing.T) {
	const size = 1 << 20
	people := "Co-authored-by: " + strings.Repeat("<a@x>,", size/6)
	var others strings.Builder
	for i := range size / 16 {
		fmt.Fprintf(&others, "<p%d@x>,", i)
	}
	for name, test := range map[string]struct {
		message string
		want    int
	}{
		"one person on one line":   {people, 1},
		"many people on one line":  {"Co-authored-by: " + others.String(), MaxCoAuthors + 1},
		"one person on many lines": {"Co-authored-by: A\n" + strings.Repeat(" x\n", size/3), 1},
	} {
		if got := CoAuthors(test.message); len(got) != test.want {
			t.Errorf("%s: %d co-authors, want %d", name, len(got), test.want)
		}
	}
}

func TestBoundsOfClaims(t *testing.T) {
	trailers := func(n int) (message string) {
		for i := range n {
			message += fmt.Sprintf("Co-authored-by: P%d <p%d@x>\n", i, i)
		}
		return "Subject\n\n" + message
	}
	for name, test := range map[string]struct {
		registration Registration
		field        string
	}{
		"100 co-authors":     {Registration{Message: trailers(100)}, ""},
		"101 co-authors":     {Registration{Message: trailers(101)}, "message"},
		"a long co-author":   {Registration{Message: "A\n\nCo-authored-by: " + strings.Repeat("a", 321)}, "message"},
		"a long address":     {Registration{Message: "A\n\nCo-authored-by: <" + strings.Repeat("a", 321) + ">"}, "message"},
		"a committer":        {Registration{Committer: Author{Name: "Bob\n"}}, "committer.name"},
		"a fingerprint":      {Registration{SigningKey: strings.Repeat("ab", 32)}, ""},
		"a short key":        {Registration{SigningKey: strings.Repeat("ab", 20)}, "signing_key"},
		"an upper-case key":  {Registration{SigningKey: strings.Repeat("AB", 32)}, "signing_key"},
		"a committer's mail": {Registration{Committer: Author{Email: strings.Repeat("a", 321)}}, "committer.email"},
	} {
		wantField(t, name, test.registration.Check(), test.field)
	}

	var targets, keys []string
	var writers []Author
	var err error
	for i := range maxTargets {
		targets, err = AddTarget(targets, fmt.Sprint("b", i))
		wantField(t, "a target", err, "")
	}
	_, err = AddTarget(targets, "one-more")
	wantField(t, "101 targets", err, "target")
	if same, err := AddTarget(targets, "b7"); err != nil || len(same) != maxTargets {
		t.Errorf("a target again: %d targets, %v", len(same), err)
	}

	for i := range 2 {
		writers, err = AddWriters(writers, Registration{Message: strings.ReplaceAll(trailers(100), "P", fmt.Sprint("Q", i))})
		wantField(t, "100 writers", err, "")
	}
	_, err = AddWriters(writers, Registration{Committer: Author{Name: "Eve"}})
	wantField(t, "201 writers", err, "message")

	for i := range maxSigningKeys {
		keys, err = AddSigningKey(keys, fmt.Sprint(i))
		wantField(t, "a key", err, "")
	}
	_, err = AddSigningKey(keys, "more")
	wantField(t, "11 signing keys", err, "signing_key")
}

// wantField checks the field that an error names. An empty field means no error.
func wantField(t *testing.T, what string, err error, field string) {
	t.Helper()
	var got string
	if e, ok := err.(*Error); ok && len(e.Fields) == 1 {
		got = e.Fields[0].Field
	}
	if got != field || (err == nil) != (field == "") {
		t.Errorf("%s: %v, want a fault of %q", what, err, field)
	}
}

func TestAddWritersLeavesOutTheAuthor(t *testing.T) {
	ann, bob := Author{Name: "Ann", Email: "ann@x"}, Author{Name: "Bob"}
	n := Registration{Author: ann, Committer: ann, Message: "A\n\nCo-authored-by: Bob\nCo-authored-by: Ann <ann@x>"}
	writers, err := AddWriters(nil, n)
	if err != nil || !slices.Equal(writers, []Author{bob}) {
		t.Errorf("writers %v, %v, want Bob", writers, err)
	}
	writers, err = AddWriters(writers, Registration{Committer: bob, Message: "B"})
	if err != nil || !slices.Equal(writers, []Author{bob}) {
		t.Errorf("writers after a registration without co-authors: %v, %v, want Bob", writers, err)
	}
}

func TestCommitCorrectionCheck(t *testing.T) {
	many := make([]string, maxTargets+1)
	for i := range many {
		many[i] = fmt.Sprint("b", i)
	}
	for name, test := range map[string]struct {
		targets []string
		field   string
	}{
		"none":         {[]string{}, ""},
		"two":          {[]string{"main", "release/1"}, ""},
		"too many":     {many, "targets"},
		"an empty one": {[]string{"main", ""}, "targets[1]"},
		"one twice":    {[]string{"main", "main"}, "targets[1]"},
		"an invalid":   {[]string{"-x"}, "targets[0]"},
	} {
		wantField(t, name, CommitCorrection{Targets: &test.targets}.Check(), test.field)
	}
	wantField(t, "nothing", CommitCorrection{}.Check(), "targets")
}

func TestCorrectedText(t *testing.T) {
	if got := CorrectedText([]string{"a", "b"}); got != "a, b" {
		t.Errorf("got %q", got)
	}
	long := CorrectedText(slices.Repeat([]string{"ü"}, MaxCorrected))
	if len(long) > MaxCorrected || len(long) < MaxCorrected-4 || !strings.HasSuffix(long, "…") {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}
