// Package member decides who may sign in to an org with an OpenID Connect provider, with which
// role, and as which signer: Admit decides at each sign-in, and Offers to which orgs an account can sign in.
package member

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// The limits of members.
const (
	MaxMembers  = 10_000 // of an org, including former members
	MaxRules    = 500    // of an org
	MaxSignIns  = 50     // of a member, at the same time
	maxTemplate = 500    // bytes of the DN of a rule
)

// A Role says what a member of an org may do.
type Role ledger.Scope

// The roles.
const (
	Reader      = Role(ledger.Read)
	Contributor = Role(ledger.Write)
	Maintainer  = Role(ledger.Maintain)
	Admin       = Role(ledger.Admin)
)

// Roles lists the roles, the lowest first.
func Roles() []Role { return []Role{Reader, Contributor, Maintainer, Admin} }

// Scope returns the scope of a member's sign-ins, and the highest of the tokens that they create.
func (r Role) Scope() ledger.Scope { return ledger.Scope(r) }

func (r Role) String() string {
	switch r {
	case Reader:
		return "reader"
	case Contributor:
		return "contributor"
	case Maintainer:
		return "maintainer"
	case Admin:
		return "admin"
	}
	return ""
}

// ParseRole parses the name of a role.
func ParseRole(name string) (Role, error) {
	for _, r := range Roles() {
		if r.String() == name {
			return r, nil
		}
	}
	return 0, fmt.Errorf("%q is not a role (use reader, contributor, maintainer or admin)", text.Clip(name))
}

// AppendText implements encoding.TextAppender.
func (r Role) AppendText(b []byte) ([]byte, error) { return append(b, r.String()...), nil }

// MarshalText implements encoding.TextMarshaler.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseRole does.
func (r *Role) UnmarshalText(b []byte) error { return text.Into(r, b, ParseRole) }

// A Member is a person of an org. The account is the issuer and the subject: an e-mail address or
// a name can change hands.
type Member struct {
	ID      string `json:"id"`
	Org     string `json:"org"`
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
	// DN is the name with which the person approves. No other member of the org has or had it.
	DN string `json:"dn"`
	// Name is what the provider calls the person, and Email an address that it has verified. Both
	// are for display only.
	Name  string `json:"name,omitzero"`
	Email string `json:"email,omitzero"`
	Role  Role   `json:"role"`
	// ByRule reports whether rules decide about the role and the membership at each sign-in.
	// Otherwise an admin has set them.
	ByRule bool `json:"by_rule"`
	// Distinct reports whether the person is somebody else than all others with the same common
	// name, who count once.
	Distinct   bool        `json:"distinct,omitzero"`
	CreatedAt  ledger.Time `json:"created_at,omitzero"`
	SignedInAt ledger.Time `json:"signed_in_at,omitzero"`
	RemovedAt  ledger.Time `json:"removed_at,omitzero"`
}

// isCurrent reports whether m is a member, and neither zero nor a former one.
func (m Member) isCurrent() bool { return m.ID != "" && m.RemovedAt == 0 }

// HasJoined reports whether m is a member who has signed in, and not only one whom an admin has added.
func (m Member) HasJoined() bool { return m.isCurrent() && m.SignedInAt != 0 }

// A NewMember is the body of a request to add a member before the first sign-in.
type NewMember struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
	DN      string `json:"dn"`
	Role    Role   `json:"role"`
}

// Completed returns the member with the DN in its canonical form. It returns a field error for the
// first field that is invalid.
func (n NewMember) Completed() (NewMember, error) {
	if err := CheckIssuer(n.Issuer); err != nil {
		return n, err
	}
	if !isText(n.Subject) {
		return n, invalidField("subject", "use the claim sub of the account, of 1 to %d printable characters", maxText)
	}
	if n.Role == 0 {
		return n, invalidField("role", "required (use reader, contributor, maintainer or admin)")
	}
	dn, err := ParseDN(n.DN)
	if err != nil {
		return n, invalidField("dn", "%v", err)
	}
	n.DN = dn.String()
	return n, nil
}

// A Change changes a member. An admin decides about the member from then on, and no longer a rule.
// Fields that are nil stay as they are. The DN never changes: signatures under two names would count
// as those of two people.
type Change struct {
	Role *Role `json:"role,omitzero"`
	// Removed ends or restores the membership. Its end revokes the identities that have the DN of the
	// member or share a key with it, and removes the passkeys, unless KeepKeys is set.
	Removed  *bool `json:"removed,omitzero"`
	KeepKeys bool  `json:"keep_keys,omitzero"`
	// Also are the IDs of other identities that the end of the membership revokes.
	Also []string `json:"also,omitzero"`
	// Distinct says whether the person is somebody else than others with the same common name. Rules
	// do not decide about it.
	Distinct *bool `json:"distinct,omitzero"`
}

// maxAlso is the maximum number of identities that the end of a membership revokes in addition.
const maxAlso = 100

// Check validates the change.
func (c Change) Check() error {
	ends := c.Removed != nil && *c.Removed
	switch {
	case c.KeepKeys && !ends:
		return invalidField("keep_keys", "allowed only with removed")
	case len(c.Also) > 0 && !ends:
		return invalidField("also", "allowed only with removed")
	case len(c.Also) > maxAlso:
		return invalidField("also", "too many: %d, at most %d", len(c.Also), maxAlso)
	}
	return nil
}

// Apply returns the member after the change at a time.
func (c Change) Apply(m Member, now ledger.Time) Member {
	m.ByRule = m.ByRule && c.Role == nil && c.Removed == nil
	if c.Distinct != nil {
		m.Distinct = *c.Distinct
	}
	if c.Role != nil {
		m.Role = *c.Role
	}
	switch {
	case c.Removed == nil:
	case !*c.Removed:
		m.RemovedAt = 0
	case m.RemovedAt == 0:
		m.RemovedAt = now
	}
	return m
}

// ParseDN parses the DN of a member: one that a CA for people certifies.
func ParseDN(s string) (identity.DN, error) {
	dn, err := identity.ParseDN(s)
	if err != nil {
		return dn, err
	}
	return dn, ca.People.CheckDN(dn)
}
