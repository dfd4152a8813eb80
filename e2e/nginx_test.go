package e2e_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// nginxConfig says nothing of buffering: that is left as nginx has it.
const nginxConfig = `
daemon off;
pid %[1]s/nginx.pid;
error_log stderr warn;
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
		location / {
			proxy_pass %[3]s;
		}
	}
}
`

// TestNginxPassesEventsAtOnce looks through an nginx that buffers, and that
// compresses what it may.
func TestNginxPassesEventsAtOnce(t *testing.T) {
	// Debian has it where only root's PATH leads.
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	need(t, "nginx")
	o := newOrg(t)
	o.start()
	dir, address := t.TempDir(), freeAddress(t)
	config := filepath.Join(dir, "nginx.conf")
	check(t, os.WriteFile(config, fmt.Appendf(nil, nginxConfig, dir, address, o.url), 0o600))
	nginx := exec.Command("nginx", "-c", config, "-p", dir, "-e", "stderr")
	nginx.Stderr = os.Stderr
	check(t, nginx.Start())
	t.Cleanup(func() {
		nginx.Process.Signal(os.Interrupt)
		nginx.Wait()
	})
	waitFor(t, "nginx to listen", 10*time.Second, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})

	s := o.listen("http://" + address)
	for range 20 {
		began := time.Now()
		record, err := o.attest()
		check(t, err)
		for {
			m := s.next(t)
			if took := m.at.Sub(began); took > time.Second {
				t.Errorf("%s took %s through nginx", m.event, took)
			}
			if m.id == record.Event {
				break
			}
		}
	}
}
