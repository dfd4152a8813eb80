package server

import (
	_ "embed"
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
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
	return healthy(), nil
}

func healthy() *reply {
	return &reply{status: http.StatusOK, record: map[string]string{"status": "ok"}}
}
