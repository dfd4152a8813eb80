package policytext

import (
	"fmt"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	for name, test := range map[string]struct{ before, after, want string }{
		"equal":         {"a b", "a b", ""},
		"one line":      {"a", "b", "-a +b"},
		"from nothing":  {"", "a b", "+a +b"},
		"to nothing":    {"a b", "", "-a -b"},
		"in the middle": {"a b c", "a x c", " a -b +x  c"},
		"moved":         {"a b c", "b c a", "-a  b  c +a"},
		"repeated line": {"a } b }", "a } c } b }", " a  } +c +}  b  }"},
		"distant lines": {"1 2 3 4 5 6 7 8 9", "1 2 3 4 5 6 7 8 x", "…  6  7  8 -9 +x"},
		"two changes":   {"a 1 2 3 4 5 6 7 b", "x 1 2 3 4 5 6 7 y", "-a +x  1  2  3 …  5  6  7 -b +y"},
	} {
		var lines []string
		for _, line := range Diff(strings.ReplaceAll(test.before, " ", "\n"), strings.ReplaceAll(test.after, " ", "\n")) {
			lines = append(lines, line.Sign+line.Text)
		}
		if got := strings.Join(lines, " "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// The diff of very long documents is quick: all lines between their common beginning
// and end are removed and added.
func TestDiffOfLongDocuments(t *testing.T) {
	var before, after strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&before, "a%d\n", i)
		fmt.Fprintf(&after, "b%d\n", i)
	}
	lines := align(splitLines("{\n"+before.String()+"}\n"), splitLines("{\n"+after.String()+"}\n"))
	if len(lines) != 40_002 || lines[1].Word() != "removed" || lines[40_000].New != 20_001 {
		t.Errorf("got %d lines, the second %v, the last but one %v", len(lines), lines[1], lines[40_000])
	}
	shown := Diff(before.String(), after.String())
	if last := shown[len(shown)-1]; len(shown) != maxShown+1 || last.Text != "39\u202f600 more lines" {
		t.Errorf("Diff returned %d lines, the last %v", len(shown), last)
	}
}
