package server

import (
	"net/http"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

// An Observer counts what a Server does for the network. Its methods are called concurrently,
// and must be quick.
type Observer interface {
	// Responded is called after each response. The route is the pattern of its path, or empty if
	// no endpoint has the path. It took the time until the response began.
	Responded(route, method string, status int, took time.Duration)
	// Refused is called with the code of each error.
	Refused(code ledger.Code)
	// Recorded is called with the status of each new attestation.
	Recorded(status ledger.Status)
	// CutOff is called for each client of a stream that is disconnected because it does not read.
	CutOff()
}

// noObserver is the Observer of a Server without one.
type noObserver struct{}

func (noObserver) Responded(string, string, int, time.Duration) {}
func (noObserver) Refused(ledger.Code)                          {}
func (noObserver) Recorded(ledger.Status)                       {}
func (noObserver) CutOff()                                      {}

// A hijackable is a Recorder of a response whose connection the handler may take over.
type hijackable struct {
	*wire.Recorder
	http.Hijacker
}
