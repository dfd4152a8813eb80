package radar

import (
	"fmt"
	"strings"
	"testing"
)

// blob returns the id of blob n.
func blob(n int) string { return fmt.Sprintf("%040x", n) }

func added(path string, content int) Change {
	return Change{Path: path, Status: "A", Mode: "100644", Blob: blob(content)}
}

func deleted(path string, content int) Change {
	return Change{Path: path, Status: "D", OldMode: "100644", OldBlob: blob(content)}
}

func edited(path string, from, to int, hunks ...Hunk) Change {
	return Change{Path: path, Status: "M", OldMode: "100644", Mode: "100644", OldBlob: blob(from), Blob: blob(to),
		Hunks: hunks}
}

func renamed(from, to string, c Change) Change {
	c.OldPath, c.Path, c.Status = from, to, "R"
	return c
}

func binaryFile(c Change) Change { c.Binary = true; return c }

func mode(from, to string, c Change) Change { c.OldMode, c.Mode = from, to; return c }

// put returns a hunk that replaces the given number of lines, from start on, with text.
func put(start, lines int, text string) Hunk {
	return Hunk{Start: start, Lines: lines, Added: 1, Text: text, Near: make([]string, lines+1),
		Far: make([]string, lines+1)}
}

func cut(start, lines int) Hunk {
	h := put(start, lines, "")
	h.Added = 0
	return h
}

func (h Hunk) in(function string) Hunk { h.Function = function; return h }

// around sets the hashes of the first gap.
func (h Hunk) around(far, near string) Hunk { h.Far[0], h.Near[0] = far, near; return h }

const (
	a1, b2, c3 = "a111111111111111", "b222222222222222", "c333333333333333"
	far1, far2 = "f111111111111111", "f222222222222222"
	near1      = "e111111111111111"
)

