package server

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
)

func (s *Server) listMembers(c *call) (*reply, error) {
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := s.store.Members(c.ctx(), c.org(), q)
	return listed(c, page, err)
}

func (s *Server) addMember(c *call) (*reply, error) {
	var n member.NewMember
	if err := c.decode(&n, smallBody); err != nil {
		return nil, err
	}
	n, err := n.Completed()
	if err != nil {
		return nil, err
	}
	m, err := s.store.AddMember(c.ctx(), c.org(), n)
	if err != nil {
		return nil, err
	}
	return created(m, c.r.URL.Path+"/"+m.ID), nil
}

func (s *Server) getMember(c *call) (*reply, error) {
	return single(s.store.Member(c.ctx(), c.org(), c.id()))
}

func (s *Server) changeMember(c *call) (*reply, error) {
	var change member.Change
	if err := c.decode(&change, smallBody); err != nil {
		return nil, err
	}
	return single(s.store.ChangeMember(c.ctx(), c.org(), c.id(), change))
}

// removeMember ends a membership. The member's tokens are revoked.
func (s *Server) removeMember(c *call) (*reply, error) {
	removed := true
	_, err := s.store.ChangeMember(c.ctx(), c.org(), c.id(), member.Change{Removed: &removed})
	return deleted(err)
}

func (s *Server) listMemberRules(c *call) (*reply, error) {
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := s.store.MemberRules(c.ctx(), c.org(), q)
	return listed(c, page, err)
}

func (s *Server) createMemberRule(c *call) (*reply, error) {
	var n member.NewRule
	if err := c.decode(&n, smallBody); err != nil {
		return nil, err
	}
	if err := n.Check(); err != nil {
		return nil, err
	}
	rule, err := s.store.CreateMemberRule(c.ctx(), c.org(), n)
	if err != nil {
		return nil, err
	}
	return created(rule, ""), nil
}

func (s *Server) removeMemberRule(c *call) (*reply, error) {
	return deleted(s.store.RemoveMemberRule(c.ctx(), c.org(), c.id()))
}

func (s *Server) listSignIns(c *call) (*reply, error) {
	owner, err := c.signInsOf(c.query.Get("member"))
	if err != nil {
		return nil, err
	}
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := s.store.SignIns(c.ctx(), c.org(), owner, q)
	return listed(c, page, err)
}

func (s *Server) endSignIn(c *call) (*reply, error) {
	owner, err := c.signInsOf("")
	if err != nil {
		return nil, err
	}
	return deleted(s.store.EndSignIn(c.ctx(), c.org(), owner, c.id()))
}

// signInsOf returns the member whose sign-ins the caller may see and end, of those that the caller
// asks for; empty for all of the org. An API token that a member has created is not the member: it may
// be that of a program, or have fewer permissions.
func (c *call) signInsOf(asked string) (owner string, err error) {
	own := c.caller.token.Member
	switch {
	case c.caller.token.Scope >= ledger.Admin:
		return asked, nil
	case !c.caller.token.IsSignIn:
		return "", ledger.Errorf(ledger.CodeForbidden, "scope %s required: members see their own sign-ins in the pages",
			ledger.Admin)
	case asked != "" && asked != own:
		return "", ledger.Errorf(ledger.CodeForbidden, "only admins see the sign-ins of others")
	}
	return own, nil
}
