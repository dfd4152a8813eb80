package e2e_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"golang.org/x/mod/sumdb/note"
)

// A tamperer is a proxy in front of the server that changes one reply.
type tamperer struct {
	url  string
	part string // the end of the path whose reply is changed
	edit func(*http.Response, []byte) []byte
}

func newTamperer(t *testing.T, server string) *tamperer {
	t.Helper()
	target := must.Get(url.Parse(server))(t)
	p := new(tamperer)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Accept-Encoding", "identity")
		},
		ModifyResponse: func(r *http.Response) error {
			if p.edit == nil || !strings.HasSuffix(r.Request.URL.Path, p.part) {
				return nil
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = p.edit(r, body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", fmt.Sprint(len(body)))
			return nil
		},
	}
	server2 := httptest.NewServer(proxy)
	t.Cleanup(server2.Close)
	p.url = server2.URL
	return p
}

// A tampering is a change of one reply, and the steps that find it. A step with a question mark
// is not checked.
type tampering struct {
	part  string
	edit  func(string) string
	steps []string
}

// replaceOnce returns an edit that replaces a text once.
func replaceOnce(old, replacement string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, replacement, 1) }
}

// line returns an edit of a line, counted from 0.
func line(n int, edit func(string) string) func(string) string {
	return func(s string) string {
		lines := strings.Split(s, "\n")
		lines[n] = edit(lines[n])
		return strings.Join(lines, "\n")
	}
}

// flipped returns base64 with a bit of a byte changed.
func flipped(text string, at int) string {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 {
		return "invalid " + text
	}
	raw[(at+len(raw))%len(raw)] ^= 1
	return base64.StdEncoding.EncodeToString(raw)
}

// inJSON returns an edit of a string in a JSON object.
func inJSON(name string, edit func(string) string) func(string) string {
	return func(s string) string {
		var object map[string]any
		if err := json.Unmarshal([]byte(s), &object); err != nil {
			return "invalid: " + err.Error()
		}
		if edit == nil {
			delete(object, name)
		} else {
			object[name] = edit(fmt.Sprint(object[name]))
		}
		edited, err := json.Marshal(object)
		if err != nil {
			return "invalid: " + err.Error()
		}
		return string(edited)
	}
}

// inOpening returns an edit of the opening of the leaf in a proof.
func inOpening(edit func(string) string) func(string) string {
	return line(1, func(s string) string {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "extra "))
		if err != nil {
			return "invalid " + s
		}
		return "extra " + base64.StdEncoding.EncodeToString([]byte(edit(string(raw))))
	})
}

// inCheckpoint returns an edit of a line of the checkpoint in a proof.
func inCheckpoint(n int, edit func(string) string) func(string) string {
	return func(s string) string {
		head, note, _ := strings.Cut(s, "\n\n")
		return head + "\n\n" + line(n, edit)(note)
	}
}

