package gitrepo

import (
	"fmt"
	"math/rand/v2"
	"testing"

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
