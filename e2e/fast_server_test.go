package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/cmd"
	"github.com/ledgerd/ledgerd/e2e/internal/fastclock"
)

// Variables in the environment of ledgerd-fast.
const (
	fastFactor = "E2E_FAST_FACTOR" // how many times faster its clocks run
	fastSocket = "E2E_FAST_SOCKET" // where it serves the statistics of its process
)

// processStats are statistics of a process.
type processStats struct {
	Now        time.Time
	Goroutines int
	Heap       uint64 // bytes of live objects
}

// runFast is the program ledgerd-fast: ledgerd, with clocks that run faster.
func runFast() {
	if err := prepareFast(); err != nil {
		fmt.Fprintln(os.Stderr, "ledgerd-fast:", err)
		os.Exit(1)
	}
	os.Exit(cmd.Execute())
}

func prepareFast() error {
	factor, err := strconv.ParseInt(os.Getenv(fastFactor), 10, 64)
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", os.Getenv(fastSocket))
	if err != nil {
		return err
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		runtime.GC() // so that HeapAlloc is the size of the live objects
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		stats := processStats{Now: time.Now(), Goroutines: runtime.NumGoroutine(), Heap: memory.HeapAlloc}
		json.MarshalWrite(w, stats)
	})
	mux.HandleFunc("GET /profile/{name}", func(w http.ResponseWriter, r *http.Request) {
		pprof.Lookup(r.PathValue("name")).WriteTo(w, 1)
	})
	go http.Serve(listener, mux) // until the process ends
	return fastclock.Start(factor)
}
