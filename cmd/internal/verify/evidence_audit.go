package verify

import (
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/cmd/internal/seen"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// The names of the checks of an export of evidence.
const (
	checkFiles   = "files"
	checkReceipt = "receipt"
	checkPage    = "page"
)

// An exportAudit verifies an export of evidence.
type exportAudit struct {
	Options
	archive                                                                *evidence.Archive
	manifest                                                               evidence.Manifest
	names                                                                  names
	keys                                                                   verify.Keys
	pruned                                                                 map[string]bool // names of files
	isOf                                                                   map[string]bool // commits
	ofFiles, ofEvents, ofVersions, ofAttestations, ofCommits, ofIdentities verify.Tally

	signed []byte // the checkpoint of the export
	newest proof.Checkpoint
	logs   map[string]trustedLog // by origin
	// events has the verified bodies of events by their IDs, nil for those that were pruned, and
	// places where the log has them, in its order.
	events map[string][]byte
	wrong  map[string]ledger.EventType // events that do not verify, with what their proofs say
	places []verify.Place
	// passkeys are those of the events, and numbers has the positions of all events in places.
	passkeys verify.Passkeys
	numbers  map[string]int64
}

// A trustedLog is a log whose key is trusted, with what was seen of it.
type trustedLog struct {
	known seen.Log
	key   trustpolicy.Key
	open  note.Verifier
}

// trust returns a log with a trusted key.
func (x *exportAudit) trust(origin string) (l trustedLog, err error) {
	if l, ok := x.logs[origin]; ok {
		return l, nil
	}
	if l.known, l.key, err = x.logKey(origin); err != nil {
		return l, err
	}
	if l.open, err = l.key.Verifier(); err == nil {
		x.logs[origin] = l
	}
	return l, err
}

// eventsOf returns the verified events of a type, in the order of the log.
func eventsOf[T any](x *exportAudit, kind ledger.EventType) (list []T) {
	for _, p := range x.places {
		body := x.events[p.Event]
		if p.Type != kind || body == nil {
			continue
		}
		var e T
		if err := ledger.DecodeOpen(body, &e); err != nil {
			x.ofEvents.Add(p.Event, verify.Failure(verify.CheckBody, "parse the event: %v", err))
			continue
		}
		list = append(list, e)
	}
	return list
}
