package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

func TestRegistrationCheck(t *testing.T) {
	sha := strings.Repeat("a1", 20)
	hash := "0123456789abcdef"
	changed := func(c radar.Change) Registration {
		return Registration{Changes: []radar.Change{{Path: "a", Status: "M"}, c}}
	}
	// The second hunk, after one that adds a line after line 1 and so covers gap 1.
	hunk := func(h radar.Hunk) Registration {
		return changed(radar.Change{
			Path: "b", Status: "M", Hunks: []radar.Hunk{{Start: 1, Added: 1, Near: []string{hash}, Far: []string{hash}}, h}})
	}
	gaps := func(n int) []string { return make([]string, n) }
	paths := func(n int) (changes []radar.Change) {
		for i := range n {
			changes = append(changes, radar.Change{Path: fmt.Sprintf("dir/%d.go", i), Status: "M"})
		}
		return changes
	}
	// deep returns the changes of files that each have their own chain of nested
	// directories.
	deep := func(files, dirs int) (changes []radar.Change) {
		for i := range files {
			changes = append(changes, radar.Change{Path: fmt.Sprintf("%d/%sf", i, strings.Repeat("d/", dirs-1)), Status: "M"})
		}
		return changes
	}

	for name, test := range map[string]struct {
		registration Registration
		field        string // the invalid field, or empty
	}{
		"empty": {Registration{}, ""},
		"every field": {Registration{
			Branch: "feature/x", Target: "main", Base: sha, Parents: []string{sha}, Ancestors: []string{sha},
			Contained: []string{strings.Repeat("0", 64)},
			Author:    Author{Name: "Ada Lovelace", Email: "ada@acme.example"}, Message: "Subject\n\nBody\twith a tab\n",
			CommittedAt: 1,
			Changes: []radar.Change{
				{Path: "cmd/new name.go", OldPath: "..hidden/old.go", Status: "R", OldMode: "100644", Mode: "100755", OldBlob: sha,
					Blob: sha,
					Hunks: []radar.Hunk{
						{Start: 0, Lines: 0, Added: 3, Text: hash, Function: "func main() {", Near: []string{""}, Far: []string{hash}}}},
				{Path: "logo.png", Status: "A", Mode: "100644", Blob: sha, Binary: true},
			}}, ""},

		"a branch with a space":      {Registration{Branch: "a b"}, "branch"},
		"a branch over 255 bytes":    {Registration{Branch: strings.Repeat("b", 256)}, "branch"},
		"a target with two dots":     {Registration{Target: "a..b"}, "target"},
		"a short base":               {Registration{Base: sha[:12]}, "base"},
		"an upper-case parent":       {Registration{Parents: []string{sha, strings.ToUpper(sha)}}, "parents[1]"},
		"an empty parent":            {Registration{Parents: []string{""}}, "parents[0]"},
		"65 parents":                 {Registration{Parents: slices.Repeat([]string{sha}, 65)}, "parents"},
		"500 ancestors":              {Registration{Ancestors: slices.Repeat([]string{sha}, 500)}, ""},
		"501 ancestors":              {Registration{Ancestors: slices.Repeat([]string{sha}, 501)}, "ancestors"},
		"10,001 contained":           {Registration{Contained: slices.Repeat([]string{sha}, 10_001)}, "contained"},
		"a line break in the author": {Registration{Author: Author{Name: "Ada\nEve"}}, "author.name"},
		"an e-mail over 320 bytes":   {Registration{Author: Author{Email: strings.Repeat("e", 321)}}, "author.email"},
		"a message of 64 KiB":        {Registration{Message: strings.Repeat("m", 64<<10)}, ""},
		"a message over 64 KiB":      {Registration{Message: strings.Repeat("m", 64<<10+1)}, "message"},
		"a NUL in the message":       {Registration{Message: "a\x00b"}, "message"},
		"10,000 changes":             {Registration{Changes: paths(10_000)}, ""},
		"10,001 changes":             {Registration{Changes: paths(10_001)}, "changes"},
		"a change without a path":    {changed(radar.Change{Status: "M"}), "changes[1].path"},
		"an absolute path":           {changed(radar.Change{Path: "/etc/passwd", Status: "M"}), "changes[1].path"},
		"a path outside the repo":    {changed(radar.Change{Path: "../x", Status: "M"}), "changes[1].path"},
		"a path that is not clean":   {changed(radar.Change{Path: "a/../b", Status: "M"}), "changes[1].path"},
		"the repo's root as a path":  {changed(radar.Change{Path: ".", Status: "M"}), "changes[1].path"},
		"a trailing slash":           {changed(radar.Change{Path: "a/", Status: "M"}), "changes[1].path"},
		"a NUL in a path":            {changed(radar.Change{Path: "a\x00", Status: "M"}), "changes[1].path"},
		"a path of 4096 bytes":       {changed(radar.Change{Path: strings.Repeat("p", 4096), Status: "M"}), ""},
		"a path over 4096 bytes": {changed(radar.Change{Path: strings.Repeat("p", 4097), Status: "M"}),
			"changes[1].path"},
		"a path of 256 segments": {Registration{Changes: deep(1, 255)}, ""},
		"a path of 257 segments": {Registration{Changes: deep(1, 256)}, "changes[0].path"},
		"an old path of 257 segments": {changed(radar.Change{Path: "b", OldPath: deep(1, 256)[0].Path, Status: "R"}),
			"changes[1].old_path"},
		"50,000 directories": {Registration{Changes: deep(200, 250)}, ""},
		"50,001 directories": {
			Registration{Changes: append(deep(200, 250), radar.Change{Path: "e/f", Status: "M"})}, "changes"},
		"a path twice":               {changed(radar.Change{Path: "a", Status: "M"}), "changes[1].path"},
		"a path renamed and changed": {changed(radar.Change{Path: "b", OldPath: "a", Status: "R"}), "changes[1].old_path"},
		"a path renamed and added again": {
			Registration{Changes: []radar.Change{{Path: "b", OldPath: "a", Status: "R"}, {Path: "a", Status: "A"}}},
			"changes[1].path"},
		"two files swapped by -B": {
			Registration{Changes: []radar.Change{{Path: "b", OldPath: "a", Status: "R"},
				{Path: "a", OldPath: "b", Status: "R"}}}, "changes[1].old_path"},
		"a file becomes a directory": {Registration{Changes: []radar.Change{{Path: "a/b", OldPath: "a", Status: "R"}}}, ""},
		"an unknown status":          {changed(radar.Change{Path: "a", Status: "C"}), "changes[1].status"},
		"two statuses":               {changed(radar.Change{Path: "a", Status: "AM"}), "changes[1].status"},
		"no status":                  {changed(radar.Change{Path: "a"}), "changes[1].status"},
		"a rename without old path":  {changed(radar.Change{Path: "a", Status: "R"}), "changes[1].old_path"},
		"a rename to the same path":  {changed(radar.Change{Path: "a", OldPath: "a", Status: "R"}), "changes[1].old_path"},
		"an old path without rename": {changed(radar.Change{Path: "a", OldPath: "b", Status: "M"}), "changes[1].old_path"},
		"a mode with an 8":           {changed(radar.Change{Path: "a", Status: "M", Mode: "100648"}), "changes[1].mode"},
		"a short old mode": {changed(radar.Change{Path: "a", Status: "M", OldMode: "644"}),
			"changes[1].old_mode"},
		"a blob that is not hex": {changed(radar.Change{Path: "a", Status: "M", Blob: strings.Repeat("x", 40)}),
			"changes[1].blob"},
		"an abbreviated old blob": {changed(radar.Change{Path: "a", Status: "M", OldBlob: sha[:7]}),
			"changes[1].old_blob"},
		"a negative start": {hunk(radar.Hunk{Start: -1}), "changes[1].hunks[1].start"},
		"negative lines":   {hunk(radar.Hunk{Lines: -1}), "changes[1].hunks[1].lines"},
		"negative added":   {hunk(radar.Hunk{Added: -1}), "changes[1].hunks[1].added"},
		"a text instead of its hash": {hunk(radar.Hunk{Start: 3, Added: 1, Text: "fmt.Println()"}),
			"changes[1].hunks[1].text"},
		"a heading over 1024 bytes": {hunk(radar.Hunk{Start: 3, Added: 1, Function: strings.Repeat("f", 1025)}),
			"changes[1].hunks[1].function"},
		"an invalid near hash": {hunk(radar.Hunk{Start: 3, Lines: 1, Near: []string{hash, "abc"}, Far: gaps(2)}),
			"changes[1].hunks[1].near[1]"},
		"an invalid far hash": {
			hunk(radar.Hunk{Start: 3, Added: 1, Near: gaps(1), Far: []string{"ABCDEF0123456789"}}),
			"changes[1].hunks[1].far[0]"},
		"one gap around added lines": {hunk(radar.Hunk{Start: 3, Added: 9, Near: gaps(1), Far: gaps(1)}), ""},
		"two gaps around added lines": {hunk(radar.Hunk{Start: 3, Added: 9, Near: gaps(2), Far: gaps(1)}),
			"changes[1].hunks[1].near"},
		"three gaps around two lines": {hunk(radar.Hunk{Start: 3, Lines: 2, Near: gaps(3), Far: gaps(3)}), ""},
		"four gaps around two lines": {hunk(radar.Hunk{Start: 3, Lines: 2, Near: gaps(4), Far: gaps(4)}),
			"changes[1].hunks[1].near"},
		"only the first gap": {hunk(radar.Hunk{Start: 3, Lines: 2, Near: gaps(1), Far: gaps(1)}), ""},
		"fewer far than near": {hunk(radar.Hunk{Start: 3, Lines: 2, Near: gaps(3), Far: gaps(2)}),
			"changes[1].hunks[1].far"},
		"no far":           {hunk(radar.Hunk{Start: 3, Lines: 2, Near: gaps(3)}), "changes[1].hunks[1].far"},
		"no gaps":          {hunk(radar.Hunk{Start: 3, Lines: 2}), "changes[1].hunks[1].near"},
		"512 gaps":         {hunk(radar.Hunk{Start: 3, Lines: 511, Near: gaps(512), Far: gaps(512)}), ""},
		"512 of more gaps": {hunk(radar.Hunk{Start: 3, Lines: 100_000, Near: gaps(512), Far: gaps(512)}), ""},
		"513 gaps, near": {hunk(radar.Hunk{Start: 3, Lines: 512, Near: gaps(513), Far: gaps(512)}),
			"changes[1].hunks[1].near"},
		"513 gaps, far": {hunk(radar.Hunk{Start: 3, Lines: 512, Near: gaps(512), Far: gaps(513)}),
			"changes[1].hunks[1].far"},
		"a line number above 2^31 - 1": {hunk(radar.Hunk{Start: 1 << 31}), "changes[1].hunks[1].start"},
		"lines that end after 2^31 - 1": {hunk(radar.Hunk{Start: 3, Lines: 1<<31 - 3, Near: gaps(512), Far: gaps(512)}),
			"changes[1].hunks[1].lines"},
		"lines that start at 0": {hunk(radar.Hunk{Start: 0, Lines: 1, Near: gaps(2), Far: gaps(2)}),
			"changes[1].hunks[1].start"},
		"no line changed": {hunk(radar.Hunk{Start: 3, Near: gaps(1), Far: gaps(1)}),
			"changes[1].hunks[1].lines"},
		"a line between two hunks": {hunk(radar.Hunk{Start: 3, Lines: 1, Near: gaps(2), Far: gaps(2)}), ""},
		"adjacent hunks": {hunk(radar.Hunk{Start: 2, Lines: 1, Near: gaps(2), Far: gaps(2)}),
			"changes[1].hunks[1].start"},
		"hunks that overlap": {hunk(radar.Hunk{Start: 1, Lines: 2, Near: gaps(3), Far: gaps(3)}),
			"changes[1].hunks[1].start"},
		"hunks at the same position": {hunk(radar.Hunk{Start: 1, Added: 2, Near: gaps(1), Far: gaps(1)}),
			"changes[1].hunks[1].start"},
		"hunks out of order": {hunk(radar.Hunk{Start: 0, Added: 2, Near: gaps(1), Far: gaps(1)}),
			"changes[1].hunks[1].start"},
		"hunks of a new file": {
			changed(radar.Change{Path: "b", Status: "A", Hunks: []radar.Hunk{{Added: 1, Near: gaps(1), Far: gaps(1)}}}),
			"changes[1].hunks"},
		"hunks of a binary file": {
			changed(radar.Change{Path: "b", Status: "M", Binary: true,
				Hunks: []radar.Hunk{{Added: 1, Near: gaps(1), Far: gaps(1)}}}), "changes[1].hunks"},
		"no hunks of a text file":      {changed(radar.Change{Path: "b", Status: "M"}), ""},
		"the default branch of a repo": {Registration{Branch: "main"}, ""},
	} {
		t.Run(name, func(t *testing.T) { wantFieldFault(t, test.registration.Check(), test.field) })
	}
}

