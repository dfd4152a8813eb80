// Ledgerd is a self-hosted ledger of signed attestations about git commits.
package main

import (
	"os"

	"github.com/ledgerd/ledgerd/cmd"
)

func main() { os.Exit(cmd.Execute()) }
