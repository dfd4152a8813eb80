package e2e_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// nginxConfig leaves buffering at nginx's defaults.
const nginxConfig = `
daemon off;
pid %[1]s/nginx.pid;
error_log stderr crit;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path       %[1]s/proxy;
	fastcgi_temp_path     %[1]s/fastcgi;
	uwsgi_temp_path       %[1]s/uwsgi;
	scgi_temp_path        %[1]s/scgi;
	gzip on;
	gzip_types *;
	gzip_proxied any;
	server {
		listen %[2]s;
		%[3]s
	}
}
`

// nginx starts nginx with the given locations and returns its address.
func (o *org) nginx(locations string) string {
	o.t.Helper()
	dir, address := o.t.TempDir(), freeAddress(o.t)
	must.OK(o.t, os.Chmod(filepath.Dir(dir), 0o755)) // started by root, nginx runs its workers as another user
	config := filepath.Join(dir, "nginx.conf")
	must.OK(o.t, os.WriteFile(config, fmt.Appendf(nil, nginxConfig, dir, address, locations), 0o600))
	nginx := exec.Command("nginx", "-c", config, "-p", dir, "-e", "stderr")
	nginx.Stderr = os.Stderr
	must.OK(o.t, nginx.Start())
	o.t.Cleanup(func() {
		nginx.Process.Signal(os.Interrupt)
		nginx.Wait()
	})

	waitFor(o.t, "nginx to listen", 10*time.Second, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return address
}

// Events pass through nginx within a second, although it buffers responses and
// compresses every type.
func TestNginxPassesEventsAtOnce(t *testing.T) {
	testenv.Need(t, "nginx")
	o := newOrg(t)
	o.start()
	s := o.listen("http://" + o.nginx("location / { proxy_pass "+o.url+"; }"))
	for range 20 {
		began := time.Now()
		record := must.Get(o.attest())(t)
		for {
			m := s.next(t)
			if took := m.receivedAt.Sub(began); took > time.Second {
				t.Errorf("%s took %s through nginx", m.event, took)
			}
			if m.id == record.Event {
				break
			}
		}
	}
}
