package ledger

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A token's secret is "ldg_", 32 random bytes as 43 base-62 digits, and the CRC-32 of
// all that as 6 more digits. The checksum distinguishes a mistyped token from an
// unknown one, and makes leaked secrets easy to detect reliably.
const (
	secretPrefix = "ldg_"
	randomDigits = 43
	checkDigits  = 6
	secretLen    = len(secretPrefix) + randomDigits + checkDigits
)

// NewSecret returns a new random token secret.
func NewSecret() string {
	var random [32]byte
	rand.Read(random[:])
	text := secretPrefix + base62(new(big.Int).SetBytes(random[:]), randomDigits)
	return text + secretChecksum(text)
}

// ParseSecret validates the format of a secret and returns its SHA-256, by which the
// token is looked up. The error never contains the secret.
func ParseSecret(s string) (hash [32]byte, err error) {
	if !strings.HasPrefix(s, secretPrefix) {
		return hash, Errorf(CodeUnauthenticated, "not a ledgerd API token: these begin with %s", secretPrefix)
	}
	if len(s) != secretLen {
		return hash, Errorf(CodeUnauthenticated, "the API token has %d characters instead of %d: copy it again in full",
			len(s), secretLen)
	}
	if body := s[:secretLen-checkDigits]; s[len(body):] != secretChecksum(body) {
		return hash, Errorf(CodeUnauthenticated, "the API token's checksum is wrong: copy it again")
	}
	return sha256.Sum256([]byte(s)), nil
}

func secretChecksum(text string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(text)))), checkDigits)
}

// base62 formats n in base 62, zero-padded to the given number of digits.
func base62(n *big.Int, digits int) string {
	text := n.Text(62)
	return strings.Repeat("0", digits-len(text)) + text
}

// A Token is an API token, without its secret.
type Token struct {
	ID         string `json:"id"`
	Org        string `json:"org"`
	Name       string `json:"name"`
	Scope      Scope  `json:"scope"`
	CreatedAt  Time   `json:"created_at,omitzero"`
	ExpiresAt  Time   `json:"expires_at,omitzero"`
	LastUsedAt Time   `json:"last_used_at,omitzero"`
	RevokedAt  Time   `json:"revoked_at,omitzero"`
	// Rule is the ID of the rule by which the token was exchanged for one of a CI job. It is empty
	// for other tokens.
	Rule string `json:"rule,omitzero"`
	// Repos are the only repos that an exchanged or limited token is for.
	Repos []string `json:"repos,omitzero"`
	// IsLimited reports whether the token was created for the repos only.
	IsLimited bool `json:"-"`
	// DN is the name with which the holder of an exchanged token, or the member of a sign-in, may
	// sign. If it is empty, the holder may not sign.
	DN string `json:"dn,omitzero"`
	// Member is the ID of the member who signed in, or who created the token; empty if a token that
	// belongs to no member, or the host's administrator, created it.
	Member string `json:"member,omitzero"`
	// IsSignIn reports whether the token is a member's sign-in. It has no secret: its session is its
	// only use. AuthTime is when the provider last authenticated the person; 0 if that is unknown.
	IsSignIn bool `json:"sign_in,omitzero"`
	AuthTime Time `json:"auth_time,omitzero"`
	// CreatedBy is who created the token, for people; empty for tokens from before version 17 of the
	// database.
	CreatedBy string `json:"created_by,omitzero"`
	// Secret is the token's secret. It is set only in the response that created the token.
	Secret string `json:"token,omitzero"`
}

// A NewToken is the body of a request to create a token.
type NewToken struct {
	Name      string `json:"name"`
	Scope     Scope  `json:"scope"`
	ExpiresAt Time   `json:"expires_at,omitzero"`
	// Repos limits the token to some repos of the org. Without any, it is for all.
	Repos []string `json:"repos,omitzero"`
}

// IsExchanged reports whether the token was exchanged for one of a CI job.
func (t Token) IsExchanged() bool { return t.Rule != "" }

const (
	maxTokenName  = 100
	maxTokenRepos = 50
)

// Check returns a field error for the first field that is invalid at the time now.
func (n NewToken) Check(now Time) error {
	switch {
	case !isTokenName(n.Name):
		return FieldErrorf(CodeInvalidField, "name", "use 1 to %d printable characters, without spaces at either end",
			maxTokenName)
	case n.Scope == 0:
		return FieldErrorf(CodeInvalidField, "scope", "required (use read, write, maintain or admin)")
	case len(n.Repos) > maxTokenRepos:
		return FieldErrorf(CodeInvalidField, "repos", "at most %d repos", maxTokenRepos)
	case n.ExpiresAt != 0 && n.ExpiresAt <= now:
		return FieldErrorf(CodeInvalidField, "expires_at", "%s is not in the future (now: %s)", n.ExpiresAt, now)
	}
	return nil
}

func isTokenName(s string) bool {
	if n := utf8.RuneCountInString(s); n == 0 || n > maxTokenName || strings.TrimSpace(s) != s {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
