package manage

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/display"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

func newIdentity(p *cli.Program) *cobra.Command {
	return cli.Group("identity", "Manage the signers that an org trusts",
		newIdentityAdd(p), newIdentityList(p), newIdentityShow(p), newIdentityUpdate(p), newIdentityRevoke(p), newCA(p),
		newPeopleCA(p))
}

func newIdentityAdd(p *cli.Program) *cobra.Command {
	var org, cert, root, key string
	var emails []string
	n := identity.NewIdentity{Kind: identity.KeyIdentity}
	var keyless bool
	var entry ledger.SigstoreEntry
	command := &cobra.Command{
		Use:   "add",
		Short: "Trust a key, a certificate, a root or keyless signers",
		Long: `Adds a trusted signer to an org: --cert takes a certificate, whose subject names
the signer; --key takes a public key, PEM or OpenSSH, and needs --dn. --root
takes a CA and trusts every certificate that it issued, if it is valid at the
time and allowed to sign code; --dn-pattern limits it to some subjects.

--sigstore takes no file: it admits keyless Sigstore bundles that the trusted
root verifies and whose certificate matches --issuer, --subject, --repository-id,
--ref, --environment and --workflow. A * in --subject, --ref and --workflow
matches any characters; in --subject and --workflow, only a * at the end matches
the @ before the ref. --dn names the signer of what they attest, and --may is
required.

--email and --login say how commits name the signer, so that policies recognize
the author of a commit who signs it. A login is github:eve, gitlab:eve or, for
another forge, gitlab.acme.example:eve: it stands for the no-reply addresses.

--may limits what the signer may attest: predicates, or prefixes that end in a *.`,
		Example: `  ledgerd identity add --org acme --cert ci.crt --may 'test:*,build:*'
  ledgerd identity add --org acme --root ca.crt --dn-pattern 'ou=build,o=acme'
  ledgerd identity add --org acme --key ci.pub --dn 'cn=ci,ou=build,o=acme' --email ci@acme.example
  ledgerd identity add --org acme --key ~/.ssh/id_ed25519.pub --dn 'cn=eve,ou=dev,o=acme' --login github:eve
  ledgerd identity add --org acme --cert eve.crt --email eve@acme.example,eve@home.example --login github:eve
  ledgerd identity add --org acme --sigstore --trusted-root public-good \
    --issuer https://token.actions.githubusercontent.com --repository-id 495574555 \
    --ref refs/heads/main --dn 'cn=release,ou=build,o=acme' --may 'build:*'`,
		RunE: func(command *cobra.Command, _ []string) error {
			switch {
			case key != "" && n.DN == "":
				return cli.Usagef("--key needs --dn: a public key does not name its signer")
			case root != "":
				n.Kind = identity.RootIdentity
			case keyless:
				n.Kind, n.Sigstore = identity.SigstoreIdentity, &entry
			case entry != (ledger.SigstoreEntry{}):
				return cli.Usagef("--trusted-root, --issuer and what else selects keyless certificates need --sigstore")
			}
			if n.Emails = emails; len(emails) == 1 {
				n.Email, n.Emails = emails[0], nil
			}
			if err := readNewIdentity(p, &n, cert+root+key); err != nil { // at most one of them is set
				return err
			}
			return p.WithOrg(command, org, func(ctx context.Context, c *cli.Connection, org string) error {
				added, err := c.AddIdentity(ctx, org, n)
				if err != nil {
					return err
				}
				return p.Confirm(added, func() {
					terminal.Printf(p.Stdout, "Trusted %s %s in %s (%s)\n", added.Kind, terminal.Printable(added.DN), added.Org,
						added.ID)
				})
			})
		},
	}

	flags := command.Flags()
	cli.OrgFlag(command, &org)
	flags.StringVar(&cert, "cert", "", "certificate of one signer, a PEM `file`")
	flags.StringVar(&root, "root", "", "certificate of a CA, a PEM `file`")
	flags.StringVar(&key, "key", "", "public key of one signer, a `file` in PEM or of OpenSSH, such as id_ed25519.pub")
	flags.BoolVar(&keyless, "sigstore", false, "admit keyless Sigstore bundles")
	sigstoreFlags(command, &entry)
	flags.StringVar(&n.DN, "dn", "", "distinguished `name` of the signer of a key or of keyless bundles")
	signerNames(command, &emails, &n.Logins, "default: the first one of the certificate")
	flagvalue.IdentityLimits(command, &n.May, &n.DNPattern)
	flagvalue.RequireOne(command, "cert", "root", "key", "sigstore")
	flagvalue.Exclude(command, "cert", "root", "key", "sigstore")
	flagvalue.NameField(command, "pem", "cert", "root", "key")

	return command
}

