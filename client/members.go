package client

import (
	"context"
	"iter"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
)

// Members lists the members and former members of an org.
func (c *Client) Members(ctx context.Context, org string) iter.Seq2[member.Member, error] {
	return list[member.Member](ctx, c, pathOf("orgs", org, "members"), parameters())
}

// MembersPage returns one page of the list of Members.
func (c *Client) MembersPage(ctx context.Context, org string, q Query) (ledger.Page[member.Member], error) {
	return page[member.Member](ctx, c, pathOf("orgs", org, "members"), parameters(), q)
}

// Member returns a member of an org, who may be a former one.
func (c *Client) Member(ctx context.Context, org, id string) (member.Member, error) {
	return get[member.Member](ctx, c, pathOf("orgs", org, "members", id))
}

// AddMember adds an account to an org before its person signs in.
func (c *Client) AddMember(ctx context.Context, org string, n member.NewMember) (member.Member, error) {
	return post[member.Member](ctx, c, pathOf("orgs", org, "members"), n)
}

// ChangeMember changes the role of a member, or ends or restores the membership.
func (c *Client) ChangeMember(ctx context.Context, org, id string, change member.Change) (member.Member, error) {
	return patch[member.Member](ctx, c, pathOf("orgs", org, "members", id), change)
}

// RemoveMember ends a membership, and revokes the sign-ins, the tokens and the keys of the member.
func (c *Client) RemoveMember(ctx context.Context, org, id string) error {
	return c.remove(ctx, pathOf("orgs", org, "members", id))
}

// MemberRules lists the rules by which people become members of an org.
func (c *Client) MemberRules(ctx context.Context, org string) iter.Seq2[member.Rule, error] {
	return list[member.Rule](ctx, c, pathOf("orgs", org, "member-rules"), parameters())
}

// CreateMemberRule creates a rule by which people become members.
func (c *Client) CreateMemberRule(ctx context.Context, org string, n member.NewRule) (member.Rule, error) {
	return post[member.Rule](ctx, c, pathOf("orgs", org, "member-rules"), n)
}

// RemoveMemberRule removes a rule. Members whom no other rule admits cannot sign in again.
func (c *Client) RemoveMemberRule(ctx context.Context, org, id string) error {
	return c.remove(ctx, pathOf("orgs", org, "member-rules", id))
}

// SignIns lists the sign-ins that have not ended: for admins those of a member or, if memberID is
// empty, of the whole org; for members their own.
func (c *Client) SignIns(ctx context.Context, org, memberID string) iter.Seq2[ledger.Token, error] {
	return list[ledger.Token](ctx, c, pathOf("orgs", org, "sign-ins"), parameters("member", memberID))
}

// SignInsPage returns one page of the list of SignIns.
func (c *Client) SignInsPage(ctx context.Context, org, memberID string, q Query) (ledger.Page[ledger.Token], error) {
	return page[ledger.Token](ctx, c, pathOf("orgs", org, "sign-ins"), parameters("member", memberID), q)
}

// Passkeys lists the passkeys that were not removed: for admins those of a member or, if memberID is
// empty, of the whole org; for members their own.
func (c *Client) Passkeys(ctx context.Context, org, memberID string) iter.Seq2[passkey.Passkey, error] {
	return list[passkey.Passkey](ctx, c, pathOf("orgs", org, "passkeys"), parameters("member", memberID))
}

// PasskeysPage returns one page of the list of Passkeys.
func (c *Client) PasskeysPage(
	ctx context.Context, org, memberID string, q Query,
) (ledger.Page[passkey.Passkey], error) {
	return page[passkey.Passkey](ctx, c, pathOf("orgs", org, "passkeys"), parameters("member", memberID), q)
}

// ChallengePasskey returns what the browser of a member needs to make a passkey.
func (c *Client) ChallengePasskey(ctx context.Context, org string) (passkey.Options, error) {
	return post[passkey.Options](ctx, c, pathOf("orgs", org, "passkey-challenges"), nil)
}

// AddPasskey adds the passkey that the browser of a member has made.
func (c *Client) AddPasskey(ctx context.Context, org string, n passkey.NewPasskey) (passkey.Passkey, error) {
	return post[passkey.Passkey](ctx, c, pathOf("orgs", org, "passkeys"), n)
}

// RemovePasskey removes a passkey. What it has confirmed keeps counting.
func (c *Client) RemovePasskey(ctx context.Context, org, id string) error {
	return c.remove(ctx, pathOf("orgs", org, "passkeys", id))
}

// EndSignIn ends a sign-in with its sessions.
func (c *Client) EndSignIn(ctx context.Context, org, id string) error {
	return c.remove(ctx, pathOf("orgs", org, "sign-ins", id))
}
