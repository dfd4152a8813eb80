package cmd

import (
	"net"
	"testing"

	"github.com/ledgerd/ledgerd/cmd/internal/events"
	"github.com/ledgerd/ledgerd/internal/must"
)

func TestLocalAddress(t *testing.T) {
	for listening, want := range map[string][2]string{
		"127.0.0.1:9000":       {"127.0.0.1:9000", "127.0.0.0/8"},
		"[::1]:9000":           {"[::1]:9000", "::1/128"},
		"192.168.7.8:80":       {"192.168.7.8:80", "192.168.7.8/32"},
		"0.0.0.0:9000":         {"127.0.0.1:9000", "127.0.0.0/8"},
		"[::]:9000":            {"127.0.0.1:9000", "127.0.0.0/8"},
		"[::ffff:127.0.0.1]:9": {"127.0.0.1:9", "127.0.0.0/8"},
	} {
		address, err := net.ResolveTCPAddr("tcp", listening)
		must.OK(t, err)
		if hostPort, network := events.LocalAddress(address); [2]string{hostPort, network} != want {
			t.Errorf("%s: %s in %s, want %v", listening, hostPort, network, want)
		}
	}
}
