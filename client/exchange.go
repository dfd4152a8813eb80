package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
)

// Issuers lists the OpenID Connect issuers whose tokens an org accepts.
func (c *Client) Issuers(ctx context.Context, org string) iter.Seq2[exchange.Issuer, error] {
	return list[exchange.Issuer](ctx, c, pathOf("orgs", org, "issuers"), parameters())
}

// AddIssuer adds an issuer to an org.
func (c *Client) AddIssuer(ctx context.Context, org string, n exchange.NewIssuer) (exchange.Issuer, error) {
	return post[exchange.Issuer](ctx, c, pathOf("orgs", org, "issuers"), n)
}

// RemoveIssuer removes an issuer with its rules, and revokes their API tokens.
func (c *Client) RemoveIssuer(ctx context.Context, org, id string) error {
	return c.remove(ctx, pathOf("orgs", org, "issuers", id))
}

// ExchangeRules lists the rules by which an org exchanges tokens of issuers.
func (c *Client) ExchangeRules(ctx context.Context, org string) iter.Seq2[exchange.Rule, error] {
	return list[exchange.Rule](ctx, c, pathOf("orgs", org, "exchange-rules"), parameters())
}

// CreateExchangeRule creates a rule. Its Warnings are the risks of the rule.
func (c *Client) CreateExchangeRule(ctx context.Context, org string, n exchange.NewRule) (exchange.Rule, error) {
	return post[exchange.Rule](ctx, c, pathOf("orgs", org, "exchange-rules"), n)
}

// RemoveExchangeRule removes a rule, and revokes its API tokens.
func (c *Client) RemoveExchangeRule(ctx context.Context, org, id string) error {
	return c.remove(ctx, pathOf("orgs", org, "exchange-rules", id))
}

// ExchangeToken exchanges a token of an issuer for an API token of an org. The client needs no API
// token. A scope of 0 requests the scope of the rule.
func (c *Client) ExchangeToken(
	ctx context.Context, org, token string, scope ledger.Scope,
) (exchange.Response, error) {
	form := url.Values{"grant_type": {exchange.GrantType}, "subject_token_type": {exchange.TypeIDToken},
		"subject_token": {token}}
	if scope != 0 {
		form.Set("scope", scope.String())
	}
	response, _, err := call[exchange.Response](ctx, c, request{
		method: http.MethodPost, path: pathOf("orgs", org, "token", "exchange"), body: []byte(form.Encode()),
		contentType: "application/x-www-form-urlencoded",
	})
	return response, err
}
