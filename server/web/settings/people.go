package settings

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// peopleRoutes returns the routes of members, of the rules by which people become members, of sign-ins and of
// passkeys.
func peopleRoutes() []page.Route {
	const (
		admin   = ledger.Admin
		members = page.MembersPattern
		rules   = page.MemberRulesPattern
	)
	return []page.Route{
		page.Get(members, admin, showMembers),
		page.Get(members+"/new", admin, showMemberForm),
		page.Post(members+"/new", admin, addMember),
		page.Post(members+"/{id}/role", admin, changeRole),
		page.Post(members+"/{id}/remove", admin, removeMember),
		page.Post(members+"/{id}/restore", admin, restoreMember),

		page.Get(rules+"/new", admin, showRuleForm),
		page.Post(rules+"/new", admin, createRule),
		page.Post(rules+"/{id}/remove", admin, removeRule),

		page.Get(page.SignInsPattern, ledger.Read, showSignIns),
		page.Post(page.SignInsPattern+"/{id}/end", ledger.Read, endSignIn),

		page.Get(page.PasskeysPattern, ledger.Read, showPasskeys),
		page.Post(page.PasskeysPattern+"/challenge", ledger.Read, challengePasskey),
		page.Post(page.PasskeysPattern+"/add", ledger.Read, addPasskey),
		page.Post(page.PasskeysPattern+"/{id}/remove", ledger.Read, removePasskey),
	}
}
