package gitrepo

import (
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// maxRecord is how many bytes a change record may take. A server takes 4 MiB for
// a whole registration, unless it is configured otherwise.
const maxRecord = 3 << 20

// fit returns the record of a commit that changes very much so that a server
// takes it: with fewer gaps told of long hunks, down to one of each. The radar
// then knows that there are more. Where that is too long too, there is no
// record.
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

// recordSize estimates how long a change record is as JSON, rather too long.
func recordSize(changes []radar.Change) int {
	const change, hunk, hash = 110, 80, 19 // their names and punctuation
	size := 0
	for _, c := range changes {
		size += change + jsonSize(c.Path) + jsonSize(c.OldPath) + len(c.OldBlob) + len(c.Blob)
		for _, h := range c.Hunks {
			size += hunk + len(h.Text) + jsonSize(h.Function) + hash*(len(h.Near)+len(h.Far))
		}
	}
	return size
}

// jsonSize returns how long a text is as JSON, without the quotes around it.
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
