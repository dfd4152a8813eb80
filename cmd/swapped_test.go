package cmd

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/must"
)

// newSwapping starts a proxy of a server that replaces a text in the paths of requests.
func newSwapping(t *testing.T, server, asked, instead string) string {
	t.Helper()
	target := must.Get(url.Parse(server))(t)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.URL.Path = strings.ReplaceAll(r.Out.URL.Path, asked, instead)
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// No command takes another record for the one that it was asked for.
func TestSwappedRecords(t *testing.T) {
	database, ledgerd := newLocal(t)
	first, third := strings.Repeat("1", 40), strings.Repeat("3", 40)
	ledgerd("org create acme")
	ledgerd("keygen --dn cn=ci,ou=build,o=acme --out ci")
	ledgerd("identity add --org acme --cert ci.crt")
	for _, repo := range []string{"acme/api", "acme/web"} {
		ledgerd("repo create " + repo)
		ledgerd("attest " + repo + " --commit " + first + " --predicate test:go --status pass --key ci.key")
		ledgerd("attest " + repo + " --commit " + third + " --predicate test:go --status fail --key ci.key")
	}
	id := regexp.MustCompile(`att_\w+`)
	a1 := id.FindString(ledgerd("attestation list acme/api --commit " + first + " -o json"))
	a3 := id.FindString(ledgerd("attestation list acme/api --commit " + third + " -o json"))
	hook := regexp.MustCompile(`whk_\w+`)
	w1 := hook.FindString(ledgerd("webhook add acme/api --url https://ci.example.com/1 -o json"))
	w3 := hook.FindString(ledgerd("webhook add acme/api --url https://ci.example.com/3 -o json"))
	token := strings.TrimSpace(ledgerd("token create --org acme --name boss --scope admin"))
	t.Setenv("LEDGERD_TOKEN", token)
	t.Setenv("LEDGERD_DATABASE", "")
	server := serveHere(t, database)

	for _, test := range []struct{ line, asked, instead string }{
		{"verify attestation acme/api " + a3, a3, a1},
		{"verify commit acme/api " + third, third, first},
		{"verify commit acme/api " + third + " --rederive", third, first},
		{"verify commit acme/api 3333333", "3333333", "1111111"},
		{"verify commit acme/api " + third, "/api", "/web"},
		{"verify repo acme/api", "/api", "/web"},
		{"receipt acme/api " + third + " --state ATTESTED --wait 1h --out receipt", third, first},
		{"receipt acme/api " + first + " --state ATTESTED --wait 1h", "/api", "/web"},
		{"gate acme/api --commit " + third + " --state ATTESTED", third, first},
		{"gate acme/api --commit " + third + " --state ATTESTED", "/api", "/web"},
		{"commit show acme/api " + third, third, first},
		{"commit list acme/api", "/api", "/web"},
		{"attestation show acme/api " + a3, a3, a1},
		{"attestation list acme/api", "/api", "/web"},
		{"policy show acme/api", "/api", "/web"},
		{"webhook show acme/api " + w3, w3, w1},
		{"evidence export acme/api --commit " + third + " --out evidence.zip", third, first},
	} {
		args := strings.Fields(test.line)
		if honest, _, stderr := perform(append(args, "--server", server)...); honest == cli.ExitUsage {
			t.Errorf("%s: %s", test.line, stderr)
		}
		status, stdout, stderr := perform(append(args, "--server", newSwapping(t, server, test.asked, test.instead))...)
		if status == 0 || status == cli.ExitIncomplete || !strings.Contains(stdout+stderr, "was requested") {
			t.Errorf("%s with %s for %s: status %d: %s%s", test.line, test.instead, test.asked, status, stdout, stderr)
		}
	}
}
