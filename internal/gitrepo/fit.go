package gitrepo

import (
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// maxRecord limits the size of a change record as JSON, in bytes. By default a
// server accepts registrations of up to 4 MiB.
const maxRecord = 3 << 20

// fit cuts a change record to maxRecord. It lowers the number of gap hashes per
// hunk, in steps, to no less than one. The number of lines shows the radar that
// hashes are missing. If the record is still too large, fit returns nil.
func fit(changes []radar.Change) []radar.Change {
	for limit := maxGaps / 2; recordSize(changes) > maxRecord; limit /= 2 {
		if limit == 0 {
			return nil
		}
		for _, c := range changes {
			for i := range c.Hunks {
				h := &c.Hunks[i]
				h.Near, h.Far = h.Near[:min(len(h.Near), limit)], h.Far[:min(len(h.Far), limit)]
			}
		}
	}
	return changes
}

// recordSize returns an upper estimate of the size of a change record as JSON.
func recordSize(changes []radar.Change) int {
	const change, hunk, hash = 110, 80, 19 // for member names and punctuation
	size := 0
	for _, c := range changes {
		size += change + jsonSize(c.Path) + jsonSize(c.OldPath) + len(c.OldBlob) + len(c.Blob)
		for _, h := range c.Hunks {
			size += hunk + len(h.Text) + jsonSize(h.Function) + hash*(len(h.Near)+len(h.Far))
		}
	}
	return size
}

// jsonSize returns the size of a string as JSON, without the quotes.
func jsonSize(s string) int {
	size := len(s)
	for _, b := range []byte(s) {
		switch {
		case b < ' ':
			size += len(`\u0000`) - 1
		case b == '"' || b == '\\':
			size++
		}
	}
	return size
}
