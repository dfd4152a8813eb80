package dispatch_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A dns is a name server with records that tests can change.
type dns struct {
	conn net.PacketConn
	mu   sync.Mutex
	zone map[string][]netip.Addr
	bad  map[string]uint16 // response codes of names that fail
}

// silence is the code of names that get no response.
const silence = 0xffff

func newDNS(t *testing.T) *dns {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must.OK(t, err)
	d := &dns{conn: conn, zone: map[string][]netip.Addr{}, bad: map[string]uint16{}}
	served := make(chan struct{})
	go func() { defer close(served); d.serve() }()
	t.Cleanup(func() { conn.Close(); <-served })
	return d
}

func (d *dns) set(name string, addrs ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.zone[name] = nil
	for _, a := range addrs {
		d.zone[name] = append(d.zone[name], netip.MustParseAddr(a))
	}
}

func (d *dns) fail(name string, code uint16) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bad[name] = code
}

func (d *dns) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "udp", d.conn.LocalAddr().String())
	}}
}

func (d *dns) serve() {
	buffer := make([]byte, 1500)
	for {
		n, from, err := d.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if reply := d.reply(buffer[:n]); reply != nil {
			d.conn.WriteTo(reply, from)
		}
	}
}

// reply returns the reply to a query with one question (RFC 1035, section 4), or nil.
func (d *dns) reply(query []byte) []byte {
	var labels []string
	end := 12
	for end < len(query) && query[end] != 0 {
		next := end + 1 + int(query[end])
		labels = append(labels, string(query[end+1:next]))
		end = next
	}
	end += 5 // the root's label, type and class
	kind := binary.BigEndian.Uint16(query[end-4:])

	d.mu.Lock()
	addrs, ok := d.zone[strings.Join(labels, ".")]
	code := d.bad[strings.Join(labels, ".")]
	d.mu.Unlock()

	flags := uint16(0x8180)
	switch {
	case code == silence:
		return nil
	case code > 0:
		flags |= code
	case !ok:
		flags |= 3 // no such name
	}

	reply := append([]byte{}, query[:2]...)
	var records []byte
	count := uint16(0)
	for _, a := range addrs {
		if a.Is4() != (kind == 1) || a.Is6() != (kind == 28) {
			continue
		}
		count++
		records = append(records, 0xc0, 12) // the question's name
		records = binary.BigEndian.AppendUint16(records, kind)
		records = append(records, 0, 1, 0, 0, 0, 0) // class IN, TTL 0
		records = binary.BigEndian.AppendUint16(records, uint16(a.BitLen()/8))
		records = append(records, a.AsSlice()...)
	}

	for _, v := range []uint16{flags, 1, count, 0, 0} {
		reply = binary.BigEndian.AppendUint16(reply, v)
	}
	return append(append(reply, query[12:end]...), records...)
}
