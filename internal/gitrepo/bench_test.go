package gitrepo

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

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

// BenchmarkGitRecord measures how commit register reads a commit that changes 500
// files, compared with plain git diff-tree.
func BenchmarkGitRecord(b *testing.B) {
	gitrepotest.IgnoreConfig(b)
	g, err := NewSynthetic(b.Context(), b.TempDir(), 500)
	must.OK(b, err)

	b.Run("git diff-tree", func(b *testing.B) {
		for b.Loop() {
			must.OK(b, g.DiffTree(b.Context()).Run())
		}
	})
	b.Run("changes", func(b *testing.B) {
		for b.Loop() {
			objects, err := g.objects(b.Context())
			must.OK(b, err)
			if changes, err := objects.changes(b.Context(), g.base, g.sha); err != nil || len(changes) != 500 {
				b.Fatalf("%d changes: %v", len(changes), err)
			}
			objects.close()
		}
	})
	b.Run("registration", func(b *testing.B) {
		for b.Loop() {
			if r, err := g.ReadCommit(b.Context(), Query{Rev: "HEAD"}); err != nil || len(r.Changes) != 500 {
				b.Fatalf("%d changes: %v", len(r.Changes), err)
			}
		}
	})
}

// BenchmarkGapHashes measures the hashes for one changed line of a file.
func BenchmarkGapHashes(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{300, 30_000} {
		b.Run(fmt.Sprint(n, " lines"), func(b *testing.B) {
			content := []byte(joinLines(randomLines(random, n)))
			hunks := []radar.Hunk{{Start: n / 2, Lines: 1}}
			hasher := newGapHasher()
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				hasher.addHashes(content, hunks)
			}
		})
	}
}
