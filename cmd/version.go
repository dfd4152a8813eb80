package cmd

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/buildinfo"
)

func newVersion(p *program) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  ledgerd version\n  ledgerd version -o json",
		Args:    takes(),
		RunE: func(*cobra.Command, []string) error {
			record := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{buildinfo.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return p.print(record, func() {
				fmt.Fprintf(p.stdout, "ledgerd %s (%s, %s/%s)\n", record.Version, record.Go, record.OS, record.Arch)
			})
		},
	}
}
