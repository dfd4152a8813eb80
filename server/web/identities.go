package web

import (
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/server/web/form"
)

// An identitiesPage lists the keys and roots that an org trusts or has trusted.
type identitiesPage struct {
	Identities []identityRow
	Next       string
}

// An identityRow is a key or root with its state.
type identityRow struct {
	identity.Identity
	State string // active, expired or revoked
}

func showIdentities(v *visit) (*response, error) {
	page, err := v.api.IdentitiesPage(v.ctx(), v.org, client.Query{Limit: settingsRows, Cursor: v.query("cursor")})
	if err != nil {
		return nil, err
	}
	now := v.site.now()
	shown := identitiesPage{Next: nextPage(v, page.NextCursor)}
	for _, i := range page.Data {
		shown.Identities = append(shown.Identities, identityRow{i, lifeOf(i.RevokedAt, i.NotAfter, now)})
	}
	return v.page("identities", "Identities", shown), nil
}

func showIdentityForm(v *visit) (*response, error) {
	return v.page("identity-new", "Add identity", formPage{form.New("kind", string(identity.KeyIdentity))}), nil
}

func addIdentity(v *visit) (*response, error) {
	f, err := v.form()
	if err != nil {
		return nil, err
	}

	refuseKeys(f, "dn", "email")
	if !f.Failed() {
		_, err = v.api.AddIdentity(v.ctx(), v.org, identity.NewIdentity{
			Kind:  identity.Kind(f.Get("kind")),
			PEM:   strings.ReplaceAll(f.Get("pem"), "\r\n", "\n"), // forms are sent with CRLF
			DN:    strings.TrimSpace(f.Get("dn")),
			Email: strings.TrimSpace(f.Get("email")),
		})
		if err != nil && !f.Explain(err) {
			return nil, err
		}
	}

	if f.Failed() {
		if f.Errors["pem"] != "" || containsKey(f.Get("pem")) {
			f.Values.Del("pem") // it may be a secret, which no page must show
		}
		return again(f, v.page("identity-new", "Add identity", formPage{f})), nil
	}
	return seeOther(v.pathOf(identitiesPattern)), nil
}

// refuseKeys rejects fields that contain a private key, pasted by mistake, and
// clears them. The API's error would quote the key.
func refuseKeys(f *form.Form, fields ...string) {
	for _, name := range fields {
		if containsKey(f.Get(name)) {
			f.Values.Del(name)
			f.Fail(name, "contains a private key, which is now exposed: create a new one")
		}
	}
}

func containsKey(text string) bool { return strings.Contains(strings.ToUpper(text), "PRIVATE") }

func revokeIdentity(v *visit) (*response, error) {
	if err := v.api.RevokeIdentity(v.ctx(), v.org, v.value("id")); err != nil {
		return nil, err
	}
	return seeOther(v.pathOf(identitiesPattern)), nil
}
