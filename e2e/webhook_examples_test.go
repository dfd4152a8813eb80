//go:build unix

package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/webhook"
)

// A startReceiver starts one of the receivers in docs/webhooks.md with a secret
// on an address. The follower returns the IDs of the events it has accepted.
type startReceiver func(t *testing.T, secret, address string) follower

// documentedReceivers returns the receivers in docs/webhooks.md by language.
func documentedReceivers(t *testing.T, e examples) map[string]startReceiver {
	t.Helper()
	const address = "127.0.0.1:9000"
	program := e.pick("go", "webhook.Verify(")
	verify := e.pick("go", "func verify(")
	standalone := strings.NewReplacer("webhook.Verify(", "verify(", "\t\"github.com/ledgerd/ledgerd/webhook\"\n",
		"").Replace(program)

	return map[string]startReceiver{
		"go": func(t *testing.T, secret, listen string) follower {
			return startSecret(t, secret, buildGo(t, strings.ReplaceAll(program, address, listen)))
		},
		"go, standard library only": func(t *testing.T, secret, listen string) follower {
			return startSecret(t, secret, buildGo(t, strings.ReplaceAll(standalone, address, listen), verify))
		},
		"python": func(t *testing.T, secret, listen string) follower {
			host, port, _ := net.SplitHostPort(listen)
			code := strings.ReplaceAll(e.pick("python", "def verify"), `("127.0.0.1", 9000)`,
				fmt.Sprintf("(%q, %s)", host, port))
			return startSecret(t, secret, "python3", "-c", code)
		},
		"node": func(t *testing.T, secret, listen string) follower {
			host, port, _ := net.SplitHostPort(listen)
			code := strings.ReplaceAll(e.pick("js", "function verify("), `(9000, "127.0.0.1")`,
				fmt.Sprintf("(%s, %q)", port, host))
			file := filepath.Join(t.TempDir(), "receive.mjs")
			must.OK(t, os.WriteFile(file, []byte(code), 0o600))
			return startSecret(t, secret, "node", file)
		},
		"shell": func(t *testing.T, secret, listen string) follower {
			return startCGI(t, secret, listen, e.pick("sh", "openssl"))
		},
	}
}

// startSecret starts a program with LEDGERD_WEBHOOK_SECRET set.
func startSecret(t *testing.T, secret, program string, args ...string) follower {
	t.Helper()
	return startProgram(t, []string{"LEDGERD_WEBHOOK_SECRET=" + secret}, program, args...)
}

// A folder is where the shell receiver stores events.
type folder string

func (f folder) ids() (ids []string) {
	files, _ := filepath.Glob(filepath.Join(string(f), "events", "*.json"))
	for _, file := range files {
		ids = append(ids, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	return ids
}

// startCGI serves a CGI script on an address.
func startCGI(t *testing.T, secret, address, code string) follower {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "events"), 0o700))
	script := filepath.Join(dir, "receive.cgi")
	must.OK(t, os.WriteFile(script, []byte(code), 0o700))

	listener := must.Get(net.Listen("tcp", address))(t)
	web := httptest.NewUnstartedServer(&cgi.Handler{
		Path:   script,
		Dir:    dir,
		Env:    []string{"LEDGERD_WEBHOOK_SECRET=" + secret, "PATH=" + os.Getenv("PATH")},
		Logger: log.New(io.Discard, "", 0),
		Stderr: io.Discard,
	})
	web.Listener.Close()
	web.Listener = listener
	web.Start()
	t.Cleanup(web.Close)
	return folder(dir)
}

// Every receiver in docs accepts genuine deliveries and rejects all others.
// During the overlap of a rotation this works with the old and the new secret.
func TestDocumentedWebhookReceivers(t *testing.T) {
	testenv.Need(t, "go", "node", "openssl", "python3")
	t.Parallel()
	h := newHooks(t)
	for name, start := range documentedReceivers(t, readExamples(t, "webhooks.md")) {
		t.Run(name, func(t *testing.T) {
			address := freeAddress(t)
			w := h.add(t, "http://"+address+"/", ledger.EventAttestation)
			r := start(t, w.Secret, address)
			waitForAddress(t, address)

			record := must.Get(h.attest())(t)
			waitFor(t, "the event", 10*time.Second, func() bool { return slices.Contains(r.ids(), record.Event) })
			d := h.waitAttempts(t, w.ID, h.oldest(t, w.ID).ID, 1)
			if d.Status != outbound.DeliverySucceeded {
				t.Fatalf("delivery is %s, want succeeded: %+v", d.Status, d)
			}
			checkVerification(t, w.Secret, address, d)
			checkRotation(t, h, start, w, address)
		})
	}
}