// readNewIdentity reads the file of an identity; a keyless one has none.
func readNewIdentity(p *cli.Program, n *identity.NewIdentity, file string) error {
	if n.Kind == identity.SigstoreIdentity {
		return nil
	}
	text, err := p.ReadFile(file)
	n.PEM = string(text)
	return err
}

// signerNames adds the flags for the names of a signer. unset says what no address means.
func signerNames(command *cobra.Command, emails, logins *[]string, unset string) {
	flags := command.Flags()
	flags.StringSliceVar(emails, "email", nil, "e-mail `addresses` of the signer, comma-separated; "+unset)
	flags.StringSliceVar(logins, "login", nil, "`accounts` of the signer at forges, comma-separated, such as github:eve")
	flagvalue.NameField(command, "emails", "email")
	flagvalue.NameField(command, "logins", "login")
}

// sigstoreFlags adds the flags of an entry for keyless signers.
func sigstoreFlags(command *cobra.Command, entry *ledger.SigstoreEntry) {
	for _, f := range []struct {
		name, field, usage string
		value              *string
	}{
		{"trusted-root", "trusted_root", "`name` of the trusted root that must verify the bundle", &entry.TrustedRoot},
		{"issuer", "issuer", "`URL` of the OIDC provider that identified the signer", &entry.Issuer},
		{"subject", "subject",
			"`name` in the certificate: the URL of a workflow or an e-mail address; a * matches any characters",
			&entry.Subject},
		{"repository-id", "repository_id", "`number` of the repository at its forge, which no rename changes",
			&entry.RepositoryID},
		{"ref", "ref", "git `ref` of the run, such as refs/heads/main; a * matches any characters", &entry.Ref},
		{"environment", "environment", "deployment environment (`name`) of the job", &entry.Environment},
		{"workflow", "workflow", "`URL` of the workflow that started the run; a * matches any characters", &entry.Workflow},
		{"commit", "commit", "'any': statements may be about any `commit`, not only the certificate's", &entry.Commit},
	} {
		command.Flags().StringVar(f.value, f.name, "", f.usage)
		flagvalue.NameField(command, "sigstore."+f.field, f.name)
	}
}

func newIdentityList(p *cli.Program) *cobra.Command {
	return p.ForOrg(&cobra.Command{
		Use:     "list",
		Short:   "List the trusted keys and roots of an org",
		Example: "  ledgerd identity list --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, _ []string) error {
		columns := []string{"ID", "KIND", "DN", "EMAIL", "MAY", "FINGERPRINT", "EXPIRES", "CREATED", "REVOKED"}
		return cli.PrintList(p, c.Identities(ctx, org), 0, columns, func(i identity.Identity) []any {
			return []any{i.ID, i.Kind, i.DN, terminal.OrDash(i.Email), i.May, ledger.Short(i.Fingerprint),
				i.NotAfter, i.CreatedAt, display.Revoked(i)}
		})
	})
}

func newIdentityShow(p *cli.Program) *cobra.Command {
	return p.ForOrg(&cobra.Command{
		Use:     "show",
		Short:   "Show a trusted key or root, and what it may attest",
		Example: "  ledgerd identity show idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme",
	}, func(ctx context.Context, c *cli.Connection, org string, args []string) error {
		return cli.Shown(p, display.Identity)(c.Identity(ctx, org, args[0]))
	}, "ID")
}

