package cmd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/must"
)

// hostileText ends each text of a hostile server: it sets the title, rings, turns the direction of what
// follows, conceals it, colours it, and begins a line.
const hostileText = "\x1b]0;x\x07\u202e\u200b\x1b[8m\x1b[32m\r\nFAKE"

// exactText is of texts that a client parses: times, states, levels, IDs and digests.
var exactText = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT.*|[A-Z]+|sha256:.*|)$`)

// exactMembers are the members whose values a client parses, or compares with what it requested.
const exactMembers = " next_cursor permission scope role signers subject "

// requestedMembers are those that name what was requested, and the types of events.
const requestedMembers = exactMembers + "org repo name sha id commit type kind carry cause "

// makeHostile appends hostileText to the texts in a JSON value, but not to those of the exact members.
func makeHostile(v any, exact string) any {
	switch v := v.(type) {
	case string:
		if !exactText.MatchString(v) {
			return v + hostileText
		}
	case []any:
		for i := range v {
			v[i] = makeHostile(v[i], exact)
		}
	case map[string]any:
		for name, member := range v {
			if !strings.Contains(exact, " "+name+" ") {
				v[name] = makeHostile(member, exact)
			}
		}
	}
	return v
}

// makeStreamHostile makes the data of the events of a stream hostile.
func makeStreamHostile(stream io.ReadCloser, exact string) io.ReadCloser {
	read, write := io.Pipe()
	go func() {
		defer stream.Close()
		lines := bufio.NewScanner(stream)
		for lines.Scan() {
			line := lines.Text()
			var v any
			if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &v) == nil {
				text, _ := json.Marshal(makeHostile(v, exact))
				line = "data: " + string(text)
			}
			if _, err := io.WriteString(write, line+"\n"); err != nil {
				return
			}
		}
		_ = write.CloseWithError(lines.Err())
	}()
	return read
}

// newHostile starts a server that answers as another one, with hostile texts but for the exact members.
func newHostile(t *testing.T, honest, exact string) string {
	t.Helper()
	target := must.Get(url.Parse(honest))(t)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		if strings.Contains(r.Header.Get("Content-Type"), "event-stream") {
			r.Body = makeStreamHostile(r.Body, exact)
			return nil
		}
		if !strings.Contains(r.Header.Get("Content-Type"), "json") {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		var v any
		if json.Unmarshal(body, &v) == nil {
			if body, err = json.Marshal(makeHostile(v, exact)); err != nil {
				return err
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept-Encoding")
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// perform runs a command in this process.
func perform(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Main(context.Background(), args, strings.NewReader(""), &out, &errs)
	return status, out.String(), errs.String()
}

// serveHere serves a database in this process until the test ends, and returns the URL.
func serveHere(t *testing.T, database string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	read, write := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Main(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--database", database, "--shutdown-delay", "0s"},
			strings.NewReader(""), write, io.Discard)
		_ = write.Close()
	}()
	t.Cleanup(func() { stop(); <-ended })
	line := make([]byte, 200)
	n, err := read.Read(line)
	must.OK(t, err)
	go io.Copy(io.Discard, read)
	return strings.TrimSpace(strings.TrimPrefix(string(line[:n]), "listening on "))
}

// newLocal makes a folder for a ledger the current one, and returns the path of the ledger and what runs a
// command on it that must succeed.
func newLocal(t *testing.T) (database string, ledgerd func(line string) (stdout string)) {
	t.Helper()
	folder := t.TempDir()
	t.Chdir(folder)
	t.Setenv("LEDGERD_URL", "")
	t.Setenv("LEDGERD_BASE_URL", "http://ledger.example")
	t.Setenv("XDG_STATE_HOME", folder)
	database = filepath.Join(folder, "ledger.db")
	t.Setenv("LEDGERD_DATABASE", database)
	return database, func(line string) string {
		t.Helper()
		status, stdout, stderr := perform(strings.Fields(line)...)
		if status != 0 {
			t.Fatalf("%s: status %d: %s", line, status, stderr)
		}
		return stdout
	}
}

// Nothing that a server says can control the terminal, or passes for a line of ledgerd.
func TestOutputOfAHostileServer(t *testing.T) {
	database, ledgerd := newLocal(t)
	const sha = "1111111111111111111111111111111111111111"
	ledgerd("org create acme")
	ledgerd("repo create acme/api")
	ledgerd("keygen --dn cn=ci,ou=build,o=acme --out ci")
	ledgerd("identity add --org acme --cert ci.crt")
	ledgerd("webhook add acme/api --url https://ci.example.com/ledger")
	token := strings.TrimSpace(ledgerd("token create --org acme --name boss --scope admin"))
	ledgerd("attest acme/api --commit " + sha + " --predicate test:go --status pass --key ci.key")
	ledgerd("attest acme/api --commit " + sha + " --predicate deploy:prod --status pass --key ci.key")
	attestation := regexp.MustCompile(`att_\w+`).FindString(ledgerd("attestation list acme/api -o json"))
	t.Setenv("LEDGERD_DATABASE", "")
	t.Setenv("LEDGERD_TOKEN", token)
	honest := serveHere(t, database)
	servers := []string{newHostile(t, honest, exactMembers), newHostile(t, honest, requestedMembers)}

	for _, line := range []string{
		"policy lint acme/api", "policy show acme/api", "policy history acme/api",
		"org list", "repo list --org acme", "commit list acme/api", "commit show acme/api " + sha,
		"attestation list acme/api", "attestation show acme/api " + attestation, "events acme",
		"identity list --org acme", "token list --org acme", "webhook list acme/api", "audit list --org acme",
		"gate acme/api --commit " + sha + " --state PROMOTABLE", "radar acme/api --commit " + sha,
		"violation list acme/api", "environment list acme", "search test --org acme", "predicate list --org acme",
		"receipt acme/api " + sha, "whoami",
		"insights --org acme", "org update acme --log-public",
		"member list --org acme", "token create --org acme --name x --scope read", "repo create acme/other",
		"events acme --types attestation,state,violation,policy,identity,audit",
		"events acme --follow --since-id earliest --types attestation,state,violation --limit 3",
		"verify attestation acme/api " + attestation, "verify commit acme/api " + sha, "verify repo acme/api",
		"evidence export acme/api --commit " + sha + " --out evidence.tar",
	} {
		for _, hostile := range servers {
			status, stdout, stderr := perform(append(strings.Fields(line), "--server", hostile)...)
			if status == cli.ExitUsage {
				t.Errorf("%s: %s", line, stderr)
			}
			wantOnlyOurs(t, line, stdout+stderr)
		}
	}
}

// wantOnlyOurs checks that an output has no line of a hostile text, and no control character.
func wantOnlyOurs(t *testing.T, command, output string) {
	t.Helper()
	if i := strings.IndexAny(output, "\x1b\x07\r\u202e\u200b"); i >= 0 {
		t.Errorf("%s: control characters in %q", command, output[max(0, i-60):min(len(output), i+60)])
	}
	if strings.HasPrefix(output, "FAKE") || strings.Contains(output, "\nFAKE") {
		t.Errorf("%s: a line of the server in %q", command, output)
	}
}
