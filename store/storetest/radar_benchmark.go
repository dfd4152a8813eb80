package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// BenchmarkRegister measures the registration of commits with 20 files and 60 hunks, 16
// at a time. It runs with no commits in flight and with 10,000 that change 20,000
// paths, and with events for HIGH overlaps or for all.
func BenchmarkRegister(b *testing.B, newDatabase New) {
	for _, test := range []struct {
		name   string
		tips   int
		notify radar.Level
	}{
		{"none in flight", 0, radar.High},
		{"10000 in flight, HIGH events", radarTips, radar.High},
		{"10000 in flight, all events", radarTips, radar.Low},
	} {
		fx, random := suite{newDatabase: newDatabase}.newFixture(b), rand.New(rand.NewPCG(1, 2))
		fx.setRadar(func(r *policy.RadarSettings) { r.Notify = radar.High })
		var filling sync.WaitGroup
		for lane := range 16 {
			random := rand.New(rand.NewPCG(uint64(lane), 2))
			filling.Go(func() {
				for i := lane; i < test.tips; i += 16 {
					fx.push(sha(i), fmt.Sprint("branch", i), largeChange(random)...)
				}
			})
		}
		filling.Wait()

		fx.setRadar(func(r *policy.RadarSettings) { r.Notify = test.notify })
		registrations := make([]ledger.Registration, 500)
		for i := range registrations {
			registrations[i].Changes = largeChange(random)
		}

		var n atomic.Int64
		b.Run(test.name, func(b *testing.B) {
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := int(n.Add(1))
					r := registrations[i%len(registrations)]
					r.Branch = fmt.Sprint("new", i%50) // few branches, so that tips are superseded
					_, _, err := fx.Register(b.Context(), "acme", "api", sha(1_000_000+i), r)
					must.OK(b, err)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "registrations/s")
		})
	}
}

// radarTips is how many commits are in flight.
const radarTips = 10_000

// largeChange changes three lines in each of 20 files out of 20,000 in 400
// directories.
func largeChange(random *rand.Rand) []radar.Change {
	changes := make([]radar.Change, 0, 20)
	for i := range 20 {
		file := i*1000 + random.IntN(1000) // no path twice
		c := edit(fmt.Sprintf("dir%03d/file%05d.go", file%400, file), 1+random.IntN(300))
		for i := 1; i < 3; i++ {
			more := edit(c.Path, c.Hunks[0].Start+400*i+random.IntN(300))
			c.Hunks = append(c.Hunks, more.Hunks...)
		}
		changes = append(changes, c)
	}
	return changes
}
