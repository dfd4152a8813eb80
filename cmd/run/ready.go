package run

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/service"
)

func newReady(p *cli.Program) *cobra.Command {
	timeout := 5 * time.Second
	command := &cobra.Command{
		Use:   "ready",
		Short: "Ask the server on this host whether it is ready",
		Long: `Asks the server with these settings on this host, or the one of --server,
whether it is ready to serve requests (GET /readyz). This is for health checks
of containers and scripts. It does not verify the certificate of a server on
this host.

EXIT STATUS
  0  it is ready
  1  it is not, or does not answer within --timeout
  2  wrong flags or arguments`,
		Example: `  ledgerd ready --config /etc/ledgerd/config.yaml
  ledgerd ready --server https://ledger.example.com`,
	}
	command.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait for an answer")
	command.RunE = func(command *cobra.Command, _ []string) error {
		s, err := p.Settings(command)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(command.Context(), timeout)
		defer cancel()
		if _, server := p.Global.ServerFlag(); server != "" {
			err = service.AskReadyAt(ctx, http.DefaultTransport, server)
		} else {
			err = service.AskReady(ctx, s)
		}
		if err != nil {
			return err
		}

		record := struct {
			Ready bool `json:"ready"`
		}{true}
		return p.Print(record, func() { fmt.Fprintln(p.Stdout, "ready") })
	}
	return command
}
