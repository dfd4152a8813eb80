package testenv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// FreeAddress returns an address on loopback that is free. Its port is below the range from which
// systems take the ports of outgoing connections, so it stays free for a while.
func FreeAddress() (string, error) {
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if listener, err := net.Listen("tcp", address); err == nil {
			return address, listener.Close()
		}
	}
	return "", errors.New("no free port")
}
