package browse

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/cmd/internal/verify"
)

func newVerifyEvidence(p *cli.Program) *cobra.Command {
	var v verification
	command := p.Takes(&cobra.Command{
		Use:   "evidence",
		Short: "Verify an export of evidence, without the server",
		Long: `Checks a file that 'ledgerd evidence export' has written: that it is complete,
that trusted keys have signed the attestations, that the log has all events, and
that states, contracts and the page follow from them. Nothing is extracted, and
no network is used.

The key of the log must be in --policy or have been seen before. With --policy,
the witnesses must have cosigned the checkpoint of the file. The keys of signers
are those in the file, which the log must have, unless --keys has others.

EXIT STATUS
  0  no check has failed
  1  error (the file cannot be read, or the key of the log is not known)
  2  usage error
  3  no check has failed, but some that were asked for could not be made
  4  a check has failed`,
		Example: `  ledgerd verify evidence release.tar --policy policy
  ledgerd verify evidence release.tar --policy policy --keys keys.json`,
		RunE: func(command *cobra.Command, args []string) error {
			o, err := v.options(p, command, "")
			if err != nil {
				return err
			}
			archive, closeFile, err := openEvidence(args[0])
			if err != nil {
				return fmt.Errorf("%s is not an export of evidence: %w", args[0], err)
			}
			defer closeFile()
			report, err := verify.Evidence(o, archive)
			if err != nil {
				return fmt.Errorf("verify %s: %w", args[0], err)
			}
			return show(p, report)
		},
	}, "FILE")
	v.addPolicy(command)
	v.addKeys(command)
	return command
}

// openEvidence opens an export. It is read in place, so it must be a file.
func openEvidence(name string) (archive *evidence.Archive, closeFile func(), err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close() // it was only read
		}
	}()

	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("it is not a regular file")
	}
	archive, err = evidence.Read(file, info.Size())
	return archive, func() { _ = file.Close() }, err
}
