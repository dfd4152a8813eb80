//go:build !linux

package postgres

import "net"

// limitSends does nothing: the time limits of reads and transactions end connections, too.
func limitSends(*net.Dialer) {}