// tamperings returns changes of all that the check of a record fetches. other is another
// record.
func (o *checkedOrg) tamperings(record, other ledger.AttestationRecord) map[string]tampering {
	t, ctx := o.t, o.t.Context()
	flip := func(at int) func(string) string { return func(s string) string { return flipped(s, at) } }
	instead := func(body []byte, err error) func(string) string {
		must.OK(t, err)
		return func(string) string { return string(body) }
	}
	otherKey := must.PublicPEM(t, o.key.Public())
	return map[string]tampering{
		"payload": {"/envelope", inJSON("payload", flip(-9)), []string{"Payload", "Signature", "Event"}},
		"payload type": {"/envelope", inJSON("payloadType", func(s string) string { return s + "2" }),
			[]string{"Signature", "Event"}},
		"signature": {"/envelope", replaceOnce(`"sig":"`+signatureOf(t, o, record), `"sig":"`+
			flipped(signatureOf(t, o, record), -3)), []string{"Signature", "Event"}},
		"no signature": {"/envelope", inJSON("signatures", nil), []string{"Payload", "Signature?", "Event"}},
		"no JSON":      {"/envelope", replaceOnce("{", "["), []string{"Payload", "Signature?", "Event"}},
		"another envelope": {"/envelope", instead(o.api.Envelope(ctx, "acme", "api", other.ID)),
			[]string{"Payload", "Signature", "Event"}},

		"another key": {"/key", instead([]byte(otherKey), nil), []string{"Key", "Signature"}},
		"no key":      {"/key", replaceOnce("PUBLIC", "PRIVATE"), []string{"Key", "Signature?"}},

		"time of the event":      {"/event", replaceOnce(`"timestamp":"2`, `"timestamp":"3`), []string{"Event", "Leaf"}},
		"result of the event":    {"/event", replaceOnce(`"status":"pass"`, `"status":"fail"`), []string{"Event", "Leaf"}},
		"predicate of the event": {"/event", replaceOnce("test:go", "test:c"), []string{"Event", "Leaf"}},
		"commit of the event":    {"/event", replaceOnce(record.Commit, other.ID), []string{"Event", "Leaf"}},
		"no event":               {"/event", replaceOnce("{", ""), []string{"Event", "Leaf"}},
		"space in the event":     {"/event", replaceOnce(",", ", "), []string{"Leaf"}},
		"another event":          {"/event", instead(o.api.Event(ctx, "acme", other.Event)), []string{"Event", "Leaf"}},

		"salt":      {"/proof", inOpening(inJSON("salt", func(s string) string { return flipHex(s) })), []string{"Leaf"}},
		"no salt":   {"/proof", inOpening(inJSON("salt", nil)), []string{"Leaf"}},
		"bad salt":  {"/proof", inOpening(inJSON("salt", func(s string) string { return s[2:] })), []string{"Leaf"}},
		"leaf":      {"/proof", inOpening(replaceOnce(`\"hash\":\"`, `\"hash\":\"0`)), []string{"Leaf", "Inclusion"}},
		"leaf time": {"/proof", inOpening(replaceOnce(`\"at\":\"2`, `\"at\":\"1`)), []string{"Inclusion"}},
		"no leaf":   {"/proof", inOpening(inJSON("record", nil)), []string{"Leaf", "Inclusion?", "Checkpoint?"}},
		"header":    {"/proof", replaceOnce("@v1", "@v2"), []string{"Leaf", "Inclusion?", "Checkpoint?"}},
		"index": {"/proof", line(2, func(s string) string { return s[:len(s)-1] + string(s[len(s)-1]^1) }),
			[]string{"Inclusion"}},
		"index out of range": {"/proof", line(2, func(string) string { return "index 999" }), []string{"Inclusion"}},
		"hash of the path":   {"/proof", line(3, flip(5)), []string{"Inclusion"}},
		"hash removed":       {"/proof", func(s string) string { return dropLine(s, 3) }, []string{"Inclusion"}},
		"hash added":         {"/proof", line(3, func(s string) string { return s + "\n" + s }), []string{"Inclusion"}},
		"another proof": {"/proof", instead(o.api.EventProof(ctx, "acme", other.Event)),
			[]string{"Leaf"}},

		"root": {"/proof", inCheckpoint(2, flip(0)), []string{"Inclusion", "Checkpoint"}},
		"size": {"/proof", inCheckpoint(1, func(s string) string { return s + "0" }),
			[]string{"Inclusion", "Checkpoint"}},
		"origin": {"/proof", inCheckpoint(0, func(s string) string { return "x" + s }), []string{"Checkpoint"}},
		"epoch":  {"/proof", inCheckpoint(0, func(s string) string { return s + "/2" }), []string{"Checkpoint?"}},
		"more": {"/proof", inCheckpoint(2, func(s string) string { return s + "\nmore" }),
			[]string{"Inclusion", "Checkpoint?"}},
		"sig log": {"/proof", inCheckpoint(4, flipLast), []string{"Checkpoint"}},
		"key ID":  {"/proof", inCheckpoint(4, flipKeyID), []string{"Checkpoint"}},
		"no sig":  {"/proof", inCheckpoint(4, func(string) string { return "" }), []string{"Checkpoint"}},

		"digest on the page": {"page", replaceOnce(`data-payload-digest="sha256:`, `data-payload-digest="sha256:0`),
			[]string{"Payload", "Event"}},
		"key of the log":    {"page", replaceOnce(`data-log-key="`, `data-log-key="x`), []string{"Checkpoint"}},
		"no key of the log": {"page", replaceOnce(`data-log-key="`, `data-x="`), []string{"Checkpoint?"}},
	}
}

