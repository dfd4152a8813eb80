package exchange

import "github.com/ledgerd/ledgerd/ledger"

// The names of RFC 8693.
const (
	GrantType       = "urn:ietf:params:oauth:grant-type:token-exchange"
	TypeJWT         = "urn:ietf:params:oauth:token-type:jwt"
	TypeIDToken     = "urn:ietf:params:oauth:token-type:id_token"
	TypeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
)

// A Response is the response to an exchange (RFC 8693).
type Response struct {
	AccessToken     string       `json:"access_token"` // the secret of the API token
	IssuedTokenType string       `json:"issued_token_type"`
	TokenType       string       `json:"token_type"`
	ExpiresIn       int64        `json:"expires_in"` // seconds
	Scope           ledger.Scope `json:"scope"`
	// Token is the API token, without its secret.
	Token ledger.Token `json:"api_token"`
}
