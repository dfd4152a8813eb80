package server

import (
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
)

func (s *Server) listTokens(c *call) (*reply, error) { return listOfOrg(c, s.store.Tokens) }

// createToken returns the new token with its secret, which no other response
// contains.
func (s *Server) createToken(c *call) (*reply, error) {
	var n ledger.NewToken
	if err := c.decode(&n, smallBody); err != nil {
		return nil, err
	}
	if err := n.Check(s.time()); err != nil {
		return nil, err
	}
	secret := ledger.NewSecret()
	hash, err := ledger.ParseSecret(secret)
	if err != nil {
		return nil, err
	}
	token, err := s.store.CreateToken(c.ctx(), c.org(), n, hash)
	if err != nil {
		return nil, err
	}
	token.Secret = secret
	return &reply{status: http.StatusCreated, record: token, secret: true}, nil
}

func (s *Server) revokeToken(c *call) (*reply, error) {
	return deleted(s.store.RevokeToken(c.ctx(), c.org(), c.id()))
}

// getOwnToken returns the caller's token. The host's administrator has no token,
// only a name and a scope.
func (s *Server) getOwnToken(c *call) (*reply, error) {
	if c.caller.isHost() {
		return single(hostCaller{c.caller.token.Name, c.caller.token.Scope}, nil)
	}
	return single(c.caller.token, nil)
}

type hostCaller struct {
	Name  string       `json:"name"`
	Scope ledger.Scope `json:"scope"`
}
