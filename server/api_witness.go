package server

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/transparency/witness"
)

// typeTreeSize is the media type of the size of a tree (C2SP tlog-witness).
const typeTreeSize = "text/x.tlog.size"

// addCheckpoint cosigns the checkpoint of another log (C2SP tlog-witness, add-checkpoint). The
// conflict is no problem document: the protocol wants the size that was cosigned.
func (s *Server) addCheckpoint(c *call) (*reply, error) {
	if err := s.checkWitness(); err != nil {
		return nil, err
	}
	if !s.witness.Allow(c.r.RemoteAddr) {
		return nil, ledger.Errorf(ledger.CodeTooManyRequests,
			"too many checkpoints from this address (try again in a second)")
	}
	c.memory = s.Memory("", c.r)
	body, err := c.readBody(witness.MaxRequest)
	if err != nil {
		return nil, err
	}

	line, err := s.witness.AddCheckpoint(c.ctx(), body)
	if stale, ok := errors.AsType[*store.StaleWitnessError](err); ok {
		size := fmt.Appendf(nil, "%d\n", stale.Size)
		return &reply{status: http.StatusConflict, body: size, mediaType: typeTreeSize}, nil
	}
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, body: line, mediaType: typeNote}, nil
}

// getWitnessed returns the latest checkpoint of another log that was cosigned.
func (s *Server) getWitnessed(c *call) (*reply, error) {
	if err := s.checkWitness(); err != nil {
		return nil, err
	}
	checkpoint, err := s.witness.Checkpoint(c.ctx(), c.path.ByName("hash"))
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, body: checkpoint, mediaType: typeNote, tagged: true}, nil
}

func (s *Server) checkWitness() error {
	if s.witness == nil {
		return ledger.Errorf(ledger.CodeNotFound, "this server is not a witness (setting witness.logs)")
	}
	return nil
}
