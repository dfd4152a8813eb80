package exchange

import (
	"errors"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// MaxToken is the maximum size of a token in bytes.
const MaxToken = 16 << 10

// A Token is a signed token whose signature is not verified yet.
type Token struct {
	// Claimed are its claims, which are not verified either.
	Claimed Claims
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

	claims, err := parseClaims(signed.UnsafePayloadWithoutVerification())
	if err != nil {
		return Token{}, err
	}
	header := signed.Signatures[0].Protected
	if _, isCritical := header.ExtraHeaders["crit"]; isCritical {
		return Token{}, invalid("the token has the header crit: no extension is supported")
	}
	if len(header.KeyID) > maxKeyID {
		return Token{}, invalid("the key ID of the token has more than %d bytes", maxKeyID)
	}
	return Token{claims, header.KeyID, header.Algorithm, signed}, nil
}

// tokenCharacters are those of a token.
const tokenCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

// KnownTo reports whether the keys include the one that the header of the token names.
func (t Token) KnownTo(k *Keys) bool { return len(k.candidates(t.KeyID, t.algorithm)) > 0 }

// Verify verifies the token with the keys of its issuer, and returns its claims. The errors have
// CodeInvalidToken.
func (t Token) Verify(k *Keys) (Claims, error) {
	if !t.KnownTo(k) {
		return Claims{}, invalid("the issuer %s has no key %.50q for %s", t.Claimed.Issuer, t.KeyID, t.algorithm)
	}
	payload, err := k.verify(t.signed)
	if err != nil {
		return Claims{}, invalid("the signature of the token is not valid")
	}
	return parseClaims(payload)
}

// Unknown is the error of every token that an org knows nothing about, with CodeNoMatchingRule. The
// org may not exist, may not accept tokens of the issuer, or may have no rule for the repository, or
// the issuer has not signed the token: who has no valid token of a repository with a rule does not
// learn which.
func (t Token) Unknown(org string) error {
	return ledger.Errorf(ledger.CodeNoMatchingRule, "org %s has no rule for a token of the issuer %s that %s, or the "+
		"issuer has not signed the token (check the name of the org, and let its admin check issuers and rules)",
		org, text.Quote(t.Claimed.Issuer), t.Claimed.describeIDs())
}