// waitForAddress waits until something listens on an address.
func waitForAddress(t *testing.T, address string) {
	t.Helper()
	waitFor(t, "a receiver on "+address, 20*time.Second, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// forward posts the last attempt of a delivery to a receiver again, after change
// has changed it, and returns the status of the response.
func forward(t *testing.T, address string, d outbound.DeliveryRecord, change func(*http.Request, []byte) []byte) int {
	t.Helper()
	body := bytes.Clone(d.Body)
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/", nil))(t)
	for name, values := range d.History[len(d.History)-1].Request.Headers {
		request.Header[name] = values
	}
	body = change(request, body)
	request.ContentLength = int64(len(body))
	request.Body = io.NopCloser(bytes.NewReader(body))

	response := must.Get(http.DefaultTransport.RoundTrip(request))(t)
	response.Body.Close()
	return response.StatusCode
}

func unchanged(_ *http.Request, body []byte) []byte { return body }

// checkVerification checks that the receiver accepts a delivery, and rejects it
// after changes that invalidate the signature.
func checkVerification(t *testing.T, secret, address string, d outbound.DeliveryRecord) {
	t.Helper()
	signed := func(value string) func(*http.Request, []byte) []byte {
		return func(r *http.Request, body []byte) []byte {
			r.Header["X-ledger-Signature"] = []string{value}
			return body
		}
	}
	now := time.Now()
	good := signature(secret, now, d.Body)
	_, v1, _ := strings.Cut(good, "v1=")

	for name, test := range map[string]struct {
		change func(*http.Request, []byte) []byte
		want   int
	}{
		"unchanged": {unchanged, 204},
		"one byte of the body changed": {func(_ *http.Request, body []byte) []byte {
			body[len(body)/2] ^= 1
			return body
		}, 401},
		"one byte appended":          {func(_ *http.Request, body []byte) []byte { return append(body, '\n') }, 401},
		"signed now":                 {signed(good), 204},
		"signed 4 minutes ago":       {signed(signature(secret, now.Add(-4*time.Minute), d.Body)), 204},
		"signed over 5 minutes ago":  {signed(signature(secret, now.Add(-302*time.Second), d.Body)), 401},
		"signed in the future":       {signed(signature(secret, now.Add(time.Hour), d.Body)), 401},
		"t changed":                  {signed(fmt.Sprintf("t=%d, v1=%s", now.Unix()+1, v1)), 401},
		"signed with another secret": {signed(signature(secret[1:], now, d.Body)), 401},
		"no signature": {func(r *http.Request, body []byte) []byte {
			delete(r.Header, "X-ledger-Signature")
			return body
		}, 401},
		"empty signature":  {signed(""), 401},
		"no v1":            {signed(strings.Split(good, ",")[0]), 401},
		"empty v1":         {signed(strings.TrimSuffix(good, v1)), 401},
		"t of 5000 digits": {signed("t=" + strings.Repeat("9", 5000) + ", v1=" + v1), 401},
		"malformed t":      {signed(strings.Replace(good, "t=", "t=x$(exit)", 1)), 401},
		"malformed v1":     {signed(strings.TrimSuffix(good, v1) + "é*\"'`"), 401},
		"only the previous signature is valid": {func(r *http.Request, body []byte) []byte {
			r.Header["X-ledger-Signature-Previous"] = []string{good}
			r.Header["X-ledger-Signature"] = []string{signature("whsec_other", now, body)}
			return body
		}, 204},
	} {
		if got := forward(t, address, d, test.change); got != test.want {
			t.Errorf("%s: got status %d, want %d", name, got, test.want)
		}
	}
}

// checkRotation rotates the secret of a webhook. Its receiver, with the old
// secret, listens on the address; another one is started with the new secret.
func checkRotation(t *testing.T, h *webhookOrg, start startReceiver, w outbound.Webhook, address string) {
	t.Helper()
	const overlap = 2 * time.Second
	rotated := must.Get(h.api.RotateWebhook(t.Context(), "acme", "api", w.ID, ledger.Duration(overlap)))(t)
	during := h.ping(t, w.ID)
	if during.Status != outbound.DeliverySucceeded {
		t.Errorf("during the overlap, the receiver with the old secret failed: %s", during.LastError)
	}

	newAddress := freeAddress(t)
	start(t, rotated.Secret, newAddress)
	waitForAddress(t, newAddress)
	if got := forward(t, newAddress, during, unchanged); got != 204 {
		t.Errorf("during the overlap, the receiver with the new secret returned %d, want 204", got)
	}

	waitFor(t, "the end of the overlap", 2*overlap, func() bool { return h.show(t, w.ID).PreviousSecretUntil == 0 })
	after := h.ping(t, w.ID)
	if after.LastStatus != 401 {
		t.Errorf("after the overlap, the receiver with the old secret returned %d, want 401", after.LastStatus)
	}
	if got := forward(t, newAddress, after, unchanged); got != 204 {
		t.Errorf("after the overlap, the receiver with the new secret returned %d, want 204", got)
	}
	for name := range after.History[0].Request.Headers {
		if strings.EqualFold(name, "X-ledger-Signature-Previous") {
			t.Errorf("after the overlap, the request still has the header %s", name)
		}
	}
}

// The receivers in docs do not run without a secret: with an empty one, anybody
// could sign.
func TestDocumentedWebhookReceiversRequireSecret(t *testing.T) {
	testenv.Need(t, "go", "node", "openssl", "python3")
	t.Parallel()
	for name, start := range documentedReceivers(t, readExamples(t, "webhooks.md")) {
		t.Run(name, func(t *testing.T) {
			address := freeAddress(t)
			r := start(t, "", address)
			if name == "shell" { // it is started for each request
				body := []byte(`{"id":"evt_1"}`)
				d := outbound.DeliveryRecord{Body: body, History: make([]outbound.Attempt, 1)}
				got := forward(t, address, d, func(r *http.Request, body []byte) []byte {
					r.Header["X-ledger-Signature"] = []string{signature("", time.Now(), body)}
					return body
				})
				if got != 500 || len(r.ids()) > 0 {
					t.Errorf("got status %d and the events %v, want 500 and none", got, r.ids())
				}
				return
			}

			p := r.(*process)
			select {
			case <-p.ended:
			case <-time.After(20 * time.Second):
				t.Error("it runs without a secret")
			}
		})
	}
}

// The example delivery in docs/webhooks.md is signed with the example secret.
func TestDocumentedWebhookDelivery(t *testing.T) {
	text := must.Read(t, "../docs/webhooks.md")
	secret := regexp.MustCompile("`(whsec_[A-Za-z0-9+/]{43}=)`").FindSubmatch(text)
	if secret == nil {
		t.Fatal("docs/webhooks.md has no secret")
	}

	head, body, _ := strings.Cut(strings.TrimSpace(readExamples(t, "webhooks.md").pick("http", "POST")), "\n\n")
	header := make(http.Header)
	for line := range strings.Lines(head) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			header.Set(name, value)
		}
	}

	if err := webhook.Verify(string(secret[1]), header, []byte(body), time.Unix(1795260020, 0)); err != nil {
		t.Error(err)
	}
	key, want := strings.TrimPrefix(string(secret[1]), "whsec_"), header.Get("webhook-signature")
	if got := "v1," + hmacOf(decode(t, key), header.Get("webhook-id")+"."+header.Get("webhook-timestamp")+"."+body); got !=
		want {
		t.Errorf("webhook-signature is %s, want %s", want, got)
	}
}

