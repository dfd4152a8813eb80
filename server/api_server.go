package server

import (
	_ "embed"
	"net/http"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// description is the OpenAPI description of the API.
//
//go:embed openapi.yaml
var description []byte

func (s *Server) getDescription(*call) (*reply, error) {
	return &reply{status: http.StatusOK, body: description, mediaType: typeYAML, tagged: true}, nil
}

func (s *Server) getHealth(*call) (*reply, error) { return healthy(), nil }

// getReadiness reports whether requests can be served, and if not, why.
func (s *Server) getReadiness(*call) (*reply, error) {
	if s.draining.Load() {
		return nil, ledger.Errorf(ledger.CodeStopping, "not ready: draining, because the server is about to stop")
	}
	if err := s.store.Ready(); err != nil {
		return nil, ledger.Errorf(ledger.CodeStorageUnavailable, "not ready: %v", err)
	}
	if err := s.store.CheckClock(); err != nil {
		return nil, ledger.Errorf(ledger.CodeClockJumped, "not ready: %v", err)
	}
	r := readiness{Status: "ok", Clock: clockOf(s.store.ClockStatus())}
	if len(s.config.Logs.Signing()) > 0 {
		r.Log = &logReadiness{Unsigned: 1, Detail: "the server log says why these transparency logs are not signed"}
	}
	return &reply{status: http.StatusOK, record: r}, nil
}

// A readiness is the body of a readiness check that succeeds.
type readiness struct {
	Status string       `json:"status"`
	Clock  *clockRecord `json:"clock,omitzero"`
	// Log is set if transparency logs are not signed. Everything else works.
	Log *logReadiness `json:"log,omitzero"`
}

// A logReadiness says that logs are not signed. Anyone may read it, so it neither names nor counts them.
type logReadiness struct {
	Unsigned int    `json:"unsigned"` // always 1
	Detail   string `json:"detail"`
}

// A clockRecord says how the ledger's clock and the system clock differ.
type clockRecord struct {
	// LeadMS is how far the ledger's clock is ahead of the system clock, and IDLeadMS how far
	// the times in ids are ahead of the ledger's clock.
	LeadMS   int64 `json:"lead_ms"`
	IDLeadMS int64 `json:"id_lead_ms"`
}

// minClockLead is the smallest difference between clocks that is worth a report.
const minClockLead = time.Second

// clockOf returns the record of a difference, or nil if the clocks agree.
func clockOf(c store.ClockStatus) *clockRecord {
	if c.Lead < minClockLead && c.StampLead < minClockLead {
		return nil
	}
	return &clockRecord{LeadMS: c.Lead.Milliseconds(), IDLeadMS: c.StampLead.Milliseconds()}
}

func healthy() *reply {
	return &reply{status: http.StatusOK, record: map[string]string{"status": "ok"}}
}
