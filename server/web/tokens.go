package web

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/form"
)

// settingsRows is how many rows a page of the settings' lists has.
const settingsRows = 50

// showSettings leads to what the visitor may see of the settings.
func showSettings(v *visit) (*answer, error) {
	if v.may(ledger.Admin) {
		return seeOther(v.pathOf(tokensPattern)), nil
	}
	return seeOther(v.pathOf(identitiesPattern)), nil
}

// A tokensPage lists the tokens of an org.
type tokensPage struct {
	Tokens []tokenRow
	Next   string
}

// A tokenRow is a token and what has become of it.
type tokenRow struct {
	ledger.Token
	State string // active, expired or revoked
	// Own tells that the visitor has signed in with it.
	Own bool
}

func showTokens(v *visit) (*answer, error) {
	page, err := v.api.TokensPage(v.ctx(), v.org, client.Query{Limit: settingsRows, Cursor: v.query("cursor")})
	if err != nil {
		return nil, err
	}
	now := v.site.now()
	shown := tokensPage{Next: nextPage(v, page.NextCursor)}
	for _, t := range page.Data {
		shown.Tokens = append(shown.Tokens, tokenRow{t, lifeOf(t.RevokedAt, t.ExpiresAt, now), t.ID == v.session.ID})
	}
	return v.page("tokens", "Tokens", shown), nil
}

// lifeOf tells as a word how it stands with what can be revoked and can end.
func lifeOf(revoked, ends, now ledger.Time) string {
	switch {
	case revoked != 0:
		return "revoked"
	case ends != 0 && ends <= now:
		return "expired"
	}
	return "active"
}

// The fields of a token's form that are not the API's.
const (
	lifeField     = "expires_in"
	endlessChoice = "never"
)

func showTokenForm(v *visit) (*answer, error) {
	return v.page("token-new", "New token", formPage{form.New("scope", ledger.Read.String(), lifeField, "90d")}), nil
}

// A tokenSecretPage shows a token the only time that its secret is known.
type tokenSecretPage struct {
	Token ledger.Token
	// Curl is a line that tries it out.
	Curl string
}

func createToken(v *visit) (*answer, error) {
	f, err := v.form()
	if err != nil {
		return nil, err
	}
	n := ledger.NewToken{Name: strings.TrimSpace(f.Get("name"))}
	if n.Scope, err = ledger.ParseScope(f.Get("scope")); err != nil {
		f.Fail("scope", "choose read, write or admin")
	}
	n.ExpiresAt = tokenEnd(f, v.site.clock())
	var token ledger.Token
	if !f.Failed() {
		token, err = v.api.CreateToken(v.ctx(), v.org, n)
		if err != nil && !f.Explain(err) {
			return nil, err
		}
	}
	if f.Failed() {
		return again(f, v.page("token-new", "New token", formPage{f})), nil
	}
	a := v.page("token-created", "Token created", tokenSecretPage{token, curlLine(v.r, token)})
	a.status = http.StatusCreated
	return a, nil
}

// tokenEnd reads when a token is to end: a day that is named counts, and else
// the choice of how long it lives.
func tokenEnd(f *form.Form, now time.Time) ledger.Time {
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
	if f.Get(lifeField) == endlessChoice {
		return 0
	}
	life, err := ledger.ParseDuration(f.Get(lifeField))
	if err != nil {
		f.Fail(lifeField, "choose a lifetime or never")
		return 0
	}
	return ledger.TimeOf(now.Add(life.Std()))
}

// plainOrigin is what an address may look like to stand in a line for a shell.
var plainOrigin = regexp.MustCompile(`^https?://[A-Za-z0-9._:\[\]-]+$`)

// curlLine returns a command that uses a token, for the server's address as
// the browser knows it.
func curlLine(r *http.Request, token ledger.Token) string {
	base := r.Header.Get("Origin") // what the browser has sent the form to, also through a proxy
	if !plainOrigin.MatchString(base) {
		base = "http://" + r.Host
	}
	if !plainOrigin.MatchString(base) {
		base = "http://localhost"
	}
	return "curl -H 'Authorization: Bearer " + token.Secret + "' '" + base + pathTo("v1", "orgs", token.Org, "repos") + "'"
}

func revokeToken(v *visit) (*answer, error) {
	if err := v.api.RevokeToken(v.ctx(), v.org, v.value("id")); err != nil {
		return nil, err
	}
	return seeOther(v.pathOf(tokensPattern)), nil
}