// The npm package of Standard Webhooks verifies our deliveries, and during the
// overlap of a rotation with both secrets.
func TestStandardWebhooksInNode(t *testing.T) {
	testenv.Need(t, "node")
	t.Parallel()
	dir := nodeDir(t, "standardwebhooks")
	example := readExamples(t, "webhooks.md").pick("js", "standardwebhooks")
	must.OK(t, os.WriteFile(filepath.Join(dir, "verified.mjs"), []byte(example), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(dir, "main.mjs"), []byte(`
import { readFileSync } from "node:fs"
import { verified } from "./verified.mjs"
const { body, headers } = JSON.parse(readFileSync(0, "utf8"))
process.stdout.write(verified(body, headers).id)
`), 0o600))
	verify := func(secret string, a arrival) (string, error) {
		headers := make(map[string]string)
		for name := range a.header {
			headers[strings.ToLower(name)] = a.header.Get(name)
		}
		in := must.Get(json.Marshal(map[string]any{"body": string(a.body), "headers": headers}))(t)
		command := exec.Command("node", filepath.Join(dir, "main.mjs"))
		command.Env = append(os.Environ(), "LEDGERD_WEBHOOK_SECRET="+secret)
		command.Stdin = bytes.NewReader(in)
		out, err := command.Output()
		return string(out), err
	}

	h := newHooks(t)
	s := newSink(t, http.StatusNoContent)
	old := h.add(t, s.url, ledger.EventAttestation)
	record := must.Get(h.attest())(t)
	first := s.next(t)
	if got, err := verify(old.Secret, first); err != nil || got != record.Event {
		t.Errorf("verify returned %q, %v, want %s", got, err, record.Event)
	}
	first.body[20] ^= 1
	if _, err := verify(old.Secret, first); err == nil {
		t.Error("a changed body was verified")
	}

	rotated := must.Get(h.api.RotateWebhook(t.Context(), "acme", "api", old.ID, outbound.DefaultOverlap))(t)
	ping := h.ping(t, old.ID)
	for _, secret := range []string{old.Secret, rotated.Secret} {
		if got, err := verify(secret, arrivalOf(ping)); err != nil || got != ping.Event {
			t.Errorf("during the overlap, verify returned %q, %v, want %s", got, err, ping.Event)
		}
	}
}

