package exchange

import (
	"errors"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/ledgerd/ledgerd/ledger"
)

// MaxToken is the maximum size of a token in bytes.
const MaxToken = 16 << 10

// A Token is a signed token whose signature is not verified yet.
type Token struct {
	// Issuer is the claim iss, which is not verified either.
	Issuer string
	// KeyID is the header kid, the ID of the key. It is empty if the token has no such header.
	KeyID string

	algorithm string
	signed    *jose.JSONWebSignature
}

// Parse parses a token, in the compact form. The errors have CodeInvalidToken.
func Parse(raw string) (Token, error) {
	if len(raw) > MaxToken {
		return Token{}, invalid("the token has %d bytes, at most %d", len(raw), MaxToken)
	}
	if strings.Count(raw, ".") != 2 || strings.Trim(raw, tokenCharacters) != "" {
		return Token{}, invalid("not a JSON Web Token: it has three parts in base64url, with dots between them")
	}
	signed, err := jose.ParseSignedCompact(raw, algorithms())
	if unexpected, ok := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); ok {
		return Token{}, invalid("the token is signed with %.20q: use RS256, PS256, ES256, EdDSA or a longer hash",
			string(unexpected.Got))
	}
	if err != nil || len(signed.Signatures) != 1 {
		return Token{}, invalid("not a JSON Web Token: its header or its parts cannot be read")
	}

	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := ledger.DecodeOpen(signed.UnsafePayloadWithoutVerification(), &claims); err != nil {
		return Token{}, invalid("the claims of the token cannot be read: %v", err)
	}
	header := signed.Signatures[0].Protected
	if _, isCritical := header.ExtraHeaders["crit"]; isCritical {
		return Token{}, invalid("the token has the header crit: no extension is supported")
	}
	if len(header.KeyID) > maxKeyID {
		return Token{}, invalid("the key ID of the token has more than %d bytes", maxKeyID)
	}
	return Token{claims.Issuer, header.KeyID, header.Algorithm, signed}, nil
}

// tokenCharacters are those of a token.
const tokenCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

// KnownTo reports whether the keys include the one that the header of the token names.
func (t Token) KnownTo(k *Keys) bool { return len(k.candidates(t.KeyID, t.algorithm)) > 0 }

// Verify verifies the token with the keys of its issuer, and returns its claims. The errors have
// CodeInvalidToken.
func (t Token) Verify(k *Keys) (Claims, error) {
	if !t.KnownTo(k) {
		return Claims{}, invalid("the issuer %s has no key %.50q for %s", t.Issuer, t.KeyID, t.algorithm)
	}
	payload, err := k.verify(t.signed)
	if err != nil {
		return Claims{}, invalid("the signature of the token is not valid")
	}
	return parseClaims(payload)
}
