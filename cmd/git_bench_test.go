package cmd

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// newBusyRepo makes a repository whose second commit changes 500 files, of some
// 300 lines each, at three places.
func newBusyRepo(b *testing.B) (gitRepo, []string) {
	useNoGitConfig(b)
	random := rand.New(rand.NewPCG(1, 1))
	before, after := gitTree{}, gitTree{}
	for i := range 500 {
		lines := make([]string, 200+random.IntN(200))
		for k := range lines {
			if lines[k] = fmt.Sprintf("\tvalue%d := compute(%d, %q)", random.IntN(1000), random.IntN(1000), "some text"); random.IntN(4) == 0 {
				lines[k] = []string{"", "}", "\t}", "func f() {"}[random.IntN(4)]
			}
		}
		name := fmt.Sprintf("dir%d/file%d.go", i%20, i)
		before[name] = textFile(joinLines(lines))
		for range 3 {
			lines[random.IntN(len(lines))] = fmt.Sprint("\tchanged ", random.Int())
		}
		after[name] = textFile(joinLines(lines))
	}
	g, shas := newGitRepo(b, nil, before, after)
	mustGit(b, g, "", "repack", "-adq")
	return g, shas
}

func joinLines(lines []string) string {
	size := 0
	for _, line := range lines {
		size += len(line) + 1
	}
	content := make([]byte, 0, size)
	for _, line := range lines {
		content = append(append(content, line...), '\n')
	}
	return string(content)
}

// BenchmarkGitRecord measures what commit push reads of a commit that changes
// 500 files, beside the bare git diff-tree.
func BenchmarkGitRecord(b *testing.B) {
	g, shas := newBusyRepo(b)
	b.Run("git diff-tree", func(b *testing.B) {
		for b.Loop() {
			args := append([]string{"-C", g.dir}, patchDiff(exactAndAlike, shas[0], shas[1])...)
			if err := exec.Command("git", args...).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("changes", func(b *testing.B) {
		for b.Loop() {
			objects, err := g.objects(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if changes, err := objects.changes(b.Context(), shas[0], shas[1]); err != nil || len(changes) != 500 {
				b.Fatalf("%d changes: %v", len(changes), err)
			}
			objects.close()
		}
	})
	b.Run("registration", func(b *testing.B) {
		for b.Loop() {
			if _, r, err := g.read(b.Context(), "main", "", ""); err != nil || len(r.Changes) != 500 {
				b.Fatalf("%d changes: %v", len(r.Changes), err)
			}
		}
	})
}

// BenchmarkGapHashes measures one old file with one changed line.
func BenchmarkGapHashes(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{300, 30_000} {
		b.Run(fmt.Sprint(n, " lines"), func(b *testing.B) {
			content := []byte(joinLines(randomLines(random, n)))
			hunks := []ledger.Hunk{{Start: n / 2, Lines: 1}}
			hasher := newGapHasher()
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				hasher.addHashes(content, hunks)
			}
		})
	}
}