// arrivalOf returns the last attempt of a delivery as its receiver got it.
func arrivalOf(d outbound.DeliveryRecord) arrival {
	a := arrival{header: make(http.Header), body: d.Body}
	for name, values := range d.History[len(d.History)-1].Request.Headers {
		for _, value := range values {
			a.header.Add(name, value)
		}
	}
	return a
}

// tryOut returns a script that runs the commands of the three terminals in docs,
// with these addresses of the server and the receiver.
func tryOut(t *testing.T, e examples, database, server, receiver string) string {
	t.Helper()
	script := "set -eu\ntrap 'kill $(jobs -p); wait' EXIT\nwait_for() { for i in $(seq 200); do curl -s -o " +
		"/dev/null $1 && return; sleep 0.1; done; false; }\n"
	for _, block := range []string{e.pick("sh", "ledgerd serve"), e.pick("sh", "ledgerd webhook listen"),
		e.pick("sh", "ledgerd webhook ping")} {
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "ledgerd serve"):
				line += " >serve.log 2>&1 &\nwait_for http://127.0.0.1:8080/readyz"
			case strings.Contains(line, "ledgerd webhook listen"):
				line += " >received 2>listen.log &\nwait_for http://127.0.0.1:9000/"
			}
			script += line + "\n"
		}
	}
	script += "cat received\n"
	return strings.NewReplacer("~/ledger.db", database, "127.0.0.1:8080", server, "127.0.0.1:9000", receiver,
		"whk_…", "$(ledgerd webhook list acme/api -o json | sed -n 's/.*\"\\(whk_[^\"]*\\)\".*/\\1/p' | tail -n "+
			"1)").Replace(script)
}

// The commands for trying out webhooks in docs work.
func TestDocumentedWebhookTryOut(t *testing.T) {
	testenv.Need(t, "bash", "curl")
	t.Parallel()
	o := newOrg(t)
	database := "'" + o.database + "'" // the URL of a database has an &
	command := exec.Command("bash", "-c", tryOut(t, readExamples(t, "webhooks.md"), database, o.address, freeAddress(t)))
	command.Dir, command.Env = t.TempDir(), append(os.Environ(), o.env...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"Delivered dlv_", "succeeded", "test delivery; verified"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}

// Every webhook command in the text of docs works.
func TestDocumentedWebhookCommands(t *testing.T) {
	t.Parallel()
	text := must.Read(t, "../docs/webhooks.md")
	h := newHooks(t)
	w := h.add(t, newSink(t, http.StatusNoContent).url)
	d := h.ping(t, w.ID)
	commands := regexp.MustCompile("`ledgerd (webhook \\w+ acme/api[^`]*)`").FindAllSubmatch(text, -1)
	for _, c := range commands {
		args := strings.Fields(strings.NewReplacer("whk_…", w.ID, "dlv_…", d.ID).Replace(string(c[1])))
		h.ledgerd(args...)
	}
	if len(commands) < 4 {
		t.Errorf("found %d commands in docs/webhooks.md, want at least 4", len(commands))
	}

	first := readExamples(t, "webhooks.md").pick("sh", "--description")
	if out := h.ledgerd("webhook", "add", "acme/api", "--url", "https://ci.example.com/ledger", "--description",
		"the deployer"); !strings.HasPrefix(out, "whsec_") ||
		!strings.Contains(first, `ledgerd webhook add acme/api --url https://ci.example.com/ledger --description "the `+
			`deployer"`) {
		t.Errorf("webhook add printed %q; its example in docs is\n%s", out, first)
	}
}
