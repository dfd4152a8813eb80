package people

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
)

func newPerson(p *cli.Program) *cobra.Command {
	return cli.Group("person", "See all that one person has", newPersonShow(p))
}

func newPersonShow(p *cli.Program) *cobra.Command {
	return p.ForOrg(&cobra.Command{
		Use:   "show",
		Short: "Show the keys, sign-ins and tokens of a person, and what they signed",
		Long: `Shows all that an org has of one person: memberships, keys and what they may
attest, passkeys, sign-ins, API tokens, and the newest attestations of each repo.
NAME is a common name, a DN, an e-mail address, a login, or the ID of a member or
an identity. People with the same common name, address or login are shown
together, as they count once.`,
		Example: `  ledgerd person show rita --org acme
  ledgerd person show rita@acme.example --org acme`,
	}, func(ctx context.Context, c *cli.Connection, org string, args []string) error {
		who, err := personNamed(ctx, c.Client, org, args[0])
		if err != nil {
			return err
		}
		if len(who.Members)+len(who.Identities) == 0 {
			return fmt.Errorf("nobody in %s has the name %s (see 'ledgerd identity list' and 'ledgerd member list')", org,
				terminal.Printable(args[0]))
		}
		if err := who.readSigned(ctx, c.Client, org); err != nil {
			return err
		}
		return p.Print(who, func() { who.print(p.Stdout) })
	}, "NAME")
}

// print prints a table for each kind of thing that the person has.
func (p *person) print(w io.Writer) {
	gap := ""
	printTable(w, &gap, p.Members, func(m member.Member) []any {
		return []any{m.ID, m.DN, m.Role, m.SignedInAt, m.RemovedAt}
	}, "MEMBER", "DN", "ROLE", "SIGNED IN", "REMOVED")
	printTable(w, &gap, p.Identities, func(i identity.Identity) []any {
		return []any{i.ID, i.DN, i.May, display.Revoked(i)}
	}, "IDENTITY", "DN", "MAY", "REVOKED")
	printTable(w, &gap, p.Passkeys, func(k passkey.Passkey) []any { return []any{k.ID, k.Name, k.CreatedAt} },
		"PASSKEY", "NAME", "ADDED")
	printTable(w, &gap, p.SignIns, func(t ledger.Token) []any { return []any{t.ID, t.Scope, t.CreatedAt, t.ExpiresAt} },
		"SIGN-IN", "SCOPE", "SIGNED IN", "EXPIRES")
	printTable(w, &gap, p.Tokens, func(t ledger.Token) []any { return []any{t.ID, t.Name, t.Scope, t.ExpiresAt} },
		"TOKEN", "NAME", "SCOPE", "EXPIRES")
	printTable(w, &gap, p.Signed, func(a ledger.AttestationRecord) []any {
		return []any{a.RecordedAt, a.Repo + "@" + ledger.Short(a.Commit), a.Predicate, a.Result.Status, a.Identity}
	}, "SIGNED", "COMMIT", "PREDICATE", "STATUS", "AS")
}

// printTable prints a table after a gap, or nothing for an empty list.
func printTable[T any](w io.Writer, gap *string, list []T, row func(T) []any, columns ...string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprint(w, *gap)
	*gap = "\n"
	t := terminal.NewTable(w, columns...)
	for _, item := range list {
		t.Row(row(item)...)
	}
	t.Flush()
}

// A leaving is what ends with a membership: the JSON output of member remove.
type leaving struct {
	ID       string   `json:"id"`
	Org      string   `json:"org"`
	Revoked  []string `json:"revoked"`  // identities
	Passkeys []string `json:"passkeys"` // that are removed
	SignIns  int      `json:"sign_ins"`
	Tokens   []string `json:"tokens"`
	// Others are identities that only have a name of the member, and stay.
	Others []string `json:"others"`

	member  member.Member
	revoked []identity.Identity
	others  []identity.Identity
	strange []string // the IDs of identities that have no name of the member
}

// leavingOf returns what ends with a membership.
func leavingOf(m member.Member, p person, c member.Change) leaving {
	l := leaving{ID: m.ID, Org: m.Org, Revoked: []string{}, Passkeys: []string{}, Tokens: []string{}, Others: []string{},
		member: m}
	ending, others := p.keys()
	if c.KeepKeys {
		ending, others = nil, append(ending, others...)
	}

	for _, i := range others {
		if slices.Contains(c.Also, i.ID) {
			ending = append(ending, i)
			continue
		}
		l.others, l.Others = append(l.others, i), append(l.Others, i.ID)
	}
	for _, i := range ending {
		l.revoked, l.Revoked = append(l.revoked, i), append(l.Revoked, i.ID)
	}
	for _, id := range c.Also {
		if !slices.Contains(l.Revoked, id) { // a key under another name
			l.strange, l.Revoked = append(l.strange, id), append(l.Revoked, id)
		}
	}

	for _, k := range p.Passkeys {
		if k.Member == m.ID && !c.KeepKeys {
			l.Passkeys = append(l.Passkeys, k.ID)
		}
	}
	for _, t := range p.SignIns {
		if t.Member == m.ID {
			l.SignIns++
		}
	}
	for _, t := range p.Tokens {
		if t.Member == m.ID {
			l.Tokens = append(l.Tokens, t.ID)
		}
	}
	return l
}

// question asks whether all that should end.
func (l *leaving) question() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s leaves %s. This ends:\n  sign-ins: %d\n", terminal.Printable(l.member.DN), l.Org, l.SignIns)
	for _, list := range []struct {
		what string
		ids  []string
	}{{"API tokens", l.Tokens}, {"passkeys", l.Passkeys}} {
		if len(list.ids) > 0 {
			fmt.Fprintf(&b, "  %s: %s\n", list.what, strings.Join(list.ids, ", "))
		}
	}
	for _, i := range l.revoked {
		fmt.Fprintf(&b, "  key: %s (%s)\n", i.ID, terminal.Printable(i.DN))
	}
	for _, id := range l.strange {
		fmt.Fprintf(&b, "  key: %s\n", terminal.Printable(id))
	}
	for _, i := range l.others {
		fmt.Fprintf(&b, "It keeps %s (%s), which has a name of the member: --also %[1]s revokes it.\n", i.ID,
			terminal.Printable(i.DN))
	}
	return b.String() + "Remove the member?"
}

// print prints what has ended, and what has not.
func (l *leaving) print(w io.Writer) {
	terminal.Printf(w, "Removed %s (%s)\n", l.ID, terminal.Printable(l.member.DN))
	for _, i := range l.revoked {
		terminal.Printf(w, "Revoked %s (%s)\n", i.ID, terminal.Printable(i.DN))
	}
	for _, id := range l.strange {
		terminal.Printf(w, "Revoked %s\n", terminal.Printable(id))
	}
	for _, id := range l.Passkeys {
		terminal.Printf(w, "Removed the passkey %s\n", id)
	}
	terminal.Printf(w, "Ended %d sign-ins and %d API tokens\n", l.SignIns, len(l.Tokens))
	for _, i := range l.others {
		terminal.Printf(w, "Kept %s (%s), which has a name of the member: 'ledgerd identity revoke %[1]s' revokes it\n",
			i.ID, terminal.Printable(i.DN))
	}
}
