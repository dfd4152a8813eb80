package cmd

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version returns the version that the binary was built from: the tag, or what
// the go command makes of the commit.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func userAgent() string { return "ledgerd/" + version() }

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
			}{version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return p.print(record, func() {
				fmt.Fprintf(p.stdout, "ledgerd %s (%s, %s/%s)\n", record.Version, record.Go, record.OS, record.Arch)
			})
		},
	}
}
