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
// they fulfil; see [exchange.Select]. Unless an issuer of the org has signed the token for a repository
// with a rule, the error does not depend on the org; see [exchange.Token.Unknown].
func (x *Exchanger) Present(
	ctx context.Context, org, raw string, scope ledger.Scope, signing bool,
) (exchange.Rule, exchange.Claims, error) {
	token, err := x.parse(raw)
	if err != nil {
		return exchange.Rule{}, exchange.Claims{}, err
	}
	issuer, rules, err := x.known(ctx, org, token)
	if err != nil {
		return exchange.Rule{}, exchange.Claims{}, err
	}

	claims, err := x.Issuers.Verify(ctx, issuer, token)
	if hasCode(err, ledger.CodeInvalidToken) {
		err = token.Unknown(org)
	}
	if err == nil {
		err = claims.Check(exchange.Audience(x.BaseURL, org), x.Now())
	}
	if err != nil {
		return exchange.Rule{}, claims, err
	}
	rule, err := exchange.Select(rules, claims, scope, signing)
	return rule, claims, err
}

// parse parses a token. The errors do not depend on the org.
func (x *Exchanger) parse(raw string) (exchange.Token, error) {
	if x.BaseURL == "" {
		return exchange.Token{}, ledger.Errorf(ledger.CodeInvalidTarget,
			"no token can be exchanged: base_url, from which its audience follows, is not set on the server")
	}
	return exchange.Parse(raw)
}

// known returns the issuer of an org and the rules that a token, which is not verified, is about.
func (x *Exchanger) known(
	ctx context.Context, org string, token exchange.Token,
) (issuer exchange.Issuer, rules []exchange.Rule, err error) {
	issuer, err = x.Store.IssuerByURL(ctx, org, token.Claimed.Issuer)
	if err == nil {
		rules, err = x.Store.RulesFor(ctx, issuer, token.Claimed.Subject())
	}
	if hasCode(err, ledger.CodeNotFound) || err == nil && len(rules) == 0 {
		err = token.Unknown(org)
	}
	return issuer, rules, err
}
