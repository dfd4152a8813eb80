package server

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/store"
)

func (s *Server) listMembers(c *call) (*reply, error) { return listOfOrg(c, s.store.Members) }

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

func (s *Server) listMemberRules(c *call) (*reply, error) { return listOfOrg(c, s.store.MemberRules) }

func (s *Server) createMemberRule(c *call) (*reply, error) {
	var n member.NewRule
	if err := c.decodeValid(&n, smallBody); err != nil {
		return nil, err
	}
	return added(s.store.CreateMemberRule(c.ctx(), c.org(), n))
}

func (s *Server) removeMemberRule(c *call) (*reply, error) {
	return deleted(s.store.RemoveMemberRule(c.ctx(), c.org(), c.id()))
}

func (s *Server) listSignIns(c *call) (*reply, error) { return listOwned(c, s.store.SignIns) }

func (s *Server) endSignIn(c *call) (*reply, error) { return endOwned(c, s.store.EndSignIn) }

func (s *Server) listPasskeys(c *call) (*reply, error) { return listOwned(c, s.store.Passkeys) }

func (s *Server) removePasskey(c *call) (*reply, error) { return endOwned(c, s.store.RemovePasskey) }

// challengePasskey returns what a browser needs to make a passkey.
func (s *Server) challengePasskey(c *call) (*reply, error) {
	return issued(s.reviews.Challenge(c.ctx(), c.org(), c.caller.token))
}

func (s *Server) addPasskey(c *call) (*reply, error) {
	var n passkey.NewPasskey
	if err := c.decode(&n, passkey.MaxRequest); err != nil {
		return nil, err
	}
	return added(s.reviews.Enrol(c.ctx(), c.org(), c.caller.token, n))
}

// listOwned answers with a page of what members own.
func listOwned[T any](
	c *call, list func(ctx context.Context, org, owner string, q store.Query) (ledger.Page[T], error),
) (*reply, error) {
	owner, err := c.owner(c.query.Get("member"))
	if err != nil {
		return nil, err
	}
	q, err := c.page()
	if err != nil {
		return nil, err
	}
	page, err := list(c.ctx(), c.org(), owner, q)
	return listed(c, page, err)
}

// endOwned ends what a member owns.
func endOwned(c *call, end func(ctx context.Context, org, owner, id string) error) (*reply, error) {
	owner, err := c.owner("")
	if err != nil {
		return nil, err
	}
	return deleted(end(c.ctx(), c.org(), owner, c.id()))
}

// owner returns the ID of the member whose sign-ins and passkeys the caller may see and end; empty for
// those of all members. asked is the ID in the request, or empty. An API token that a member has created
// is not the member: it may be that of a program, or have fewer permissions.
func (c *call) owner(asked string) (owner string, err error) {
	own := c.caller.token.Member
	switch {
	case c.caller.token.Scope >= ledger.Admin:
		return asked, nil
	case !c.caller.token.IsSignIn:
		return "", ledger.Errorf(ledger.CodeForbidden,
			"scope %s required: members see their own sign-ins and passkeys in the pages", ledger.Admin)
	case asked != "" && asked != own:
		return "", ledger.Errorf(ledger.CodeForbidden, "only admins see the sign-ins and passkeys of others")
	}
	return own, nil
}
