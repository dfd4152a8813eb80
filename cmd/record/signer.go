package record

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/signing"
	"github.com/ledgerd/ledgerd/internal/terminal"
)

// A signerFiles names the files of a key to sign with and of its certificate.
type signerFiles struct{ key, cert string }

// flags defines --key and --cert.
func (s *signerFiles) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&s.key, "key", "", "`file` with the private key to sign with, in PEM or of OpenSSH, or with a "+
		"public key whose private key is in ssh-agent")
	flags.StringVar(&s.cert, "cert", "", "certificate of the key, with its chain, a PEM `file`")
}

// load returns a signer with the key. It asks for the passphrase of an encrypted one.
func (s signerFiles) load(p *cli.Program) (*signing.Signer, error) {
	return signing.Load(s.key, s.cert, func() ([]byte, error) {
		passphrase, ok, err := terminal.AskSecret(p.Stdin, p.Stderr, fmt.Sprintf("Passphrase of %s:", s.key))
		if err == nil && !ok {
			err = errors.New("the private key is encrypted, and there is no terminal to ask for the passphrase (add the key " +
				"with ssh-add, and use its public key, such as id_ed25519.pub)")
		}
		return passphrase, err
	})
}
