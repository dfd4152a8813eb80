// Ledgerd is a self-hosted ledger of signed attestations about git commits.
package main

import _ "modernc.org/sqlite"

func main() {}
