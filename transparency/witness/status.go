package witness

import (
	"maps"

	"github.com/ledgerd/ledgerd/ledger"
)

// Status returns what is known about a log at each witness, in the order of the policy.
func (p *Pool) Status(origin string) []ledger.LogWitness {
	p.mu.Lock()
	o := p.logs[origin]
	p.mu.Unlock()
	if o == nil {
		o = &observed{}
		for _, w := range p.witnesses {
			o.links = append(o.links, &link{to: w})
		}
	}

	statuses := make([]ledger.LogWitness, len(o.links))
	for i, l := range o.links {
		statuses[i] = l.status()
	}
	return statuses
}

func (l *link) status() ledger.LogWitness {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := ledger.LogWitness{Name: l.to.Name, Key: l.to.Key.String(), Size: l.cosigned, Error: l.err}
	if !l.at.IsZero() {
		s.CosignedAt = ledger.TimeOf(l.at)
	}
	if l.err != "" {
		s.FailedAt = ledger.TimeOf(l.errAt)
	}
	return s
}

// A LogStats is what is known about one of our logs.
type LogStats struct {
	Size      int64 // of the latest checkpoint
	Stopped   bool  // a witness knows another history
	Witnesses []LinkStats
}

// A LinkStats is what is known about a log at a witness.
type LinkStats struct {
	Witness  string
	Size     int64 // of the latest checkpoint that it has cosigned
	Failures uint64
	At       float64 // of the latest cosignature in Unix seconds, or 0
}

// Stats returns what is known about each log, by origin.
func (p *Pool) Stats() map[string]LogStats {
	p.mu.Lock()
	logs := maps.Clone(p.logs)
	p.mu.Unlock()

	stats := make(map[string]LogStats, len(logs))
	for origin, o := range logs {
		stats[origin] = o.stats()
	}
	return stats
}

func (o *observed) stats() LogStats {
	o.mu.Lock()
	s := LogStats{Size: o.size, Stopped: o.alarm != nil}
	o.mu.Unlock()
	for _, l := range o.links {
		l.mu.Lock()
		w := LinkStats{Witness: l.to.Name, Size: l.cosigned, Failures: l.fails}
		if !l.at.IsZero() {
			w.At = float64(l.at.UnixMilli()) / 1000
		}
		l.mu.Unlock()
		s.Witnesses = append(s.Witnesses, w)
	}
	return s
}
