package linediff

import (
	"fmt"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	for name, test := range map[string]struct{ before, after, want string }{
		"the same":            {"a b", "a b", ""},
		"one line":            {"a", "b", "-a +b"},
		"from nothing":        {"", "a b", "+a +b"},
		"to nothing":          {"a b", "", "-a -b"},
		"in the middle":       {"a b c", "a x c", " a -b +x  c"},
		"moved":               {"a b c", "b c a", "-a  b  c +a"},
		"twice the same line": {"a } b }", "a } c } b }", " a  } +c +}  b  }"},
		"far away":            {"1 2 3 4 5 6 7 8 9", "1 2 3 4 5 6 7 8 x", "…  6  7  8 -9 +x"},
		"two places":          {"a 1 2 3 4 5 6 7 b", "x 1 2 3 4 5 6 7 y", "-a +x  1  2  3 …  5  6  7 -b +y"},
	} {
		var told []string
		for _, line := range Diff(strings.ReplaceAll(test.before, " ", "\n"), strings.ReplaceAll(test.after, " ", "\n")) {
			told = append(told, line.Sign+line.Text)
		}
		if got := strings.Join(told, " "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Long documents are told apart too, and quickly: all of what lies between
// their common beginning and end is new then.
func TestDiffOfLongDocuments(t *testing.T) {
	var before, after strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&before, "a%d\n", i)
		fmt.Fprintf(&after, "b%d\n", i)
	}
	lines := align(splitLines("{\n"+before.String()+"}\n"), splitLines("{\n"+after.String()+"}\n"))
	if len(lines) != 40_002 || lines[1].Word() != "removed" || lines[40_000].New != 20_001 {
		t.Errorf("%d lines, the second is %v, the last but one %v", len(lines), lines[1], lines[40_000])
	}
	shown := Diff(before.String(), after.String())
	if last := shown[len(shown)-1]; len(shown) != maxShown+1 || last.Text != "39\u202f600 more lines" {
		t.Errorf("%d lines are shown, the last is %v", len(shown), last)
	}
}