func newIdentityUpdate(p *cli.Program) *cobra.Command {
	var dnPattern string
	var emails, logins []string
	var may identity.Predicates
	var distinct bool
	command := p.ForOrg(&cobra.Command{
		Use:   "update",
		Short: "Change what a trusted key or root may attest, and how commits name its signer",
		Long: `Changes a key or root, effective immediately. Each flag replaces what is stored:
--may, --email and --login replace the whole list. Attestations that were
recorded before stay and still count, with the e-mail addresses that the signer
had then.

Signers with the same common name, e-mail address or login count once. If they
are different people, --distinct says so for one of them, and --distinct=false
takes it back. The states of the org's commits follow.`,
		Example: `  ledgerd identity update idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme --may 'test:*,build:*'
  ledgerd identity update idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme --may '*'
  ledgerd identity update idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme --email eve@acme.example --login github:eve
  ledgerd identity update idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme --distinct`,
	}, func(ctx context.Context, c *cli.Connection, org string, args []string) error {
		return cli.Shown(p, display.Identity)(c.ChangeIdentity(ctx, org, args[0], identity.Change{
			May:       cli.Changed(p.Command, "may", &may),
			DNPattern: cli.Changed(p.Command, "dn-pattern", &dnPattern),
			Emails:    cli.Changed(p.Command, "email", &emails),
			Logins:    cli.Changed(p.Command, "login", &logins),
			Distinct:  cli.Changed(p.Command, "distinct", &distinct),
		}))
	}, "ID")

	signerNames(command, &emails, &logins, "empty: that of the certificate")
	flagvalue.IdentityLimits(command, &may, &dnPattern)
	command.Flags().BoolVar(&distinct, "distinct", false,
		"the signer is another person than all others with the same common name, address or login")
	flagvalue.RequireOne(command, "may", "dn-pattern", "email", "login", "distinct")
	return command
}

func newIdentityRevoke(p *cli.Program) *cobra.Command {
	var since ledger.Time
	command := p.ForOrg(&cobra.Command{
		Use:   "revoke",
		Short: "Revoke a trusted key or root",
		Long: `Revokes a key or root: from now on its signatures are refused. What was recorded
before stays and still counts. With --since, for a compromised key, what was
recorded since then does not count, and what it replaced counts again. Commits
may fall to a lower state, with an event, but not deployed ones. Distrust only
grows: a later call can give an earlier time.

On a terminal it asks first, and says how many attestations are affected.`,
		Example: `  ledgerd identity revoke idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme
  ledgerd identity revoke idn_01JD3X0V6Q8Z2M4N5P7R9T1W3Y --org acme --since 2026-11-20T09:00:00Z`,
	}, func(ctx context.Context, c *cli.Connection, org string, args []string) error {
		ask := func() (string, error) { return revokeQuestion(ctx, c, org, args[0], since) }
		if err := p.Ask(ask); err != nil {
			return err
		}
		if err := c.DistrustIdentity(ctx, org, args[0], since); err != nil {
			return err
		}
		i, err := c.Identity(ctx, org, args[0])
		if err != nil {
			return fmt.Errorf("revoked %s, but it cannot be shown: %w", args[0], err)
		}
		return p.Confirm(revoked{i.ID, org, i.RevokedAt, i.DistrustedSince}, func() {
			terminal.Printf(p.Stdout, "Revoked %s (%s)\n", i.ID, terminal.Printable(i.DN))
			if since != 0 {
				printDistrust(ctx, p, c, i)
			}
		})
	}, "ID")
	command.Flags().Var(flagvalue.Past(&since), "since",
		"what was recorded with it since then does not count any more: a date, date-time, yesterday, or how long ago, such "+
			"as 5d")
	p.YesFlag(command)
	return command
}
