package check_test

import (
	"flag"
	"os"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/check"
)

var (
	attestations = flag.Int("attestations", 3000, "the number of attestations that BenchmarkCheck checks")
	keep         = flag.String("keep", "", "the database `file` of BenchmarkCheck, which is created if it does not exist")
)

// How long a check takes. To measure the memory, check the file of -keep with 'ledgerd check'.
func BenchmarkCheck(b *testing.B) {
	path := *keep
	if _, err := os.Stat(path); err != nil {
		d := newDatabase(b, *attestations/3)
		if path == "" {
			path = d.path
		} else {
			must.OK(b, os.Rename(d.path, path))
			must.OK(b, os.Rename(d.keys, path+"-keys"))
		}
	}

	var checked int64
	for b.Loop() {
		report, err := check.Run(b.Context(), path, check.Options{})
		must.OK(b, err)
		if report.Found > 0 {
			b.Fatalf("problems: %v", report.Problems)
		}
		checked += report.Attestations
	}
	b.ReportMetric(float64(checked)/b.Elapsed().Seconds(), "attestations/s")
}
