package settings

import (
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// settingsRows is the number of rows on a page of tokens, identities or
// deliveries.
const settingsRows = 50

// showSettings redirects to the first settings page that the visitor may see.
func showSettings(v *page.Visit) (*page.Response, error) {
	if v.May(ledger.Admin) {
		return page.SeeOther(v.PathOf(page.TokensPattern)), nil
	}
	return page.SeeOther(v.PathOf(page.IdentitiesPattern)), nil
}

// A tokensPage lists the tokens of an org.
type tokensPage struct {
	Tokens []tokenRow
	Next   string
}

// A tokenRow is a token with its state.
type tokenRow struct {
	ledger.Token
	State string // active, expired or revoked
	// Own reports whether the visitor is signed in with it.
	Own bool
}

func showTokens(v *page.Visit) (*page.Response, error) {
	p, err := v.API.TokensPage(v.Ctx(), v.Org, client.Query{Limit: settingsRows, Cursor: v.Query("cursor")})
	if err != nil {
		return nil, err
	}
	now := v.Now()
	shown := tokensPage{Next: v.NextPage(p.NextCursor)}
	for _, t := range p.Data {
		shown.Tokens = append(shown.Tokens, tokenRow{t, lifeOf(t.RevokedAt, t.ExpiresAt, now), t.ID == v.Session.ID})
	}
	return v.Page("tokens", "Tokens", shown), nil
}

// lifeOf returns the state of a token or identity: active, expired or revoked.
func lifeOf(revoked, expires, now ledger.Time) string {
	switch {
	case revoked != 0:
		return "revoked"
	case expires != 0 && expires <= now:
		return "expired"
	}
	return "active"
}

// A field of the token form that the API does not have, and one of its values.
const (
	lifetimeField = "expires_in"
	neverExpires  = "never"
)

func showTokenForm(v *page.Visit) (*page.Response, error) {
	f := page.NewForm("scope", ledger.Read.String(), lifetimeField, "90d")
	return v.Page("token-new", "New token", page.FormPage{Form: f}), nil
}

// A tokenSecretPage shows a new token with its secret, once.
type tokenSecretPage struct {
	Token ledger.Token
	// Curl is a command that tests the token.
	Curl string
}

func createToken(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	n := ledger.NewToken{Name: strings.TrimSpace(f.Get("name"))}
	var err error
	if n.Scope, err = ledger.ParseScope(f.Get("scope")); err != nil {
		f.Fail("scope", "choose read, write, maintain or admin")
	}
	n.ExpiresAt = tokenExpiry(f, v.Clock())
	n.Repos = strings.FieldsFunc(f.Get("repos"), func(r rune) bool { return r == ',' || unicode.IsSpace(r) })

	var token ledger.Token
	if !f.Failed() {
		token, err = v.API.CreateToken(v.Ctx(), v.Org, n)
		if len(n.Repos) > 0 && client.CodeOf(err) == ledger.CodeNotFound {
			f.Fail("repos", err.Error())
		} else if err != nil && !f.Explain(err) {
			return nil, err
		}
	}
	if f.Failed() {
		return page.Again(f, v.Page("token-new", "New token", page.FormPage{Form: f})), nil
	}

	resp := v.Page("token-created", "Token created", tokenSecretPage{token, curlCommand(v, token)})
	resp.Status = http.StatusCreated
	return resp, nil
}

// tokenExpiry returns when a new token expires, or 0 for never. A custom date
// takes precedence over the lifetime.
func tokenExpiry(f *page.Form, now time.Time) ledger.Time {
	if text := strings.TrimSpace(f.Get("expires_at")); text != "" {
		day, err := time.Parse(time.DateOnly, text)
		if err != nil || day.Year() < 1970 {
			f.Fail("expires_at", "not a date (use e.g. "+now.UTC().AddDate(0, 3, 0).Format(time.DateOnly)+")")
			return 0
		}
		end := day.AddDate(0, 0, 1)
		if end.Year() > 9999 {
			f.Fail("expires_at", "too far ahead: choose an earlier date, or clear the field")
			return 0
		}
		return ledger.TimeOf(end)
	}

	if f.Get(lifetimeField) == neverExpires {
		return 0
	}
	lifetime, err := ledger.ParseDuration(f.Get(lifetimeField))
	if err != nil {
		f.Fail(lifetimeField, "choose a lifetime or never")
		return 0
	}
	return ledger.TimeOf(now.Add(lifetime.Std()))
}

// plainOrigin matches origins that are safe within quotes in a shell.
var plainOrigin = regexp.MustCompile(`^https?://[A-Za-z0-9._:\[\]-]+$`)

// curlCommand returns a command that uses the token, with the server's address
// as seen by the browser.
func curlCommand(v *page.Visit, token ledger.Token) string {
	origin := v.Request.Header.Get("Origin") // the address in the browser, also behind a proxy
	if !plainOrigin.MatchString(origin) {
		origin = "http://" + v.Request.Host
	}
	if !plainOrigin.MatchString(origin) {
		origin = "http://localhost"
	}
	url := origin + v.Base + page.PathTo("v1", "orgs", token.Org, "repos")
	if len(token.Repos) > 0 {
		url += page.PathTo(token.Repos[0])
	}
	return "curl -H 'Authorization: Bearer " + token.Secret + "' '" + url + "'"
}

func revokeToken(v *page.Visit) (*page.Response, error) {
	return v.Then(v.API.RevokeToken(v.Ctx(), v.Org, v.Value("id")), page.TokensPattern)
}
