package cmd

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/ledger"
)

func newKeygen(p *program) *cobra.Command {
	var dn ledger.DN
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
			made, err := newKeyPair(dn, email, time.Now(), days)
			if err != nil {
				return err
			}
			if err := made.write(out, force); err != nil {
				return err
			}
			record := struct {
				DN          string      `json:"dn"`
				Key         string      `json:"key"`
				Certificate string      `json:"certificate"`
				Fingerprint string      `json:"fingerprint"`
				NotAfter    ledger.Time `json:"not_after"`
			}{dn.String(), out + ".key", out + ".crt", made.fingerprint, ledger.TimeOf(made.cert.NotAfter)}
			return p.print(record, func() {
				fmt.Fprintf(p.stdout, "made %s and %s for %s, valid until %s\n", record.Key, record.Certificate, record.DN, record.NotAfter)
			})
		},
	}
	flags := command.Flags()
	flags.Var(&flagvalue.Parsed[ledger.DN]{Value: &dn, Kind: "DN", Parse: ledger.ParseDN}, "dn", "whose key it is, such as cn=ci,ou=build,o=acme")
	flags.StringVar(&out, "out", "", "`NAME` of the files, without .key and .crt")
	flags.StringVar(&email, "email", "", "e-mail `address` for the certificate")
	flags.IntVar(&days, "days", 3650, "how long the certificate is valid")
	flags.BoolVar(&force, "force", false, "overwrite files that are there")
	require(command, "dn", "out")
	return command
}

// A keyPair is a new key with a certificate that it signed itself.
type keyPair struct {
	key         ed25519.PrivateKey
	cert        *x509.Certificate
	fingerprint string
}

func newKeyPair(dn ledger.DN, email string, now time.Time, days int) (*keyPair, error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject:      subjectOf(dn),
		// Clocks differ a little.
		NotBefore:             now.Add(-5 * time.Minute),
		NotAfter:              now.AddDate(0, 0, days),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		BasicConstraintsValid: true,
	}
	if email != "" {
		template.EmailAddresses = []string{email}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	pair := &keyPair{key: key}
	if pair.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("reading the new certificate: %w", err)
	}
	pair.fingerprint, err = ledger.Fingerprint(public)
	return pair, err
}

func subjectOf(dn ledger.DN) pkix.Name {
	name := pkix.Name{CommonName: dn.CN}
	if dn.OU != "" {
		name.OrganizationalUnit = []string{dn.OU}
	}
	if dn.O != "" {
		name.Organization = []string{dn.O}
	}
	return name
}

func (k *keyPair) certPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.cert.Raw})
}

// write makes the two files. Neither is left behind where the other cannot be
// written, and with force what they replace stays until both are on the disk.
func (k *keyPair) write(name string, force bool) error {
	der, err := x509.MarshalPKCS8PrivateKey(k.key)
	if err != nil {
		return fmt.Errorf("writing the key: %w", err)
	}
	key, cert := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), k.certPEM()
	if force {
		return replacePair(name, key, cert)
	}
	for _, file := range []string{name + ".key", name + ".crt"} {
		if _, err := os.Lstat(file); err == nil {
			return fmt.Errorf("%s exists already: --force overwrites it", file)
		}
	}
	return writePair(name, key, cert)
}

// writePair writes two files that were not there.
func writePair(name string, key, cert []byte) error {
	if err := writeNew(name+".crt", cert, 0o644); err != nil {
		return err
	}
	if err := writeNew(name+".key", key, 0o600); err != nil {
		return errors.Join(err, os.Remove(name+".crt"))
	}
	return nil
}

// writeNew writes a file that was not there.
func writeNew(name string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// replacePair writes both files beside those that it replaces, and then
// renames them: the key last, since of the two it is the one that nobody can
// make again.
func replacePair(name string, key, cert []byte) error {
	newKey, err := replace(name+".key", 0o600)
	if err != nil {
		return err
	}
	defer newKey.discard()
	newCert, err := replace(name+".crt", 0o644)
	if err != nil {
		return err
	}
	defer newCert.discard()
	if err := errors.Join(newCert.fill(cert), newKey.fill(key)); err != nil {
		return err
	}
	if err := newCert.rename(); err != nil {
		return err
	}
	return newKey.rename()
}
