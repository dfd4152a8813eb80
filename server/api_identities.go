package server

import (
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

func (s *Server) listIdentities(c *call) (*reply, error) {
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Identities(c.ctx(), c.org(), q)
	return listed(c, page, err)
}

func (s *Server) addIdentity(c *call) (*reply, error) {
	var n identity.NewIdentity
	if err := c.decode(&n, smallBody); err != nil {
		return nil, err
	}
	identity, err := n.Identity()
	if err != nil {
		return nil, err
	}
	if err := attestation.CheckMay(identity.May); err != nil {
		return nil, err
	}
	if identity, err = s.store.AddIdentity(c.ctx(), c.org(), identity); err != nil {
		return nil, err
	}
	return created(identity, identityURL(identity.Org, identity.ID)), nil
}

func (s *Server) getIdentity(c *call) (*reply, error) {
	identity, err := s.store.Identity(c.ctx(), c.org(), c.id())
	return single(identity, err)
}

func (s *Server) changeIdentity(c *call) (*reply, error) {
	var change identity.Change
	if err := c.decode(&change, smallBody); err != nil {
		return nil, err
	}
	if change.May != nil {
		if err := attestation.CheckMay(*change.May); err != nil {
			return nil, err
		}
	}
	changed, err := s.store.ChangeIdentity(c.ctx(), c.org(), c.id(), change)
	if err != nil {
		return nil, err
	}
	return &reply{status: http.StatusOK, record: changed}, nil
}

func (s *Server) revokeIdentity(c *call) (*reply, error) {
	since, err := parse(c, "since", ledger.ParseSince)
	if err != nil {
		return nil, err
	}
	if since == 0 {
		return deleted(s.store.RevokeIdentity(c.ctx(), c.org(), c.id()))
	}
	return deleted(s.store.DistrustIdentity(c.ctx(), c.org(), c.id(), since))
}
