package postgres

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSends lets connections end if what was sent is not acknowledged for sendTimeout. Without it,
// the kernel sends it again for a quarter of an hour.
func limitSends(d *net.Dialer) {
	d.Control = func(network, _ string, c syscall.RawConn) (err error) {
		if network == "unix" {
			return nil
		}
		controlErr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(sendTimeout.Milliseconds()))
		})
		if controlErr != nil {
			return controlErr
		}
		return err
	}
}