func TestBranchNames(t *testing.T) {
	// According to git check-ref-format --branch.
	good := []string{"", "main", "release/2026.11", "dependabot/go_modules/x-1.2", "a@b", "ünïcode", "a/-b", "x.lockfile"}
	bad := []string{"-x", "@", "HEAD", "a..b", "a.", ".a", "a/.b", "a/", "/a", "a//b", "a b", "a~1", "a^", "a:b", "a?",
		"a*", "a[", `a\b`, "a@{b", "a.lock", "a.lock/b", "a\x7f", "a\nb"}
	for _, name := range good {
		if err := checkRef("branch", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range bad {
		if checkRef("branch", name) == nil {
			t.Errorf("%q: accepted", name)
		}
	}
}

// Each fault of a path has its own message.
func TestPathFaults(t *testing.T) {
	for want, c := range map[string]radar.Change{
		`"a//b" is not a clean path relative to the repo root, of at most 4096 bytes`: {Path: "a//b", Status: "M"},
		`same as path: a rename has two different paths`:                              {Path: "a", OldPath: "a", Status: "R"},
		`"" is not a clean path`: {Path: "a", Status: "R"},
	} {
		if err := checkChanges([]radar.Change{c}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got error %v, want %q in it", c, err, want)
		}
	}
}
