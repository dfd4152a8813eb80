package check

import (
	"cmp"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// content is what the bodies of events of all types say of themselves.
type content struct {
	ID   string           `json:"id"`
	Type ledger.EventType `json:"type"`
	Org  string           `json:"org"`
	Repo string           `json:"repo"`
}

// event checks a row on its own: whether its leaf commits to the body, and the body is that
// of the row.
func (c *checker) event(org string, e *event) {
	if e.leaf == nil {
		c.said(org, e) // follow reports the missing leaf, unless the log is being built
		return
	}
	leaf := proof.Leaf{At: e.at, Event: e.public, Type: e.kind}
	copy(leaf.Hash[:], e.leaf)
	e.hash = leaf.LeafHash()
	if len(e.leaf) != len(leaf.Hash) {
		c.problemf("leaf", org, e.row(), "the leaf has %d bytes, want %d", len(e.leaf), len(leaf.Hash))
		return
	}

	switch {
	case e.salt == nil && len(e.body) == 0:
		c.count(func(r *Report) *int64 { return &r.Pruned }, 1)
		if !e.kind.IsPrunable() {
			c.problemf("leaf", org, e.row(), "it has no body, and events of the type %s are never pruned", e.kind)
		}
		return
	case len(e.salt) != proof.SaltSize:
		c.problemf("leaf", org, e.row(), "the salt has %d bytes, want %d, so nothing shows what the leaf commits to",
			len(e.salt), proof.SaltSize)
		return
	case proof.HashBody(proof.Salt(e.salt), e.body) != leaf.Hash:
		c.problemf("leaf", org, e.row(), "the leaf commits to another body or salt")
		return
	}
	c.said(org, e)
}

// said checks that the body of an event is that of its row.
func (c *checker) said(org string, e *event) {
	body, unknown, err := e.read()
	if err != nil {
		c.problemf("event", org, e.row(), "the body cannot be read: %v", err)
		return
	}
	if unknown != "" {
		c.incompletef("%s: %s: it has %s, which this version of ledgerd does not know", org, e.row(), unknown)
	}
	for _, field := range []struct{ name, row, body string }{
		{"id", e.public, body.ID}, {"type", string(e.kind), string(body.Type)}, {"org", cmp.Or(e.org, org), body.Org},
		{"repo", e.repo, body.Repo},
	} {
		if field.row != field.body {
			c.problemf("event", org, e.row(), "the row has the %s %q, and its body %q", field.name, field.row, field.body)
		}
	}
}

// read reads what the body of an event says of itself, and names what of it is unknown.
func (e *event) read() (says content, unknown string, err error) {
	body, err := ledger.ReadEvent(e.kind, e.body)
	if err != nil {
		return says, "", err
	}
	switch v := body.Event.(type) {
	case *ledger.PolicyEvent:
		e.policy = v
	case *ledger.IdentityEvent:
		e.identity = v
	case *ledger.KeyEvent:
		e.key = v
	case *ledger.CommitEvent:
		e.known = v
	case *ledger.AuditEvent:
		e.audit = v
	case *ledger.AttestationEvent:
		e.said = v
	case *ledger.ViolationEvent:
		e.violation = v
	}

	err = json.Unmarshal(e.body, &says)
	if e.kind == ledger.EventAudit {
		says.Repo = "" // that of the action: the event is of the org
	}
	return says, body.Unknown, err
}
