package radar

import (
	"slices"
	"strings"
	"testing"
)

func TestFootprintLists(t *testing.T) {
	f := New([]string{"ignored/**"}).Footprint([]Change{
		added("a/b/new", 1), deleted("gone/x", 1), renamed("old/n", "new/n", edited("", 1, 1)), edited("root", 1, 2),
		added("ignored/x", 1), edited("a/b/c/d", 1, 2),
	})
	for _, test := range []struct {
		name      string
		got, want []string
	}{
		{"Names", f.Names(), []string{"a/b/c/d", "a/b/new", "gone/x", "new/n", "old/n", "root"}},
		{"Dirs", f.Dirs(), []string{"a/b/", "a/b/c/", "gone/", "new/", "old/"}},
		{"Added", f.Added(), []string{"a/b/new", "new/n"}},
		{"Above", f.Above(), []string{"a", "a/b", "a/b/c", "new"}},
	} {
		if !slices.Equal(test.got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, test.got, test.want)
		}
	}
}

func TestIgnores(t *testing.T) {
	costly := "{" + strings.Repeat("d,", 16-1) + "d}/*" + strings.Repeat("?", 400)

	for name, test := range map[string]struct {
		ignore []string
		path   string
		want   bool
	}{
		"no globs":                 {nil, "d/f", false},
		"one of the globs matches": {[]string{"*.lock", "d/**"}, "d/e/f", true},
		"no glob matches":          {[]string{"*.lock", "d/**"}, "e/d/f", false},
		"many steps":               {[]string{costly}, "d/" + strings.Repeat("x", 500), true},
		"too many steps":           {[]string{costly}, "d/" + strings.Repeat("x", 4000), false},
		"too many before a match":  {[]string{costly, "d/**"}, "d/" + strings.Repeat("x", 4000), false},
		"a match before too many":  {[]string{"d/**", costly}, "d/" + strings.Repeat("x", 4000), true},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(test.ignore)
			if got := r.Ignores(test.path); got != test.want {
				t.Errorf("Ignores = %t, want %t", got, test.want)
			}
			if n := len(r.Footprint([]Change{edited(test.path, 1, 2)}).Names()); (n == 0) != test.want {
				t.Errorf("the footprint has %d names, ignored: want %t", n, test.want)
			}
		})
	}
}
