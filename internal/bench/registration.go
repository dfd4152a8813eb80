package bench

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// What every registration of the benchmark changes.
const (
	filesOfCommit = 20
	hunksOfFile   = 3
	linesOfFile   = 900
	filesOfDir    = 50
)

// A radarWork makes registrations, of files chosen at random.
type radarWork struct {
	random *rand.Rand
	paths  []string
	made   int
}

func newRadarWork(paths int) *radarWork {
	w := &radarWork{random: rand.New(rand.NewPCG(1, 1)), paths: make([]string, paths)}
	for i := range w.paths {
		dir := i / filesOfDir
		w.paths[i] = fmt.Sprintf("internal/group%d/part%03d/file%05d.go", dir%7, dir, i)
	}
	return w
}

// request makes the request that registers the next commit. One after the other
// they are of so many branches.
func (w *radarWork) request(repo string, branches int, token string) ([]byte, error) {
	sha := commitID(w.made)
	r := ledger.Registration{
		Branch: fmt.Sprintf("feature/%05d", w.made%branches), Base: commitID(1 << 30),
		Parents: []string{commitID(1<<30 + 2*w.made + 1)}, Ancestors: []string{sha, commitID(1<<30 + 2*w.made + 1)},
		Author: ledger.Author{Name: fmt.Sprint("Author ", w.made%50),
			Email: fmt.Sprintf("author%d@example.org", w.made%50)},
		Message:     "Change twenty files at three places each\n\nSo that there is something to compare.",
		CommittedAt: 1_700_000_000_000,
		Changes:     make([]radar.Change, filesOfCommit),
	}
	w.made++
	for i := range r.Changes {
		k := i + w.random.IntN(len(w.paths)-i) // no path twice
		w.paths[i], w.paths[k] = w.paths[k], w.paths[i]
		r.Changes[i] = w.change(w.paths[i])
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return httpRequest(http.MethodPut, fmt.Sprintf("/v1/orgs/%s/repos/%s/commits/%s", orgName, repo, sha), token, body),
		nil
}

// change changes one line at each of some places of a file. Commits may have
// left the mainline at one of two versions of it, of which only some lines
// differ.
func (w *radarWork) change(path string) radar.Change {
	version := w.random.IntN(2)
	c := radar.Change{
		Path: path, Status: "M", OldMode: "100644", Mode: "100644",
		OldBlob: fakeHash(path, version, 20), Blob: fakeHash(path, w.random.Int(), 20),
	}
	for i := range hunksOfFile {
		part := linesOfFile / hunksOfFile
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

// fakeHash makes a hash of so many bytes for something of a file.
func fakeHash(path string, what, size int) string {
	h := fnv.New128a()
	fmt.Fprint(h, path, what)
	sum := h.Sum(nil)
	return hex.EncodeToString(append(sum, sum...)[:size])
}
