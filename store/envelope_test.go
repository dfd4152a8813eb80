package store

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"
)

func TestPayloadsAreKeptDecoded(t *testing.T) {
	payload := []byte(`{"_type":"https://in-toto.io/Statement/v1"}`)
	text := base64.StdEncoding.EncodeToString(payload)
	for _, test := range []struct {
		name   string
		body   string
		packed bool
	}{
		{"an envelope", fmt.Sprintf(`{"payload":"%s","signatures":[{"sig":"bm8="}]}`, text), true},
		{"the payload comes last", fmt.Sprintf(`{"signatures":[],"payload":"%s"}`, text), true},
		{"twice", fmt.Sprintf(`{"payload":"%s","again":"%s"}`, text, text), true},
		{"without padding", fmt.Sprintf(`{"payload":"%s"}`, base64.RawStdEncoding.EncodeToString(payload)), false},
		{
			"of another alphabet",
			fmt.Sprintf(`{"payload":"%s"}`, base64.URLEncoding.EncodeToString([]byte{0xfb, 0xff, 0xfe})), false,
		},
		{"nothing else", text, false},
		{"another payload", `{"payload":"e30="}`, false},
		{"nothing", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := pack([]byte(test.body), payload)
			if packed := p.payloadAt != nil; packed != test.packed {
				t.Errorf("it is packed: %t", packed)
			}
			checkUnpacked(t, p, []byte(test.body))
		})
	}
}

func checkUnpacked(t *testing.T, p packedEnvelope, body []byte) {
	t.Helper()
	if p.payloadAt == nil {
		if !bytes.Equal(p.body, body) {
			t.Errorf("it is kept as %q", p.body)
		}
		return
	}
	if got := unpack(p.body, p.payload.([]byte), int(p.payloadAt.(int64))); !bytes.Equal(got, body) {
		t.Errorf("the envelope was read back as %q", got)
	}
	if p.body == nil {
		t.Error("there is nothing to keep")
	}
}

// An envelope comes back as it was, whatever its payload.
func FuzzPack(f *testing.F) {
	f.Add([]byte(`{"payload":"e30=","signatures":[]}`), []byte("{}"), 12)
	f.Fuzz(func(t *testing.T, body, payload []byte, at int) {
		checkUnpacked(t, pack(body, payload), body)
		if at >= 0 && at <= len(body) { // one that does hold it
			whole := append(append(bytes.Clone(body[:at]), base64.StdEncoding.EncodeToString(payload)...), body[at:]...)
			checkUnpacked(t, pack(whole, payload), whole)
		}
	})
}
