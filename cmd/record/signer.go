package record

import (
	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/signing"
)

// A signerFiles names the files of a key to sign with and of its certificate.
type signerFiles struct{ key, cert string }

// flags defines --key and --cert.
func (s *signerFiles) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&s.key, "key", "", "private key to sign with, a PEM `file`")
	flags.StringVar(&s.cert, "cert", "", "certificate of the key, with its chain, a PEM `file`")
}

// load returns a signer with the key.
func (s signerFiles) load() (*signing.Signer, error) { return signing.Load(s.key, s.cert) }
