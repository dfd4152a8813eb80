package server

import "github.com/ledgerd/ledgerd/ledger/identity"

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
	if identity, err = s.store.AddIdentity(c.ctx(), c.org(), identity); err != nil {
		return nil, err
	}
	return created(identity, identityURL(identity.Org, identity.ID)), nil
}

func (s *Server) getIdentity(c *call) (*reply, error) {
	identity, err := s.store.Identity(c.ctx(), c.org(), c.id())
	return single(identity, err)
}

func (s *Server) revokeIdentity(c *call) (*reply, error) {
	return deleted(s.store.RevokeIdentity(c.ctx(), c.org(), c.id()))
}
