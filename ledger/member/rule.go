package member

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// An Account has the claims of a verified ID token about the person who signs in.
type Account struct {
	// Consent is the org that the person has agreed to join in this sign-in, or empty.
	Consent string
	// Issuer and Subject are the claims iss and sub.
	Issuer, Subject string
	// Name is the claim name, and Email the claim email if email_verified is true. Both may be empty.
	Name, Email string
	// AuthTime is when the provider last authenticated the person; 0 if the token does not say so.
	AuthTime ledger.Time
	// Claims are the claims that are a text, a boolean, a number, or a list of texts: the texts of
	// each. They lack email unless it was verified.
	Claims map[string][]string
}

// A NewRule is the body of a request to create a rule: which accounts of an issuer are members.
type NewRule struct {
	// Issuer is the URL of the issuer.
	Issuer string `json:"issuer"`
	// Claim is the name of a claim of the ID token, such as groups. Value is its text, or one of
	// its texts if it is a list.
	Claim string `json:"claim"`
	Value string `json:"value"`
	Role  Role   `json:"role"`
	// DN is the template of the DN that an account gets at its first sign-in. {claim} stands for the
	// text of a claim, as in cn={preferred_username},ou=people-dev,o=acme.
	DN string `json:"dn"`
}

// A Rule is a rule of an org.
type Rule struct {
	ID  string `json:"id"`
	Org string `json:"org"`
	NewRule
	CreatedAt ledger.Time `json:"created_at,omitzero"`
	// Ineffective is why the rule admits nobody, or empty.
	Ineffective string `json:"ineffective,omitzero"`
}

// Check returns a field error for the first field that is invalid.
func (n NewRule) Check() error {
	if err := CheckIssuer(n.Issuer); err != nil {
		return err
	}
	switch {
	case !isText(n.Claim):
		return invalidField("claim", "use the name of a claim, such as groups")
	case IsProtocolClaim(n.Claim):
		return invalidField("claim", "%s says nothing about who the person is (use a claim such as groups)", n.Claim)
	case !isText(n.Value):
		return invalidField("value", "use 1 to %d printable characters", maxText)
	case n.Role == 0:
		return invalidField("role", "required (use reader, contributor, maintainer or admin)")
	case len(n.DN) > maxTemplate:
		return invalidField("dn", "at most %d bytes", maxTemplate)
	}

	_, err := n.dn(func(claim string) (string, error) {
		if IsProtocolClaim(claim) {
			return "", fmt.Errorf("{%s} says nothing about who the person is", claim)
		}
		return "x", nil
	})
	if err != nil {
		return invalidField("dn", "%v", err)
	}
	return nil
}

// IsProtocolClaim reports whether a claim of ID tokens is about the token, the client or the sign-in, and
// not about the person: many accounts of a provider have the same, or all. Rules cannot use it. The case
// of letters does not matter. sub is the account, so rules can use it.
func IsProtocolClaim(name string) bool {
	switch strings.ToLower(name) {
	case "iss", "aud", "exp", "nbf", "iat", "jti", // RFC 7519
		"azp", "nonce", "auth_time", "acr", "amr", "at_hash", "c_hash", "s_hash", // OpenID Connect Core 1.0, FAPI 1.0
		"cnf", "sub_jwk", "origin", "events", "toe", "txn", // other claims that IANA lists
		"client_id", "scope", "scp", "act", "may_act", "authorization_details", // RFC 8693, RFC 9396
		"email_verified", "phone_number_verified", "updated_at",
		"sid", "session_state", "typ", "token_type", "token_use", "ver", "rat", "allowed-origins", // several providers
		"idp", "cid", // Okta
		"tid", "aio", "rh", "uti", "azpacr", "appid", "appidacr", "app_displayname", "idtyp", "xms_cc", // Microsoft Entra
		"tenant_region_scope", "tenant_region_sub_scope", "tenant_ctry", "xms_tcdt", "xms_edov",
		"nonce_supported", "is_private_email", "real_user_status", "transfer_sub", // Apple
		"event_id", "origin_jti", // Amazon Cognito
		"client_ip", "clienthost", "clientaddress": // Keycloak
		return true
	}
	return false
}

// Match reports whether the rule admits an account. One with a protocol claim, which earlier releases
// accepted, admits none.
func (n NewRule) Match(a Account) bool {
	return a.Issuer == n.Issuer && slices.Contains(a.Claims[n.Claim], n.Value) && !IsProtocolClaim(n.Claim)
}

// Admit returns the member of an account after a sign-in at a time. before is the member before it, or
// zero. If the org does not admit the account, after.RemovedAt is set. If a rule admits the account
// but gives it no DN, the error says why.
func Admit(before Member, rules []Rule, a Account, now ledger.Time) (after Member, err error) {
	after = before
	if before.ID == "" || before.ByRule {
		if after, err = byRules(before, rules, a); err != nil {
			return after, err
		}
	}

	switch {
	case after.Role != 0 && after.RemovedAt == 0:
		after.Name, after.Email, after.SignedInAt = a.Name, a.Email, now
	case after.RemovedAt == 0:
		after.RemovedAt = now
	}
	return after, nil
}

// byRules returns a member with the role that rules give the account. Role is 0 if no rule admits
// it.
func byRules(m Member, rules []Rule, a Account) (Member, error) {
	best, ok := best(rules, a)
	if !ok {
		m.Role = 0
		return m, nil
	}
	m.Role, m.ByRule, m.RemovedAt = best.Role, true, 0
	if m.ID != "" {
		return m, nil
	}

	dn, err := best.NameOf(a)
	if err != nil {
		return m, fmt.Errorf("rule %s: %w", best.ID, err)
	}
	m.Issuer, m.Subject, m.DN = a.Issuer, a.Subject, dn.String()
	return m, nil
}

// best returns the first of the rules with the highest role among those that admit an account. It
// reports false if no rule admits it.
func best(rules []Rule, a Account) (best Rule, ok bool) {
	for _, r := range rules {
		if r.Match(a) && r.Role > best.Role {
			best, ok = r, true
		}
	}
	return best, ok
}

// NameOf returns the DN that an account gets by the rule.
func (n NewRule) NameOf(a Account) (identity.DN, error) {
	return n.dn(func(claim string) (string, error) {
		if values := a.Claims[claim]; len(values) == 1 && values[0] != "" {
			return values[0], nil
		}
		return "", fmt.Errorf("the ID token has no single text %s", text.Quote(claim))
	})
}

// dn returns the DN of the template with the texts of claims in place of their names.
func (n NewRule) dn(claim func(name string) (string, error)) (identity.DN, error) {
	if strings.ContainsAny(n.DN, "\\") {
		return identity.DN{}, fmt.Errorf("%s has an escape: write the text as it is", text.Quote(n.DN))
	}
	template, err := identity.ParseDN(n.DN)
	if err != nil {
		return template, err
	}
	for _, value := range []*string{&template.CN, &template.OU, &template.O} {
		if *value, err = expand(*value, claim); err != nil {
			return template, err
		}
	}
	// The check includes the texts of claims.
	return ParseDN(template.String())
}

// expand replaces each {name} in a text.
func expand(s string, claim func(name string) (string, error)) (string, error) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "{")
		if strings.Contains(before, "}") {
			return "", fmt.Errorf("%s has a } without {", text.Quote(s))
		}
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		name, after, ok := strings.Cut(rest, "}")
		if !ok || name == "" || strings.Contains(name, "{") {
			return "", fmt.Errorf("%s has a { without the name of a claim and }", text.Quote(s))
		}

		value, err := claim(name)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		s = after
	}
}
