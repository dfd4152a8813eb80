package measure

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/e2e/bench/load"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// The size of the benchmark's commits.
const (
	filesPerCommit = 20
	hunksPerFile   = 3
	linesPerFile   = 900
	filesPerDir    = 50
)

// A radarWork generates registrations that change random files.
type radarWork struct {
	random  *rand.Rand
	paths   []string
	commits int // generated so far
}

func newRadarWork(paths int) *radarWork {
	w := &radarWork{random: rand.New(rand.NewPCG(1, 1)), paths: make([]string, paths)}
	for i := range w.paths {
		dir := i / filesPerDir
		w.paths[i] = fmt.Sprintf("internal/group%d/part%03d/file%05d.go", dir%7, dir, i)
	}
	return w
}

// request returns the request that registers the next commit. The commits take turns
// on the given number of branches.
func (w *radarWork) request(repo string, branches int, token string) ([]byte, error) {
	n := w.commits
	sha, parent := commitID(n), commitID(1<<30+2*n+1)
	r := ledger.Registration{
		Branch: fmt.Sprintf("feature/%05d", n%branches), Base: commitID(1 << 30),
		Parents: []string{parent}, Ancestors: []string{sha, parent},
		Author: ledger.Author{Name: fmt.Sprint("Author ", n%50),
			Email: fmt.Sprintf("author%d@example.org", n%50)},
		Message:     "Change twenty files at three places each\n\nSo that there is something to compare.",
		CommittedAt: 1_700_000_000_000,
		Changes:     make([]radar.Change, filesPerCommit),
	}
	w.commits++

	for i := range r.Changes {
		k := i + w.random.IntN(len(w.paths)-i) // no path twice
		w.paths[i], w.paths[k] = w.paths[k], w.paths[i]
		r.Changes[i] = w.change(w.paths[i])
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return load.Request(http.MethodPut, fmt.Sprintf("/v1/orgs/%s/repos/%s/commits/%s", orgName, repo, sha), token, body),
		nil
}

// change returns a change of one line at three random positions of a file. It is
// based on one of two versions of the file.
func (w *radarWork) change(path string) radar.Change {
	version := w.random.IntN(2)
	c := radar.Change{
		Path: path, Status: "M", OldMode: "100644", Mode: "100644",
		OldBlob: fakeHash(path, version, 20), Blob: fakeHash(path, w.random.Int(), 20),
	}
	for i := range hunksPerFile {
		part := linesPerFile / hunksPerFile
		line := i*part + 1 + w.random.IntN(part-1)
		c.Hunks = append(c.Hunks, radar.Hunk{
			Start: line, Lines: 1, Added: 1, Text: fakeHash(path, w.random.Int(), 8),
			Function: fmt.Sprintf("func part%d(ctx context.Context) error {", line/30),
			Near:     []string{fakeHash(path, 3*line, 8), fakeHash(path, 3*line+3, 8)},
			Far:      []string{fakeHash(path, 3*line+1, 8), fakeHash(path, 3*line+4, 8)},
		})
	}
	return c
}

// fakeHash returns a hash of size bytes, in hex, for a part of a file.
func fakeHash(path string, part, size int) string {
	h := fnv.New128a()
	fmt.Fprint(h, path, part)
	sum := h.Sum(nil)
	return hex.EncodeToString(append(sum, sum...)[:size])
}