// describe formats an overlap on one line.
func describe(o Overlap) string {
	texts := []string{o.Level.String()}
	for _, p := range o.Paths {
		text := fmt.Sprintf("%s %s", p.Path, p.Reason)
		if len(p.Ranges.Commit)+len(p.Ranges.Other) > 0 {
			text += fmt.Sprintf(" %v %v", p.Ranges.Commit, p.Ranges.Other)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

func compare(a, b []Change, o Options, ignore ...string) Overlap {
	r := New(ignore)
	return Compare(r.Footprint(a), r.Footprint(b), o)
}

// comparePacked is like compare, with the second record packed.
func comparePacked(a, b []Change, o Options, ignore ...string) Overlap {
	packed := make([]PackedChange, len(b))
	for i := range b {
		packed[i] = AppendPacked(nil, &b[i])
	}
	r := New(ignore)
	return Compare(r.Footprint(a), r.FootprintOfPacked(packed), o)
}

// ways lists equivalent ways of comparing a pair.
var ways = []struct {
	name    string
	compare func(a, b []Change, o Options, ignore ...string) Overlap
}{
	{"in order", compare},
	{"swapped", func(a, b []Change, o Options, ignore ...string) Overlap {
		return compare(b, a, o, ignore...).Swap()
	}},
	{"the second packed", comparePacked},
	{"the first packed", func(a, b []Change, o Options, ignore ...string) Overlap {
		return comparePacked(b, a, o, ignore...).Swap()
	}},
}

// checkCompare compares two records in all ways.
func checkCompare(t *testing.T, want string, a, b []Change, o Options, ignore ...string) {
	t.Helper()
	for _, way := range ways {
		if got := describe(way.compare(a, b, o, ignore...)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", way.name, got, want)
		}
	}
}

func TestCompare(t *testing.T) {
	link := func(c Change) Change { return mode("120000", "120000", c) }
	module := func(c Change) Change { return mode("160000", "160000", c) }
	toLink := mode("100644", "120000", Change{Path: "d/f", Status: "T", OldBlob: blob(1), Blob: blob(9)})
	exec := mode("100644", "100755", edited("d/f", 1, 1))
	const none = "none"

	for name, test := range map[string]struct {
		a, b Change
		want string
	}{
		// The same old content: hunks are located by line numbers.
		"the same line": {edited("d/f", 1, 2, put(5, 1, a1)), edited("d/f", 1, 3, put(5, 1, b2)),
			"HIGH; d/f same_lines [{5 1}] [{5 1}]"},
		"lines that overlap": {edited("d/f", 1, 2, put(5, 3, a1)), edited("d/f", 1, 3, cut(7, 4)),
			"HIGH; d/f same_lines [{5 3}] [{7 4}]"},
		"adjacent lines": {edited("d/f", 1, 2, put(5, 1, a1)), edited("d/f", 1, 3, put(6, 1, b2)),
			"HIGH; d/f same_lines [{5 1}] [{6 1}]"},
		"a line added after a changed one": {edited("d/f", 1, 2, put(5, 1, a1)), edited("d/f", 1, 3, put(5, 0, b2)),
			"HIGH; d/f same_lines [{5 1}] [{5 0}]"},
		"a line added before a changed one": {edited("d/f", 1, 2, put(5, 1, a1)), edited("d/f", 1, 3, put(4, 0, b2)),
			"HIGH; d/f same_lines [{5 1}] [{4 0}]"},
		"lines added at the same position": {edited("d/f", 1, 2, put(5, 0, a1)), edited("d/f", 1, 3, put(5, 0, b2)),
			"HIGH; d/f same_lines [{5 0}] [{5 0}]"},
		"a line between": {edited("d/f", 1, 2, put(5, 1, a1)), edited("d/f", 1, 3, put(7, 1, b2)),
			"MEDIUM; d/f near_lines [{5 1}] [{7 1}]"},
		"25 lines between": {edited("d/f", 1, 2, put(5, 1, a1)), edited("d/f", 1, 3, put(31, 1, b2)),
			"MEDIUM; d/f near_lines [{5 1}] [{31 1}]"},
		"26 lines between": {edited("d/f", 1, 2, put(5, 1, a1)), edited("d/f", 1, 3, put(32, 1, b2)),
			"MEDIUM; d/f same_file [{5 1}] [{32 1}]"},
		"one function, distant lines": {edited("d/f", 1, 2, put(5, 1, a1).in("main")),
			edited("d/f", 1, 3, put(99, 1, b2).in("main")), "MEDIUM; d/f same_function [{5 1}] [{99 1}]"},
		"no function": {edited("d/f", 1, 2, put(5, 1, a1)), edited("d/f", 1, 3, put(99, 1, b2)),
			"MEDIUM; d/f same_file [{5 1}] [{99 1}]"},
		"the same change, and another": {edited("d/f", 1, 2, put(5, 1, a1), put(90, 1, a1)),
			edited("d/f", 1, 3, put(5, 1, a1)), "MEDIUM; d/f near_lines [{5 1}] [{5 1}]"},
		"the same lines deleted": {edited("d/f", 1, 2, cut(5, 2), put(90, 1, a1)), edited("d/f", 1, 3, cut(5, 2)),
			"MEDIUM; d/f near_lines [{5 2}] [{5 2}]"},
		"the same text in one more line": {edited("d/f", 1, 2, put(5, 1, a1)), edited("d/f", 1, 3, put(5, 2, a1)),
			"HIGH; d/f same_lines [{5 1}] [{5 2}]"},
		"unknown text": {edited("d/f", 1, 2, put(5, 1, "")), edited("d/f", 1, 3, put(5, 1, "")),
			"HIGH; d/f same_lines [{5 1}] [{5 1}]"},
		"the same result":           {edited("d/f", 1, 2, put(5, 1, a1)), edited("d/f", 1, 2, put(5, 1, a1)), none},
		"unknown hunks":             {edited("d/f", 1, 2), edited("d/f", 1, 3), "MEDIUM; d/f same_file"},
		"the mode, and the content": {exec, edited("d/f", 1, 3, put(5, 1, b2)), "MEDIUM; d/f same_file [] [{5 1}]"},
		"the same mode":             {exec, exec, none},
		"different modes":           {exec, mode("100644", "100600", edited("d/f", 1, 1)), "HIGH; d/f type"},
		"the same content, but another mode": {mode("100644", "100755", edited("d/f", 1, 2, put(5, 1, a1))),
			edited("d/f", 1, 2, put(5, 1, a1)), "MEDIUM; d/f same_file [{5 1}] [{5 1}]"},

		// Different old contents: hunks are located by hashes.
		"far is shared": {edited("d/f", 1, 2, put(5, 1, a1).around(far1, "")),
			edited("d/f", 3, 4, put(50, 1, b2).around(far1, "")), "HIGH; d/f same_lines [{5 1}] [{50 1}]"},
		"near is shared": {edited("d/f", 1, 2, put(5, 1, a1).around(far1, near1)),
			edited("d/f", 3, 4, put(50, 1, b2).around(far2, near1)), "HIGH; d/f same_lines [{5 1}] [{50 1}]"},
		"nothing is shared": {edited("d/f", 1, 2, put(5, 1, a1).around(far1, "")),
			edited("d/f", 3, 4, put(5, 1, b2).around(far2, "")), "MEDIUM; d/f near_lines [{5 1}] [{5 1}]"},
		"the same change, far and near shared": {edited("d/f", 1, 2, put(5, 1, a1).around(far1, near1)),
			edited("d/f", 3, 4, put(50, 1, a1).around(far1, near1)), "MEDIUM; d/f same_file [{5 1}] [{50 1}]"},
		"the same change, near shared": {edited("d/f", 1, 2, put(5, 1, a1).around(far1, near1)),
			edited("d/f", 3, 4, put(50, 1, a1).around(far2, near1)), "HIGH; d/f same_lines [{5 1}] [{50 1}]"},
		"built on the other's result": {edited("d/f", 1, 2, put(5, 1, a1)), edited("d/f", 2, 3, put(5, 1, b2)), none},
		"the same result from different bases": {edited("d/f", 1, 3, put(5, 1, a1).around(far1, "")),
			edited("d/f", 2, 3, put(5, 2, a1).around(far1, "")), none},

		// The file as a whole.
		"deleted and edited": {deleted("d/f", 1), edited("d/f", 1, 2, put(5, 1, a1)),
			"HIGH; d/f delete_edit [] [{5 1}]"},
		"deleted by both":                   {deleted("d/f", 1), deleted("d/f", 1), none},
		"deleted after the edit landed":     {deleted("d/f", 2), edited("d/f", 1, 2, put(5, 1, a1)), none},
		"deleted and turned into a symlink": {deleted("d/f", 1), toLink, "HIGH; d/f delete_edit"},
		"renamed and deleted": {renamed("d/f", "d/g", edited("", 1, 1)), deleted("d/f", 1),
			"HIGH; d/f rename_delete"},
		"renamed to two names": {renamed("d/f", "d/g", edited("", 1, 1)),
			renamed("d/f", "d/h", edited("", 1, 1)), "HIGH; d/f rename_rename"},
		"renamed to one name": {renamed("d/f", "d/g", edited("", 1, 1)),
			renamed("d/f", "d/g", edited("", 1, 1)), none},
		"renamed to one name, edited in one": {renamed("d/f", "d/g", edited("", 1, 1)),
			renamed("d/f", "d/g", edited("", 1, 2, put(5, 1, a1))), none},
		"renamed to one name, edited differently": {renamed("d/f", "d/g", edited("", 1, 2, put(5, 1, a1))),
			renamed("d/f", "d/g", edited("", 1, 3, put(5, 1, b2))), "HIGH; d/f same_lines [{5 1}] [{5 1}]"},
		"renamed, and edited by the other": {renamed("d/f", "d/g", edited("", 1, 1)), edited("d/f", 1, 2, put(5, 1, a1)),
			none},
		"renamed and edited by both": {renamed("d/f", "d/g", edited("", 1, 2, put(5, 1, a1))),
			edited("d/f", 1, 3, put(5, 1, b2)), "HIGH; d/f same_lines [{5 1}] [{5 1}]"},
		"renamed, and made executable": {renamed("d/f", "d/g", edited("", 1, 1)), exec, none},
		"renamed, and made a symlink":  {renamed("d/f", "d/g", edited("", 1, 1)), toLink, "HIGH; d/f type"},
		"edited, and made a symlink":   {edited("d/f", 1, 2, put(5, 1, a1)), toLink, "HIGH; d/f type"},
		"made a symlink by both":       {toLink, toLink, none},
		"a symlink retargeted by both": {link(edited("d/f", 1, 2, put(1, 1, a1))),
			link(edited("d/f", 1, 3, put(1, 1, b2))), "HIGH; d/f type"},
		"a submodule updated by both":       {module(edited("d/f", 1, 2)), module(edited("d/f", 1, 3)), "HIGH; d/f type"},
		"a submodule updated to one commit": {module(edited("d/f", 1, 2)), module(edited("d/f", 1, 2)), none},
		"a binary file": {binaryFile(edited("d/f", 1, 2)), binaryFile(edited("d/f", 1, 3)),
			"HIGH; d/f binary"},
		"a binary file turned into text by one": {binaryFile(edited("d/f", 1, 2)), edited("d/f", 1, 3, put(1, 1, a1)),
			"HIGH; d/f binary"},
		"a binary file made executable": {binaryFile(edited("d/f", 1, 2)), exec, "MEDIUM; d/f same_file"},
		"a binary file, one result":     {binaryFile(edited("d/f", 1, 2)), binaryFile(edited("d/f", 1, 2)), none},

		// New paths.
		"added by both":                 {added("d/f", 1), added("d/f", 2), "HIGH; d/f add_add"},
		"the same file added by both":   {added("d/f", 1), added("d/f", 1), none},
		"added by both, one executable": {added("d/f", 1), mode("", "100755", added("d/f", 1)), "HIGH; d/f add_add"},
		"added by both, one of them empty": {added("d/f", 1), Change{Path: "d/f", Status: "A", Mode: "100644",
			Blob: "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}, "MEDIUM; d/f same_file"},
		"added, and renamed to": {added("d/f", 1), renamed("e/f", "d/f", edited("", 2, 2)), "HIGH; d/f add_add"},
		"two files renamed to one name": {renamed("d/g", "d/f", edited("", 1, 1)),
			renamed("e/f", "d/f", edited("", 2, 2)), "HIGH; d/f add_add"},
		"added, then edited": {added("d/f", 1), edited("d/f", 1, 2, put(5, 1, a1)), none},
		"renamed, then edited": {renamed("d/g", "d/f", edited("", 1, 1)), edited("d/f", 1, 2, put(5, 1, a1)),
			none},
		"added, then deleted": {added("d/f", 1), deleted("d/f", 1), none},
		"added, and in the other's base": {added("d/f", 1), edited("d/f", 3, 2, put(5, 1, a1)),
			"MEDIUM; d/f same_file [] [{5 1}]"},
		"renamed, as in the mainline": {renamed("d/g", "d/f", edited("", 1, 2, put(5, 1, a1).around(far1, ""))),
			edited("d/f", 3, 4, put(9, 1, b2).around(far1, "")), "HIGH; d/f same_lines [{5 1}] [{9 1}]"},
		"a file, and a file below it": {added("d/f", 1), added("d/f/g", 2), "HIGH; d/f directory_file"},
		"a file, and a file deep below it": {renamed("x", "d/f", edited("", 1, 1)), edited("d/f/g/h/i", 3, 2, put(5, 1, a1)),
			"HIGH; d/f directory_file"},
		"a file, and a deletion below it":     {added("d/f", 1), deleted("d/f/g", 2), none},
		"a file, and a path with that prefix": {added("d/f", 1), added("d/f.go/g", 2), none},

		// No common file.
		"files of one directory":            {added("d/f", 1), edited("d/g", 1, 2), "LOW; d/ sibling_files"},
		"files of the repo's root":          {added("f", 1), added("g", 2), none},
		"files of a directory and below it": {added("d/f", 1), added("d/e/f", 2), none},
		"a file renamed out of a directory": {renamed("d/f", "e/f", edited("", 1, 1)), added("d/g", 2),
			"LOW; d/ sibling_files"},
	} {
		t.Run(name, func(t *testing.T) {
			checkCompare(t, test.want, []Change{test.a}, []Change{test.b}, Options{})
		})
	}
}

func TestCompareSharedCommits(t *testing.T) {
	a := edited("f", 1, 2, put(5, 1, a1).around(far1, ""), put(50, 1, a1))

	for name, test := range map[string]struct {
		b      Change
		shared bool
		want   string
	}{
		"one has all hunks of the other": {edited("f", 1, 3, put(5, 1, a1)), true, "none"},
		"the same, but not shared": {edited("f", 1, 3, put(5, 1, a1)), false,
			"MEDIUM; f near_lines [{5 1}] [{5 1}]"},
		"both change other lines too": {edited("f", 1, 3, put(5, 1, a1), put(90, 1, b2)), true,
			"MEDIUM; f same_file [{50 1}] [{90 1}]"},
		"both change the same line too": {edited("f", 1, 3, put(5, 1, a1), put(50, 1, b2)), true,
			"HIGH; f same_lines [{50 1}] [{50 1}]"},
		"from another base, the same": {edited("f", 4, 3, put(7, 1, a1).around(far1, "")), true, "none"},
		"from another base, other text": {edited("f", 4, 3, put(7, 1, b2).around(far1, "")), true,
			"HIGH; f same_lines [{5 1}] [{7 1}]"},
		"a truncated hunk": {
			edited("f", 4, 3, put(7, 1, a1).around(far1, ""), Hunk{Start: 99, Lines: 600, Far: make([]string, 512)}), true,
			"MEDIUM; f same_file [{50 1}] [{99 600}]"},
		"unknown hunks": {edited("f", 1, 3), true, "MEDIUM; f same_file [{5 1} {50 1}] []"},
	} {
		t.Run(name, func(t *testing.T) {
			checkCompare(t, test.want, []Change{a}, []Change{test.b}, Options{Shared: test.shared})
		})
	}
}

func TestCompareManyPaths(t *testing.T) {
	a := []Change{deleted("z", 1), edited("d/f", 1, 2, put(5, 1, a1)), added("d/new", 1),
		renamed("old", "e/name", edited("", 1, 1)), added("g/h", 1)}
	b := []Change{edited("z", 1, 2, put(1, 1, a1)), edited("d/f", 1, 3, put(5, 1, b2)), added("d/other", 1),
		deleted("old", 1), added("g/h", 3), edited("e/name", 3, 4)}

	for name, test := range map[string]struct {
		only, ignore []string
		want         string
	}{
		"strongest first": {nil, nil,
			"HIGH; d/f same_lines [{5 1}] [{5 1}]; z delete_edit [] [{1 1}]; old rename_delete; g/h add_add; e/name same_file"},
		"ignored paths": {nil, []string{"d/**", "old", "z"},
			"HIGH; g/h add_add; e/name same_file"},
		"an ignored new name of a rename": {nil, []string{"e/*"},
			"HIGH; d/f same_lines [{5 1}] [{5 1}]; z delete_edit [] [{1 1}]; old rename_delete; g/h add_add"},
		"only siblings are not ignored": {nil, []string{"z", "d/f", "old", "g/**", "e/*"},
			"LOW; d/ sibling_files"},
		"everything ignored": {nil, []string{"**"}, "none"},
		"only some paths, one twice": {[]string{"z", "nowhere", "d/new", "old", "z", "d/"}, nil,
			"HIGH; z delete_edit [] [{1 1}]; old rename_delete"},
		"only directories": {[]string{"d/", "e/", "x/"}, nil,
			"LOW; d/ sibling_files; e/ sibling_files"},
		"only nothing": {[]string{}, nil, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			checkCompare(t, test.want, a, b, Options{Only: test.only}, test.ignore...)
		})
	}
}

func TestCompareLimitsRanges(t *testing.T) {
	var a, b []Hunk
	for i := range 50 {
		a, b = append(a, put(10*i+1, 1, a1)), append(b, put(10*i+2, 2, b2))
	}
	o := compare([]Change{edited("f", 1, 2, a...)}, []Change{edited("f", 1, 3, b...)}, Options{})
	r := o.Paths[0].Ranges
	if len(r.Commit) != 20 || len(r.Other) != 20 || r.Commit[19] != (LineRange{191, 1}) ||
		r.Other[19] != (LineRange{192, 2}) {
		t.Errorf("ranges %v", r)
	}
}
