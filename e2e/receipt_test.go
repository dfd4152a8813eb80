package e2e_test

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/receipt"
)

const (
	receiptCommit = "0123456789abcdef0123456789abcdef01234567"
	otherCommit   = "89abcdef0123456789abcdef0123456789abcdef"
)

// A presented receipt is one that is shown to verifiers, and what they are asked.
type presented struct {
	receipt ledger.Receipt
	want    receipt.Want
	logKey  string
	now     ledger.Time
}

// replace changes the first occurrence of a text in a receipt.
func replace[T ~string | ~[]byte](t *testing.T, text *T, old, now string) {
	t.Helper()
	if !strings.Contains(string(*text), old) {
		t.Fatalf("%s has no %s", *text, old)
	}
	*text = T(strings.Replace(string(*text), old, now, 1))
}

// payload changes the payload of the envelope.
func (p *presented) payload(t *testing.T, old, now string) {
	t.Helper()
	var envelope struct {
		Payload string `json:"payload"`
	}
	must.OK(t, json.Unmarshal(p.receipt.Envelope, &envelope, json.RejectUnknownMembers(false)))
	text := must.Get(base64.StdEncoding.DecodeString(envelope.Payload))(t)
	changed := string(text)
	replace(t, &changed, old, now)
	replace(t, &p.receipt.Envelope, envelope.Payload, base64.StdEncoding.EncodeToString([]byte(changed)))
}

// verify returns the exit statuses of all verifiers.
func (p *presented) verify(t *testing.T) map[string]int {
	t.Helper()
	statuses := map[string]int{"go": 0}
	key := must.Get(note.NewVerifier(p.logKey))(t)
	if _, err := receipt.Verify(p.receipt, receipt.Trust{Logs: []note.Verifier{key}}, p.want, p.now); err != nil {
		statuses["go"] = 4
	}

	text := must.Get(json.Marshal(p.receipt))(t)
	file := filepath.Join(t.TempDir(), "receipt.json")
	must.OK(t, os.WriteFile(file, text, 0o600))
	for program, script := range map[string]string{"python3": "receipt.py", "node": "receipt.mjs"} {
		command := exec.Command(program, "../docs/verify/"+script, file, "--log-key", p.logKey, "--org", p.want.Org,
			"--repo", p.want.Repo, "--commit", p.want.Commit, "--state", p.want.State.String(), "--at", p.now.String())
		output, _ := command.CombinedOutput() // the exit status is the result
		statuses[program] = command.ProcessState.ExitCode()
		t.Logf("%s: %s", program, strings.TrimSpace(string(output)))
	}
	return statuses
}

// receipts returns two receipts of a real server, and the key of its log.
func receipts(t *testing.T) (first, second ledger.Receipt, logKey string) {
	t.Helper()
	o := newOrg(t)
	o.env = append(o.env, "LEDGERD_BASE_URL="+o.url)
	o.start()
	for _, sha := range []string{receiptCommit, otherCommit} {
		o.ledgerd("attest", "acme/api", "--commit", sha, "--predicate", "test:go", "--status", "pass", "--key", o.keyFile)
	}
	// One from the server, one from the command on the database next to it.
	file := filepath.Join(t.TempDir(), "receipt.json")
	o.ledgerd("receipt", "acme/api", receiptCommit, "--out", file)
	text := must.Read(t, file)
	must.OK(t, json.Unmarshal(text, &first))
	c, err := client.New(o.url, client.Options{Token: o.token})
	must.OK(t, err)
	second, err = c.Receipt(t.Context(), "acme", "api", otherCommit, nil, "")
	must.OK(t, err)
	l, err := c.Log(t.Context(), "acme")
	must.OK(t, err)
	return first, second, l.Key
}

