package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/internal/signing"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

func newKeygen(p *program) *cobra.Command {
	var dn identity.DN
	var out, email string
	var days int
	var force bool
	command := &cobra.Command{
		Use:   "keygen",
		Short: "Make a signing key and its self-signed certificate",
		Long: `Makes an Ed25519 key and writes it, not encrypted and readable only by you, to
NAME.key, and a certificate that says whose it is to NAME.crt. Keep the key;
'ledgerd identity add --cert NAME.crt' makes an org trust it.`,
		Example: "  ledgerd keygen --dn 'cn=ci,ou=build,o=acme' --out ci",
		Args:    takes(),
		RunE: func(*cobra.Command, []string) error {
			if days < 1 || days > 36500 {
				return usagef("--days %d is not between 1 and 36500", days)
			}
			if base := filepath.Base(out); out == "" || os.IsPathSeparator(out[len(out)-1]) || base == "." || base == ".." {
				return usagef("--out %q is no name of files: with ci, they are ci.key and ci.crt", out)
			}
			made, err := signing.NewKeyPair(dn, email, time.Now(), days)
			if err != nil {
				return err
			}
			if err := made.Write(out, force); err != nil {
				return err
			}
			record := struct {
				DN          string      `json:"dn"`
				Key         string      `json:"key"`
				Certificate string      `json:"certificate"`
				Fingerprint string      `json:"fingerprint"`
				NotAfter    ledger.Time `json:"not_after"`
			}{dn.String(), out + ".key", out + ".crt", made.Fingerprint, ledger.TimeOf(made.Cert.NotAfter)}
			return p.print(record, func() {
				fmt.Fprintf(p.stdout, "made %s and %s for %s, valid until %s\n", record.Key, record.Certificate, record.DN,
					record.NotAfter)
			})
		},
	}
	flags := command.Flags()
	flags.Var(&flagvalue.Parsed[identity.DN]{Value: &dn, Kind: "DN", Parse: identity.ParseDN}, "dn",
		"whose key it is, such as cn=ci,ou=build,o=acme")
	flags.StringVar(&out, "out", "", "`NAME` of the files, without .key and .crt")
	flags.StringVar(&email, "email", "", "e-mail `address` for the certificate")
	flags.IntVar(&days, "days", 3650, "how long the certificate is valid")
	flags.BoolVar(&force, "force", false, "overwrite files that are there")
	require(command, "dn", "out")
	return command
}
