package settings

import (
	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// A signInsPage lists sign-ins: for admins those of all members, for members their own.
type signInsPage struct {
	// IsPerson reports whether the visitor has sign-ins to see: as a member who has signed in, or as
	// an admin.
	IsPerson bool
	SignIns  []signInRow
	Next     string
}

// A signInRow is a sign-in.
type signInRow struct {
	ledger.Token
	// Own reports whether it is the visitor's current one.
	Own bool
}

func showSignIns(v *page.Visit) (*page.Response, error) {
	shown := signInsPage{IsPerson: v.Session.IsSignIn || v.May(ledger.Admin)}
	if shown.IsPerson {
		p, err := v.API.SignInsPage(v.Ctx(), v.Org, "", client.Query{Limit: pageRows, Cursor: v.Query("cursor")})
		if err != nil {
			return nil, err
		}
		shown.Next = v.NextPage(p.NextCursor)
		for _, t := range p.Data {
			shown.SignIns = append(shown.SignIns, signInRow{t, t.ID == v.Session.ID})
		}
	}
	return v.Page("sign-ins", "Sign-ins", shown), nil
}

func endSignIn(v *page.Visit) (*page.Response, error) {
	return v.Then(v.API.EndSignIn(v.Ctx(), v.Org, v.Value("id")), page.SignInsPattern)
}
