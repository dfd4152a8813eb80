package run

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
)

// Version returns the version of ledgerd, and what it was built with and for.
func Version() string {
	return fmt.Sprintf("%s (%s, %s/%s)", buildinfo.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersion(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  ledgerd version\n  ledgerd version -o json",
		RunE: func(*cobra.Command, []string) error {
			record := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{buildinfo.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return p.Print(record, func() {
				fmt.Fprintf(p.Stdout, "ledgerd %s\n", Version())
			})
		},
	}
}