// All verifiers accept the receipts of a real server, and refuse what was changed in them.
func TestReceiptsOfARealServer(t *testing.T) {
	testenv.Need(t, "node", "python3")
	t.Parallel()
	first, second, logKey := receipts(t)
	origin, _, _ := strings.Cut(logKey, "+")
	_, otherKey, err := note.GenerateKey(nil, origin)
	must.OK(t, err)
	now := ledger.TimeOf(time.Now())
	for name, test := range map[string]struct {
		status int
		change func(t *testing.T, p *presented)
	}{
		"as it is": {0, func(*testing.T, *presented) {}},
		"the other": {0, func(_ *testing.T, p *presented) {
			p.receipt, p.want.Commit = second, otherCommit
		}},
		"in an hour": {0, func(_ *testing.T, p *presented) { p.now = now.Add(time.Hour) }},

		"another commit in the payload": {4, func(t *testing.T, p *presented) {
			p.payload(t, receiptCommit, otherCommit)
		}},
		"another state in the payload": {4, func(t *testing.T, p *presented) {
			p.payload(t, `"state":"ATTESTED"`, `"state":"PROMOTABLE"`)
		}},
		"a longer validity": {4, func(t *testing.T, p *presented) {
			p.payload(t, `"validUntil":"20`, `"validUntil":"21`)
		}},
		"another digest": {4, func(t *testing.T, p *presented) {
			p.payload(t, `"payloadDigest":"sha256:`, `"payloadDigest":"sha256:0`)
		}},
		"another signature": {4, func(t *testing.T, p *presented) {
			replace(t, &p.receipt.Envelope, `"sig":"ME`, `"sig":"MF`)
		}},
		"the other's envelope": {4, func(_ *testing.T, p *presented) {
			p.receipt.Envelope = second.Envelope
		}},
		"the other's proof":    {4, func(_ *testing.T, p *presented) { p.receipt.Proof = second.Proof }},
		"the proof of the key": {4, func(_ *testing.T, p *presented) { p.receipt.Proof = first.Key.Proof }},
		"another index": {4, func(t *testing.T, p *presented) {
			replace(t, &p.receipt.Proof, "index ", "index 1")
		}},
		"another origin": {4, func(t *testing.T, p *presented) {
			replace(t, &p.receipt.Proof, "/acme/log\n", "/acme/log/2\n")
		}},
		"no checkpoint": {4, func(_ *testing.T, p *presented) {
			p.receipt.Proof, _, _ = strings.Cut(p.receipt.Proof, "\n\n")
		}},
		"a key of another org": {4, func(t *testing.T, p *presented) {
			replace(t, &p.receipt.Key.Event, `"org":"acme"`, `"org":"else"`)
		}},
		"a key for other times": {4, func(t *testing.T, p *presented) {
			replace(t, &p.receipt.Key.Event, `"not_after":"20`, `"not_after":"21`)
		}},
		"an empty envelope": {4, func(_ *testing.T, p *presented) {
			p.receipt.Envelope = []byte(`{}`)
		}},
		"another log":        {4, func(_ *testing.T, p *presented) { p.logKey = otherKey }},
		"tomorrow":           {4, func(_ *testing.T, p *presented) { p.now = now.Add(25 * time.Hour) }},
		"yesterday":          {4, func(_ *testing.T, p *presented) { p.now = now.Add(-24 * time.Hour) }},
		"for another commit": {4, func(_ *testing.T, p *presented) { p.want.Commit = otherCommit }},
		"for another repo":   {4, func(_ *testing.T, p *presented) { p.want.Repo = "web" }},
		"for another org":    {4, func(_ *testing.T, p *presented) { p.want.Org = "else" }},
		"for a higher state": {4, func(_ *testing.T, p *presented) { p.want.State = ledger.Promotable }},
	} {
		t.Run(name, func(t *testing.T) {
			want := receipt.Want{Org: "acme", Repo: "api", Commit: receiptCommit, State: ledger.Attested}
			p := &presented{receipt: first, want: want, logKey: logKey, now: now}
			test.change(t, p)
			for verifier, status := range p.verify(t) {
				if status != test.status {
					t.Errorf("%s: status %d, want %d", verifier, status, test.status)
				}
			}
		})
	}
}

// The commands of docs/receipts.md work as they are.
func TestReceiptExamples(t *testing.T) {
	testenv.Need(t, "bash", "node", "python3")
	t.Parallel()
	first, _, logKey := receipts(t)
	dir := t.TempDir()
	text := must.Get(json.Marshal(first))(t)
	must.OK(t, os.WriteFile(filepath.Join(dir, "receipt.json"), text, 0o600))
	for _, script := range []string{"receipt.py", "receipt.mjs"} {
		text := must.Read(t, "../docs/verify/"+script)
		must.OK(t, os.WriteFile(filepath.Join(dir, script), text, 0o600))
	}

	code := strings.ReplaceAll(readExamples(t, "receipts.md").pick("sh", "receipt.py"), "PROMOTABLE", "ATTESTED")
	command := exec.Command("bash", "-ec", code)
	command.Dir = dir
	command.Env = append(os.Environ(), "LOG_KEY="+logKey, "SHA="+receiptCommit)
	output, err := command.CombinedOutput()
	if err != nil || strings.Count(string(output), "valid: acme/api@"+receiptCommit+" had reached ATTESTED") != 2 {
		t.Errorf("%v\n%s", err, output)
	}
}
