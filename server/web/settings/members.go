package settings

import (
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// pageRows is the number of members or sign-ins on a page.
const pageRows = 50

// A membersPage lists the members of an org and, on its first page, the rules.
type membersPage struct {
	Members []memberRow
	Next    string
	// IsFirst reports whether the page shows the rules.
	IsFirst bool
	Rules   []member.Rule
	Roles   []member.Role
}

// A memberRow is a member.
type memberRow struct {
	member.Member
	// Own reports whether the visitor is the member.
	Own bool
}

func showMembers(v *page.Visit) (*page.Response, error) {
	p, err := v.API.MembersPage(v.Ctx(), v.Org, client.Query{Limit: pageRows, Cursor: v.Query("cursor")})
	if err != nil {
		return nil, err
	}
	shown := membersPage{Next: v.NextPage(p.NextCursor), IsFirst: v.Query("cursor") == "", Roles: member.Roles()}
	for _, m := range p.Data {
		shown.Members = append(shown.Members, memberRow{m, v.Session.IsSignIn && m.ID == v.Session.Member})
	}
	if shown.IsFirst {
		shown.Rules, err = client.Collect(v.API.MemberRules(v.Ctx(), v.Org), member.MaxRules)
	}
	return v.Page("members", "Members", shown), err
}

func showMemberForm(v *page.Visit) (*page.Response, error) {
	return v.Page("member-new", "Add member", page.FormPage{Form: page.NewForm("role", member.Reader.String())}), nil
}

func addMember(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	n := member.NewMember{Issuer: field(f, "issuer"), Subject: field(f, "subject"), DN: field(f, "dn"), Role: roleIn(f)}
	if !f.Failed() {
		if _, err := v.API.AddMember(v.Ctx(), v.Org, n); err != nil && !f.Explain(err) {
			return nil, err
		}
	}
	if f.Failed() {
		return page.Again(f, v.Page("member-new", "Add member", page.FormPage{Form: f})), nil
	}
	return page.SeeOther(v.PathOf(page.MembersPattern)), nil
}

func field(f *page.Form, name string) string { return strings.TrimSpace(f.Get(name)) }

// roleIn returns the role in a form.
func roleIn(f *page.Form) member.Role {
	r, err := member.ParseRole(f.Get("role"))
	if err != nil {
		f.Fail("role", "choose reader, contributor, maintainer or admin")
	}
	return r
}

func changeRole(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	r, err := member.ParseRole(f.Get("role"))
	if err != nil {
		return page.SeeOther(v.PathOf(page.MembersPattern)), nil // as the form does not send it
	}
	return changeMember(v, member.Change{Role: &r})
}

func removeMember(v *page.Visit) (*page.Response, error) {
	removed := true
	return changeMember(v, member.Change{Removed: &removed})
}

func restoreMember(v *page.Visit) (*page.Response, error) {
	removed := false
	return changeMember(v, member.Change{Removed: &removed})
}

func changeMember(v *page.Visit, c member.Change) (*page.Response, error) {
	_, err := v.API.ChangeMember(v.Ctx(), v.Org, v.Value("id"), c)
	return v.Then(err, page.MembersPattern)
}

func showRuleForm(v *page.Visit) (*page.Response, error) {
	f := page.NewForm("role", member.Reader.String(), "claim", "groups")
	return v.Page("member-rule-new", "New member rule", page.FormPage{Form: f}), nil
}

func createRule(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	n := member.NewRule{Issuer: field(f, "issuer"), Claim: field(f, "claim"), Value: field(f, "value"), DN: field(f, "dn"),
		Role: roleIn(f)}
	if !f.Failed() {
		if _, err := v.API.CreateMemberRule(v.Ctx(), v.Org, n); err != nil && !f.Explain(err) {
			return nil, err
		}
	}
	if f.Failed() {
		return page.Again(f, v.Page("member-rule-new", "New member rule", page.FormPage{Form: f})), nil
	}
	return page.SeeOther(v.PathOf(page.MembersPattern)), nil
}

func removeRule(v *page.Visit) (*page.Response, error) {
	return v.Then(v.API.RemoveMemberRule(v.Ctx(), v.Org, v.Value("id")), page.MembersPattern)
}
