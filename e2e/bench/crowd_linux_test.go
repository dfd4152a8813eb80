package main

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// crowdMemory is the maximum resident memory of a server with any of the crowds, in bytes.
const crowdMemory = 300 << 20

// A crowdFigure is what bench crowd reports of the server while a crowd is connected.
type crowdFigure struct {
	Workload   string
	Attest     crowdCount
	Readyz     crowdCount
	PeakMemory int `json:"peak_memory_bytes"`
	Crowds     map[string]crowdCount
}

type crowdCount struct {
	Asked, Served int
	Refused       map[string]int // by status and code
}

// crowdRefusals are the refusals of the clients that are over a bound.
var crowdRefusals = map[string][]string{
	"bodies":  {"408 request_timeout"}, // too slow
	"loris":   {"no response"},         // the head takes too long
	"viewers": {"503"},                 // too many pages at the same time
}

// With each hostile crowd, and with all together, all attestations and requests for
// readiness are answered, and only clients over a bound are refused. The crowds of bench
// crowd are as large by default; here they are a tenth, except for the readers.
func TestFaultHostileCrowds(t *testing.T) {
	testenv.From(t, testenv.Full, "takes more than a minute")
	bench := exec.Command("bench", "crowd", "--ledgerd", "ledgerd", "-o", "json", "--dir", t.TempDir(),
		"--attestations", "40000", "--seconds", "4s", "--slowdown", "0", "--bodies", "100", "--loris", "200",
		"--streams", "500", "--unread", "100", "--viewers", "20", "--large", "2")
	bench.Stderr = os.Stderr
	out := must.Get(bench.Output())(t)
	var figures []crowdFigure
	must.OK(t, json.Unmarshal(out, &figures, json.MatchCaseInsensitiveNames(true)))
	if len(figures) != 8 {
		t.Errorf("%d figures, want one for no crowd, each crowd and all together", len(figures))
	}

	for _, f := range figures {
		for name, count := range map[string]crowdCount{"attest": f.Attest, "readyz": f.Readyz} {
			if count.Served != count.Asked || count.Asked == 0 {
				t.Errorf("%s: %s: %d of %d served, refused %v", f.Workload, name, count.Served, count.Asked, count.Refused)
			}
		}
		for name, count := range f.Crowds {
			for code, n := range count.Refused {
				if !slices.Contains(crowdRefusals[name], code) {
					t.Errorf("%s: %d requests of %s are refused: %s", f.Workload, n, name, code)
				}
			}
		}
		t.Logf("%s: at most %d MB", f.Workload, f.PeakMemory/1e6)
		if f.PeakMemory > crowdMemory {
			t.Errorf("%s: the server takes %d bytes, want at most %d", f.Workload, f.PeakMemory, crowdMemory)
		}
	}
}
