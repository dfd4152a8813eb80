package sqlite

import (
	"testing"
	"time"
)

// A paced writer runs transactions one after the other, by a clock of its own.
type paced struct {
	*pace
	now time.Time
}

// run is a transaction of that length, part of it for deliveries.
func (p *paced) run(length, deliveries time.Duration, others bool) {
	begin := p.now
	p.now = begin.Add(length)
	p.note(begin, p.now, deliveries, others)
}

func TestDeliveriesWaitOnlyWhileOthersKeepTheWriterBusy(t *testing.T) {
	const ms = time.Millisecond
	workloads := []struct {
		name string
		turn func(p *paced) // about 10 ms, again and again
		busy bool
	}{
		{"nobody writes", func(p *paced) { p.now = p.now.Add(10 * ms) }, false},
		{"deliveries drain", func(p *paced) { p.run(10*ms, 6*ms, false) }, false},
		{"deliveries drain beside few records", func(p *paced) { p.run(10*ms, 7*ms, true) }, false},
		{"records come now and then", func(p *paced) { p.run(3*ms, 0, true); p.now = p.now.Add(7 * ms) }, false},
		{"records without a pause", func(p *paced) { p.run(10*ms, 0, true) }, true},
		{"both without a pause", func(p *paced) { p.run(10*ms, 2*ms, true) }, true},
	}
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			p := &paced{newPace(), time.Unix(1763629200, 0)}
			for range 50 {
				w.turn(p)
			}
			p.rest(p.now) // one claim begins, perhaps
			if waits := p.rest(p.now) > 0; waits != w.busy {
				t.Errorf("a claim waits: %t", waits)
			}
			p.now = p.now.Add(paceWindow + ms)
			if p.rest(p.now) > 0 {
				t.Error("a claim waits although nobody has written for a while")
			}
		})
	}
}

func TestDeliveriesGetATenthOfABusyWriterAtMost(t *testing.T) {
	p := &paced{newPace(), time.Unix(1763629200, 0)}
	begin, spent := p.now, time.Duration(0)
	for p.now.Sub(begin) < 20*time.Second {
		claim := time.Duration(0)
		if p.rest(p.now) <= 0 && p.busy {
			claim = 3 * time.Millisecond // and what comes of it, later
		}
		p.run(8*time.Millisecond+claim, claim, true)
		spent += claim
	}
	if share := float64(spent) / float64(p.now.Sub(begin)); share < 0.05 || share > 0.1 {
		t.Errorf("deliveries got %.3f of the writer's time", share)
	}
}
