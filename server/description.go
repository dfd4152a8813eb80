package server

import (
	_ "embed"
	"net/http"
)

// description is the one full description of the API.
//
//go:embed openapi.yaml
var description []byte

func (s *Server) getDescription(*call) (*reply, error) {
	return &reply{status: http.StatusOK, body: description, mediaType: typeYAML, tagged: true}, nil
}
