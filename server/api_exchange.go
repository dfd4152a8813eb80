package server

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/server/internal/tokenexchange"
)

func (s *Server) listIssuers(c *call) (*reply, error) { return listOfOrg(c, s.store.Issuers) }

func (s *Server) addIssuer(c *call) (*reply, error) {
	var n exchange.NewIssuer
	if err := c.decodeValid(&n, smallBody); err != nil {
		return nil, err
	}
	if n.JWKS == "" {
		if err := s.config.CheckIssuer(c.ctx(), n.URL); err != nil {
			return nil, err
		}
	}
	return added(s.store.AddIssuer(c.ctx(), c.org(), n))
}

func (s *Server) removeIssuer(c *call) (*reply, error) {
	return deleted(s.store.RemoveIssuer(c.ctx(), c.org(), c.id()))
}

func (s *Server) listRules(c *call) (*reply, error) { return listOfOrg(c, s.store.Rules) }

func (s *Server) createRule(c *call) (*reply, error) {
	var n exchange.NewRule
	if err := c.decode(&n, smallBody); err != nil {
		return nil, err
	}
	n, err := n.Completed()
	if err != nil {
		return nil, err
	}
	return added(s.store.CreateRule(c.ctx(), c.org(), n))
}

func (s *Server) removeRule(c *call) (*reply, error) {
	return deleted(s.store.RemoveRule(c.ctx(), c.org(), c.id()))
}

// exchangeToken exchanges a token of an issuer for an API token. Callers need no API token, so they
// are limited by their address.
func (s *Server) exchangeToken(c *call) (*reply, error) {
	if err := s.countRequest(c); err != nil {
		return nil, err
	}
	if err := checkMediaType(c.r.Header, []string{tokenexchange.Form}); err != nil {
		return nil, err
	}
	form, err := c.readBody(tokenexchange.MaxRequest)
	if err != nil {
		return nil, err
	}
	response, err := s.exchanger.Exchange(c.r.Context(), c.org(), form,
		ledger.Actor{Via: ledger.ViaAPI, Address: addressOf(c.r.RemoteAddr)})
	if err != nil {
		return nil, s.CountFailure(c.w.Header(), c.r.RemoteAddr, err)
	}
	return &reply{status: 200, record: response, secret: true}, nil
}