// tampered records the attestation that is changed and another one, among others.
func (o *checkedOrg) tampered() (record, other ledger.AttestationRecord) {
	o.t.Helper()
	for range 5 {
		must.Get(o.attest())(o.t)
	}
	record = o.signs("ada", must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(o.t))
	other = o.signs("bob", must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(o.t))
	for range 6 {
		must.Get(o.attest())(o.t)
	}
	o.settle()
	return record, other
}

// The verifier of the commands decides what the script in the browser must find: a change of the attestation, of its
// event or of the proof.
func TestTamperingsFailInTheVerifier(t *testing.T) {
	t.Parallel()
	o, ctx := newCheckedOrg(t), t.Context()
	record, other := o.tampered()
	parts := map[string][]byte{
		"/envelope": must.Get(o.api.Envelope(ctx, "acme", "api", record.ID))(t),
		"/event":    must.Get(o.api.Event(ctx, "acme", record.Event))(t),
		"/proof":    must.Get(o.api.EventProof(ctx, "acme", record.Event))(t),
	}
	keys := verify.Listed(must.Get(client.Collect(o.api.Identities(ctx, "acme"), 10))(t), nil)
	log := must.Get(o.api.Log(ctx, "acme"))(t)
	open := must.Get(note.NewVerifier(log.Key))(t)

	attestation := []string{"Payload", "Key", "Signature", "Event"}
	event := []string{"Leaf", "Inclusion", "Checkpoint"}
	for name, test := range o.tamperings(record, other) {
		isChecked := slices.ContainsFunc(test.steps, func(s string) bool { return !strings.HasSuffix(s, "?") })
		if parts[test.part] == nil || !isChecked {
			continue // only the script reads the key and the page, and what it does not check, others do
		}
		got := maps.Clone(parts)
		got[test.part] = []byte(test.edit(string(parts[test.part])))
		checks, _ := verify.Attestation{Envelope: got["/envelope"], Event: got["/event"], Record: &record}.Check(keys)
		if failed := anyFailed(checks); failed != containsAny(test.steps, attestation) {
			t.Errorf("%s: the attestation has failed: %t, and the steps are %q: %v", name, failed, test.steps, checks)
		}
		_, checks = verify.Event{ID: record.Event, Body: got["/event"], Proof: got["/proof"]}.Verify(open)
		if failed := anyFailed(checks); failed != containsAny(test.steps, event) {
			t.Errorf("%s: the event has failed: %t, and the steps are %q: %v", name, failed, test.steps, checks)
		}
	}
}

func anyFailed(checks []verify.Check) bool {
	return slices.ContainsFunc(checks, func(c verify.Check) bool { return c.Status == verify.Failed })
}

func containsAny(steps, wanted []string) bool {
	return slices.ContainsFunc(steps, func(step string) bool { return slices.Contains(wanted, step) })
}

// signatureOf returns the signature in an envelope, in base64.
func signatureOf(t *testing.T, o *checkedOrg, record ledger.AttestationRecord) string {
	t.Helper()
	body := must.Get(o.api.Envelope(t.Context(), "acme", "api", record.ID))(t)
	var envelope struct {
		Signatures []struct {
			Sig string `json:"sig"`
		} `json:"signatures"`
	}
	must.OK(t, json.Unmarshal(body, &envelope))
	return envelope.Signatures[0].Sig
}

func flipHex(s string) string {
	if s[0] == '0' {
		return "1" + s[1:]
	}
	return "0" + s[1:]
}

func dropLine(s string, n int) string {
	return strings.Join(slices.Delete(strings.Split(s, "\n"), n, n+1), "\n")
}

// flipLast changes the signature in a line of a note, and flipKeyID the ID of its key.
func flipLast(s string) string {
	at := strings.LastIndex(s, " ")
	return s[:at+1] + flipped(s[at+1:], -1)
}

func flipKeyID(s string) string {
	at := strings.LastIndex(s, " ")
	return s[:at+1] + flipped(s[at+1:], 0)
}
