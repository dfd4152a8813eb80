package cli

import "github.com/ledgerd/ledgerd/cmd/internal/connect"

type (
	// Location is where a command finds the ledger.
	Location = connect.Location
	// Connection is a client of the ledger.
	Connection = connect.Connection
)
