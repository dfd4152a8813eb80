// Ledgerd is a self-hosted ledger of signed attestations about git commits.
package main

import (
	"os"

	// Root certificates for systems without any, such as the container.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/ledgerd/ledgerd/cmd"
)

func main() { os.Exit(cmd.Execute()) }
