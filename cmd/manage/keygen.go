package manage

import (
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

func newKeygen(p *cli.Program) *cobra.Command {
	var dn identity.DN
	var out, email string
	var days int
	var force bool
	command := &cobra.Command{
		Use:   "keygen",
		Short: "Create a signing key and a self-signed certificate",
		Long: `Creates an Ed25519 key and a self-signed certificate for it. The key is written
to NAME.key, unencrypted and readable only by you; the certificate, which names
the signer, to NAME.crt. Keep the key secret. To have an org trust it, run
'ledgerd identity add --cert NAME.crt'.`,
		Example: "  ledgerd keygen --dn 'cn=ci,ou=build,o=acme' --out ci",
		RunE: func(*cobra.Command, []string) error {
			if days < 1 || days > 36500 {
				return cli.Usagef("invalid --days %d: use 1 to 36500", days)
			}

			if base := filepath.Base(out); out == "" || os.IsPathSeparator(out[len(out)-1]) || base == "." || base == ".." {
				return cli.Usagef("invalid --out %q: use a file name without extension, such as ci for ci.key and ci.crt", out)
			}

			pair, err := signing.NewKeyPair(dn, email, time.Now(), days)
			if err != nil {
				return err
			}
			if err := pair.Write(out, force); err != nil {
				return err
			}

			record := struct {
				DN          string      `json:"dn"`
				Key         string      `json:"key"`
				Certificate string      `json:"certificate"`
				Fingerprint string      `json:"fingerprint"`
				NotAfter    ledger.Time `json:"not_after"`
			}{dn.String(), out + ".key", out + ".crt", pair.Fingerprint, ledger.TimeOf(pair.Cert.NotAfter)}
			return p.Confirm(record, func() {
				terminal.Printf(p.Stdout, "Created %s and %s for %s, valid until %s\n", record.Key, record.Certificate, record.DN,
					record.NotAfter)
			})
		},
	}

	flags := command.Flags()
	flags.Var(&flagvalue.Parsed[identity.DN]{Value: &dn, Kind: "DN", Parse: identity.ParseDN}, "dn",
		"distinguished name of the signer, such as cn=ci,ou=build,o=acme")
	flags.StringVar(&out, "out", "", "`NAME` of the files, without extension")
	flags.StringVar(&email, "email", "", "e-mail `address` for the certificate")
	flags.IntVar(&days, "days", 3650, "validity of the certificate, in days")
	flags.BoolVar(&force, "force", false, "overwrite existing files")
	flagvalue.Require(command, "dn", "out")

	return command
}
