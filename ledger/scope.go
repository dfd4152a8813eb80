package ledger

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Scope is the permission of a token. Each scope includes the lower ones.
type Scope uint8

// The scopes.
const (
	Read     Scope = iota + 1 // read everything of the org
	Write                     // register commits, record attestations
	Maintain                  // policies, webhooks
	Admin                     // repos, identities, tokens, members
	Host                      // everything, including orgs: the machine's administrator; no token has it
)

var scopeNames = map[Scope]string{Read: "read", Write: "write", Maintain: "maintain", Admin: "admin", Host: "host"}

// Scopes lists the scopes that a token can have, the lowest first.
func Scopes() []Scope { return []Scope{Read, Write, Maintain, Admin} }

func (s Scope) String() string { return scopeNames[s] }

// ParseScope parses the name of a scope that a token can have: read, write, maintain or admin.
func ParseScope(name string) (Scope, error) {
	for _, s := range Scopes() {
		if scopeNames[s] == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%q is not a scope (use read, write, maintain or admin)", text.Clip(name))
}

// AppendText implements encoding.TextAppender.
func (s Scope) AppendText(b []byte) ([]byte, error) { return append(b, s.String()...), nil }

// MarshalText implements encoding.TextMarshaler.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, as ParseScope does.
func (s *Scope) UnmarshalText(b []byte) error { return text.Into(s, b, ParseScope) }
