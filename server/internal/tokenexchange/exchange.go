package tokenexchange

import (
	"cmp"
	"context"
	"time"

	"github.com/ledgerd/ledgerd/internal/oidc"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/store"
)

// An Exchanger exchanges tokens.
type Exchanger struct {
	Store   *store.Store
	Issuers *oidc.Issuers
	// BaseURL is where clients reach the server. If it is empty, no token is accepted: the audience of
	// this server is unknown.
	BaseURL string
	Now     func() ledger.Time
}

// Exchange exchanges the token in the form of a request to an org. The API token has its secret.
// actor is who sends the request, without a name.
func (x *Exchanger) Exchange(
	ctx context.Context, org string, form []byte, actor ledger.Actor,
) (exchange.Response, error) {
	r, err := parseRequest(form, exchange.Audience(x.BaseURL, org))
	if err != nil {
		return exchange.Response{}, err
	}
	rule, claims, err := x.Present(ctx, org, r.token, r.scope, false)
	if err != nil {
		return exchange.Response{}, err
	}

	secret := ledger.NewSecret()
	hash, err := ledger.ParseSecret(secret)
	if err != nil {
		return exchange.Response{}, err
	}
	actor.Name = rule.Name
	token, err := x.Store.Exchange(store.WithActor(ctx, actor), org,
		store.Exchange{Rule: rule, Claims: claims, Scope: cmp.Or(r.scope, rule.Scope)}, hash)
	if err != nil {
		return exchange.Response{}, err
	}
	token.Secret = ""
	return exchange.Response{
		AccessToken: secret, IssuedTokenType: exchange.TypeAccessToken, TokenType: "Bearer",
		ExpiresIn: int64(time.Duration(rule.Lifetime) / time.Second), Scope: token.Scope, Token: token,
	}, nil
}

// Present verifies a token that is presented to an org, and returns its claims with the rule that
// they fulfil; see [exchange.Select].
func (x *Exchanger) Present(
	ctx context.Context, org, raw string, scope ledger.Scope, signing bool,
) (exchange.Rule, exchange.Claims, error) {
	claims, issuer, err := x.verify(ctx, org, raw)
	if err != nil {
		return exchange.Rule{}, claims, err
	}
	rules, err := x.Store.RulesFor(ctx, issuer, claims.Subject())
	if err != nil {
		return exchange.Rule{}, claims, err
	}
	rule, err := exchange.Select(rules, claims, scope, signing)
	return rule, claims, err
}

// verify returns the claims of a token that one of the org's issuers has issued for the org.
func (x *Exchanger) verify(ctx context.Context, org, raw string) (c exchange.Claims, i exchange.Issuer, err error) {
	if x.BaseURL == "" {
		return c, i, ledger.Errorf(ledger.CodeInvalidTarget,
			"no token can be exchanged: base_url, from which its audience follows, is not set on the server")
	}
	token, err := exchange.Parse(raw)
	if err != nil {
		return c, i, err
	}
	if i, err = x.Store.IssuerByURL(ctx, org, token.Issuer); err != nil {
		return c, i, err
	}
	if c, err = x.Issuers.Verify(ctx, i, token); err != nil {
		return c, i, err
	}
	return c, i, c.Check(exchange.Audience(x.BaseURL, org), x.Now())
}
