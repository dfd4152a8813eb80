package gitrepo

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A plainModel computes the hashes of hunks in the simplest way, without regard to
// speed.
type plainModel struct{ lines []string }

func modelOf(content string) plainModel {
	lines := strings.Split(content, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return plainModel{lines}
}

// around returns the hash of the n lines before and after gap g, which lies
// between the lines g and g+1.
func (m plainModel) around(g, n int) string {
	s := ""
	for i := g - n + 1; i <= g+n; i++ {
		switch {
		case i < 1:
			s += "^\n"
		case i > len(m.lines):
			s += "$\n"
		default:
			s += " " + strings.TrimRight(m.lines[i-1], " \t\r\v\f") + "\n"
		}
	}
	return modelHash(s)
}

func (m plainModel) near(g int) string {
	hash, count := m.around(g, 1), 0
	for other := 0; other <= len(m.lines); other++ {
		if m.around(other, 1) == hash {
			count++
		}
	}
	if count > 1 {
		return ""
	}
	return hash
}

func modelHash(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s)))[:16] }

// checkHunks checks the hashes of a change's hunks against the model.
func checkHunks(t *testing.T, c radar.Change, before, after gitrepotest.Tree) {
	t.Helper()
	if len(c.Hunks) == 0 {
		return
	}
	path, oldPath := strings.ReplaceAll(c.Path, `\351`, "\xe9"), c.OldPath
	if oldPath == "" {
		oldPath = path
	}

	old := modelOf(before[oldPath].Content)
	newLines := strings.SplitAfter(after[path].Content, "\n")
	shift := 0
	for _, h := range c.Hunks {
		first, last := h.Start-1, h.Start-1+h.Lines
		from := h.Start - 1 + shift // in the new file
		if h.Lines == 0 {
			first, last = h.Start, h.Start
			from++
		}
		shift += h.Added - h.Lines
		last = min(last, first+511)

		if len(h.Far) != last-first+1 || len(h.Near) != len(h.Far) {
			t.Fatalf("%q: %d far and %d near hashes for gaps %d to %d", c.Path, len(h.Far), len(h.Near), first, last)
		}
		for g := first; g <= last; g++ {
			if len(old.lines) > 500 && g > first+3 && g < last-3 {
				continue // the model is too slow
			}
			if got, want := h.Far[g-first], old.around(g, 3); got != want {
				t.Errorf("%q: far hash of gap %d is %q, want %q", c.Path, g, got, want)
			}
			if got, want := h.Near[g-first], old.near(g); got != want {
				t.Errorf("%q: near hash of gap %d is %q, want %q", c.Path, g, got, want)
			}
		}
		if want := modelHash(strings.Join(newLines[from:from+h.Added], "")); h.Text != want {
			t.Errorf("%q: text hash of the hunk at line %d is %q, want %q", c.Path, h.Start, h.Text, want)
		}
	}
}

// The hashes of hunks equal those of the model, for random edits of small files with
// many repeated lines.
func TestGitRecordOfRandomEdits(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	random := testenv.Rand(t)
	hunks, repeated := 0, 0
	for range 12 {
		before, after := gitrepotest.Tree{}, gitrepotest.Tree{}
		for i := range 60 {
			lines := randomLines(random, random.IntN(40))
			name := fmt.Sprintf("file %d", i)
			before[name] = gitrepotest.TextFile(randomFile(random, lines))
			for range 1 + random.IntN(4) {
				at := random.IntN(len(lines) + 1)
				to := min(len(lines), at+random.IntN(4))
				lines = slices.Replace(lines, at, to, randomLines(random, random.IntN(3))...)
			}
			if random.IntN(8) == 0 {
				name += " moved"
			}
			after[name] = gitrepotest.TextFile(randomFile(random, lines))
		}

		g, shas := newGitRepo(t, nil, before, after)
		for _, c := range mustRecord(t, g, shas[0], shas[1]) {
			checkHunks(t, c, before, after)
			for _, h := range c.Hunks {
				hunks++
				if slices.Contains(h.Near, "") {
					repeated++
				}
			}
		}
	}
	if hunks < 500 || repeated < hunks/10 {
		t.Errorf("only %d hunks, %d of them at repeated lines", hunks, repeated)
	}
}

func randomLines(random *rand.Rand, n int) []string {
	words := []string{"", "", "}", "\t}", "x", "x ", "x\t\r", "y", "func f() {", "^", "$", " x", "\x0b"}
	lines := make([]string, n)
	for i := range lines {
		if lines[i] = words[random.IntN(len(words))]; random.IntN(3) == 0 {
			lines[i] = fmt.Sprint("line ", random.IntN(50))
		}
	}
	return lines
}

func randomFile(random *rand.Rand, lines []string) string {
	content := strings.Join(lines, "\n")
	if random.IntN(5) > 0 && len(lines) > 0 {
		content += "\n"
	}
	return content
}

// Pairs of lines are compared by content, even if all sums collide.
func TestRepeatedGapsWithCollidingSums(t *testing.T) {
	random := testenv.Rand(t)
	hasher := newGapHasher()
	for range 200 {
		content := randomFile(random, randomLines(random, random.IntN(30)))
		model := modelOf(content)
		hasher.split([]byte(content))
		if len(hasher.lines) != len(model.lines) {
			t.Fatalf("%q is split into %d lines, want %d", content, len(hasher.lines), len(model.lines))
		}
		for i := range hasher.sums {
			hasher.sums[i] %= 2
		}

		all := radar.Hunk{Start: 1, Lines: len(model.lines)}
		hasher.findRepeated([]radar.Hunk{all})
		for g := range len(model.lines) + 1 {
			if got, want := hasher.isRepeated(g), model.near(g) == ""; got != want {
				t.Errorf("%q: gap %d repeated: %v, want %v", content, g, got, want)
			}
		}
	}
}

// The hashes never change: records of different versions are compared with each
// other.
func TestGapHashesAreStable(t *testing.T) {
	hunks := []radar.Hunk{{Start: 2, Lines: 1}}
	newGapHasher().addHashes([]byte("one  \ntwo\r\nthree"), hunks)
	want := radar.Hunk{Start: 2, Lines: 1,
		Near: []string{modelHash(" one\n two\n"), modelHash(" two\n three\n")},
		Far:  []string{modelHash("^\n^\n one\n two\n three\n$\n"), modelHash("^\n one\n two\n three\n$\n$\n")},
	}
	if got := hunks[0]; fmt.Sprint(got) != fmt.Sprint(want) || got.Near[0] != "1c27d1527b477a05" {
		t.Errorf("%+v, want %+v", got, want)
	}
}
