package bulk_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/attestation/bulk"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

const (
	dsse   = `{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":"AAAA"}]}`
	bundle = `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","dsseEnvelope":` + dsse + `}`
)

// verified is what 'gh attestation verify --format json' prints about a bundle.
const verified = `{"attestation":{"bundle":` + bundle + `,"bundle_url":"","initiator":"user"},"verificationResult":{` +
	`"mediaType":"application/vnd.dev.sigstore.verificationresult+json;version=0.1","statement":{}}}`

// noBundle stands for an item that has no envelope.
const noBundle = "no bundle"

// Each form of several envelopes gives them in their order, byte for byte.
func TestSplit(t *testing.T) {
	many := strings.Repeat(dsse+"\n", bulk.Max)
	tests := []struct {
		name, body string
		want       []string
	}{
		{"JSON Lines", dsse + "\n" + bundle + "\n", []string{dsse, bundle}},
		{"JSON Lines with blank lines", "\n" + dsse + "\r\n\r\n \t\n" + bundle, []string{dsse, bundle}},
		{"values on several lines", "{\n}\n{\n \"a\": 1\n}", []string{"{\n}", "{\n \"a\": 1\n}"}},
		{"values without a space between", dsse + dsse, []string{dsse, dsse}},
		{"as many as may be", many, slicesOf(dsse, bulk.Max)},
		{"an array", " [" + dsse + ",\n " + bundle + "] ", []string{dsse, bundle}},
		{"an array with one", "[" + dsse + "]", []string{dsse}},
		{"an array with as many as may be", "[" + strings.Repeat(dsse+",", bulk.Max-1) + dsse + "]",
			slicesOf(dsse, bulk.Max)},
		{"npm's list", `{"attestations":[{"predicateType":"a","bundle":` + bundle + `},{"bundle": {} }]}`,
			[]string{bundle, "{}"}},
		{"GitHub's list", `{"attestations":[{"bundle":` + bundle + `,"repository_id":1,"bundle_url":"https://x"}],"more":[]}`,
			[]string{bundle}},
		{"a list on several lines", "{\n  \"attestations\": [\n    { \"bundle\": " + bundle + " }\n  ]\n}", []string{bundle}},

		// An item that is not an envelope has an error, and the others have none.
		{"a number between envelopes", dsse + " 5 " + dsse, []string{dsse, "5", dsse}},
		{"an array in an array", "[[" + dsse + "]," + dsse + "]", []string{"[" + dsse + "]", dsse}},
		{"two arrays", "[" + dsse + "]\n[" + dsse + "]", []string{"[" + dsse + "]", "[" + dsse + "]"}},
		{"two lists", `{"attestations":[]}{"attestations":[]}`, []string{`{"attestations":[]}`, `{"attestations":[]}`}},
		{"entries without a bundle",
			`{"attestations":[{},[],7,null,{"bundle":null,"bundle_url":"https://x"},{"bundle":[` + bundle + `]},{"bundle":` +
				bundle + `}]}`, append(slicesOf(noBundle, 6), bundle)},
		{"a bundle in two spellings", `{"attestations":[{"bundle":` + bundle + `,"Bundle":{}}]}`, []string{noBundle}},

		// What gh prints, and entries of lists.
		{"gh attestation verify", `[` + verified + `,` + verified + `]`, []string{bundle, bundle}},
		{"gh attestation verify, a line each", verified + "\n" + verified + "\n", []string{bundle, bundle}},
		{"gh attestation verify of one", verified, []string{bundle}},
		{"entries of a list in an array", `[{"bundle":` + bundle + `,"repository_id":1},` + bundle + `]`,
			[]string{bundle, bundle}},
		{"an entry of a list", "{\"bundle\": " + bundle + "}\n", []string{bundle}},
		{"an entry without a bundle", `[{"attestation":{},"bundle":null}]`, []string{`{"attestation":{},"bundle":null}`}},
		{"an entry with a payload", `[{"bundle":{},"payload":"e30="}]`, []string{`{"bundle":{},"payload":"e30="}`}},
		{"an entry in two spellings", `[{"bundle":{},"Bundle":{}}]`, []string{`{"bundle":{},"Bundle":{}}`}},

		// A single envelope, or a body that is refused like one.
		{"an envelope with a bundle", `{"bundle":` + bundle + `,` + dsse[1:], nil},
		{"an envelope", dsse, nil},
		{"an envelope and a newline", dsse + "\n", nil},
		{"a bundle", bundle, nil},
		{"a number", "5", nil},
		{"no JSON", "-----BEGIN", nil},
		{"blank", " \n", nil},
		{"a part of an envelope", dsse[:50], nil},
		{"a member that occurs twice", `{"a":1,"a":2}`, nil},
		{"a list that occurs twice", `{"attestations":[` + dsse + `],"attestations":[]}`, nil},
		{"attestations is null", `{"attestations":null}`, nil},
		{"attestations is an object", `{"attestations":{}}`, nil},
		{"attestations in an object", `{"a":{"attestations":[]}}`, nil},
		{"a list with an escaped name", `{"\u0061ttestations":[` + dsse + `]}`, nil},
		{"a list in two spellings", `{"attestations":[` + dsse + `],"atteſtations":[]}`, nil},
		{"a list and an envelope", `{"attestations":[{"bundle":` + bundle + `}],` + dsse[1:], nil},
		{"a list and a payload", `{"payload":"e30=","attestations":[{"bundle":` + bundle + `}]}`, nil},
		{"a list and a bundle", `{"attestations":[{"bundle":` + bundle + `}],"dsseEnvelope":{}}`, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			items, err := bulk.Split([]byte(test.body))
			must.OK(t, err)
			got := make([]string, len(items))
			for i, item := range items {
				if got[i] = string(item.Envelope); item.Err != nil {
					got[i] = noBundle + got[i]
					ledgertest.WantCode(t, item.Err, ledger.CodeInvalidEnvelope)
				}
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", test.want) || (items == nil) != (test.want == nil) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func slicesOf(s string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = s
	}
	return list
}

// A body with several envelopes that is not valid from its start to its end is refused as a
// whole, and so is one with too many.
func TestSplitRefuses(t *testing.T) {
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	tests := []struct {
		name, body string
		code       ledger.Code
		detail     string
	}{
		{"a truncated line", dsse + "\n" + dsse[:50], ledger.CodeInvalidJSON, "line 2, at byte 144 of the body: unexp"},
		{"no JSON on a line", dsse + "\n\n" + dsse + "\nhello\n" + dsse, ledger.CodeInvalidJSON, "on line 4, at byte"},
		{"a byte after the last line", dsse + "\n" + dsse + "\n}", ledger.CodeInvalidJSON, "on line 3,"},
		{"a NUL after the last line", dsse + "\n" + dsse + "\n\x00", ledger.CodeInvalidJSON, "on line 3,"},
		{"a NUL in a text", dsse + "\n{\"a\":\"\x00\"}", ledger.CodeInvalidJSON, "on line 2,"},
		{"a comma between lines", dsse + ",\n" + dsse, ledger.CodeInvalidJSON, "on line 1,"},
		{"a member that occurs twice", dsse + "\n{\"a\":1,\"a\":2}", ledger.CodeInvalidJSON, "duplicate"},
		{"invalid UTF-8", dsse + "\n{\"a\":\"\xff\"}", ledger.CodeInvalidJSON, "UTF-8"},
		{"a deep line", dsse + "\n" + deep, ledger.CodeInvalidJSON, "depth"},
		{"a deep array", deep, ledger.CodeInvalidJSON, "depth"},
		{"an open array", "[" + dsse + "," + dsse, ledger.CodeInvalidJSON, "unexpected end"},
		{"an array with a comma at its end", "[" + dsse + ",]", ledger.CodeInvalidJSON, "on line 1,"},
		{"garbage after an array", "[" + dsse + "]\n]", ledger.CodeInvalidJSON, "on line 2,"},
		{"an empty array", " [ ]\n", ledger.CodeInvalidEnvelope, "no envelopes"},
		{"an empty list", `{"attestations":[]}`, ledger.CodeInvalidEnvelope, "no envelopes"},
		{"too many lines", strings.Repeat(dsse+"\n", bulk.Max+1), ledger.CodePayloadTooLarge, "more than 100 envelopes"},
		{"too many in an array", "[" + strings.Repeat(dsse+",", bulk.Max) + dsse + "]", ledger.CodePayloadTooLarge,
			"more than 100 envelopes"},
		{"too many in a list", `{"attestations":[` + strings.Repeat(`{"bundle":{}},`, bulk.Max) + `{}]}`,
			ledger.CodePayloadTooLarge, "at most 100 at a time"},
		{"a million numbers", strings.Repeat("1 ", 1<<20), ledger.CodePayloadTooLarge, "more than 100 envelopes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			items, err := bulk.Split([]byte(test.body))
			ledgertest.WantCode(t, err, test.code)
			if err == nil || !strings.Contains(err.Error(), test.detail) {
				t.Errorf("got error %v, want %q in it", err, test.detail)
			}
			if items != nil {
				t.Errorf("got %d items with the error", len(items))
			}
		})
	}
}

// What tools write splits into bundles that can be parsed.
func TestSplitFilesOfTools(t *testing.T) {
	for name, hints := range map[string][]string{
		"github-two-bundles.jsonl": {"", ""},
		"npm-attestations.json":    {"SHA256:jl3bwswu80PjjokCgh0o2w5c2U4LhQAE57gj9cz1kzA", ""},
	} {
		t.Run(name, func(t *testing.T) {
			body := ledgertest.Must(os.ReadFile(filepath.Join("testdata", name)))
			items, err := bulk.Split(body)
			if err != nil || len(items) != len(hints) {
				t.Fatalf("got %d items and error %v, want %d", len(items), err, len(hints))
			}
			for i, item := range items {
				env, err := attestation.ParseEnvelope(item.Envelope)
				must.OK(t, err)
				if certified := len(env.Certificates) > 0; env.Hint != hints[i] || certified != (hints[i] == "") {
					t.Errorf("item %d has the hint %q and %d certificates", i, env.Hint, len(env.Certificates))
				}
			}
		})
	}
}

// No body is both one envelope and several. Items are JSON in the body, in their order, and
// errors are those of the API.
func FuzzSplit(f *testing.F) {
	for _, body := range []string{dsse, bundle, dsse + "\n" + bundle, "[" + dsse + "]", "[]", "1 2", dsse + "\n\n{",
		`{"attestations":[{"bundle":` + bundle + `}]}`, `{"attestations":[{}],"payload":""}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		items, err := bulk.Split(body)
		if fault, ok := errors.AsType[*ledger.Error](err); err != nil && (!ok || fault.Code == "" || items != nil) {
			t.Fatalf("%d items and the error %v", len(items), err)
		}
		if _, parsed := attestation.ParseEnvelope(body); parsed == nil && (items != nil || err != nil) {
			t.Fatalf("an envelope was split into %d items, with error %v", len(items), err)
		}
		if len(items) > bulk.Max {
			t.Fatalf("%d items", len(items))
		}

		rest := body
		for _, item := range items {
			if item.Err != nil {
				continue
			}
			at := bytes.Index(rest, item.Envelope)
			if at < 0 || !json.Valid(item.Envelope) {
				t.Fatalf("%q is not JSON of %q", item.Envelope, rest)
			}
			rest = rest[at+len(item.Envelope):]
		}
	})
}
