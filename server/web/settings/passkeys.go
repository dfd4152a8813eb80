package settings

import (
	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// A passkeysPage lists passkeys: for admins those of all members, for members their own.
type passkeysPage struct {
	// IsOffered reports whether the server takes passkeys, and IsPerson whether the visitor can add one.
	IsOffered, IsPerson bool
	MaxName             int
	Passkeys            []passkeyRow
	Next                string
}

// A passkeyRow is a passkey.
type passkeyRow struct {
	passkey.Passkey
	// Own reports whether it is the visitor's.
	Own bool
}

func showPasskeys(v *page.Visit) (*page.Response, error) {
	own := v.Session.IsSignIn && v.Session.Member != ""
	shown := passkeysPage{IsOffered: v.RPID != "", IsPerson: own && v.RPID != "", MaxName: passkey.MaxName}
	if own || v.May(ledger.Admin) {
		p, err := v.API.PasskeysPage(v.Ctx(), v.Org, "", client.Query{Limit: pageRows, Cursor: v.Query("cursor")})
		if err != nil {
			return nil, err
		}
		shown.Next = v.NextPage(p.NextCursor)
		for _, key := range p.Data {
			shown.Passkeys = append(shown.Passkeys, passkeyRow{key, own && key.Member == v.Session.Member})
		}
	}
	return v.Page("passkeys", "Passkeys", shown), nil
}

// challengePasskey returns what the script needs to make a passkey.
func challengePasskey(v *page.Visit) (*page.Response, error) {
	return page.Answer(v.API.ChallengePasskey(v.Ctx(), v.Org))
}

// addPasskey adds the passkey that the script has made.
func addPasskey(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	var n passkey.NewPasskey
	if text := f.Get("passkey"); text != "" {
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			return page.Answer(nil, ledger.FieldErrorf(ledger.CodeInvalidField, "passkey", "%v", err))
		}
	}
	return page.Answer(v.API.AddPasskey(v.Ctx(), v.Org, n))
}

func removePasskey(v *page.Visit) (*page.Response, error) {
	return v.Then(v.API.RemovePasskey(v.Ctx(), v.Org, v.Value("id")), page.PasskeysPattern)
}
