package bench

import (
	"context"
	"fmt"
	"time"
)

// slowdownByViewers measures how much viewers of live pages slow down recording. Rounds
// with and without viewers alternate, to cancel out machine noise.
func (b *Core) slowdownByViewers(ctx context.Context, n int, tokens []string, attestations int) error {
	var alone, together, refreshes loadResult
	for range 2 {
		result, err := b.record(attestations)
		if err != nil {
			return err
		}
		alone.add(result)

		v, err := newViewers(ctx, b.server.address, tokens, n)
		if err != nil {
			return err
		}
		start := time.Now()
		result, err = b.record(attestations)
		pages := loadResult{elapsed: time.Since(start)}
		var failed error
		if pages.latencies, failed = v.close(); err == nil {
			err = failed
		}
		if err != nil {
			return err
		}
		together.add(result)
		refreshes.add(pages)
	}

	b.crowdFigure(fmt.Sprintf("attest, %d connections", b.Connections), alone, 0)
	b.crowdFigure(fmt.Sprintf("the same, %d viewers", n), together, together.rate()/alone.rate())
	b.crowdFigure("refreshes of their pages", refreshes, 0)
	b.crowdMemory()
	return nil
}

func (b *Core) crowdFigure(workload string, result loadResult, ratio float64) {
	f := latencyFigure(workload, result)
	f.Rate, f.Ratio = result.rate(), ratio
	b.figure(f)
}

func (b *Core) crowdMemory() {
	if bytes, ok := b.server.residentMemory(); ok {
		b.print("%-58s %8.0f MB", "memory of the server then", float64(bytes)/1e6)
	}
}
