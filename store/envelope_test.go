package store

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"
)

func TestPack(t *testing.T) {
	payload := []byte(`{"_type":"https://in-toto.io/Statement/v1"}`)
	text := base64.StdEncoding.EncodeToString(payload)

	for _, test := range []struct {
		name   string
		body   string
		packed bool
	}{
		{"payload first", fmt.Sprintf(`{"payload":"%s","signatures":[{"sig":"bm8="}]}`, text), true},
		{"payload last", fmt.Sprintf(`{"signatures":[],"payload":"%s"}`, text), true},
		{"payload twice", fmt.Sprintf(`{"payload":"%s","again":"%s"}`, text, text), true},
		{"without padding", fmt.Sprintf(`{"payload":"%s"}`, base64.RawStdEncoding.EncodeToString(payload)), false},
		{
			"URL alphabet",
			fmt.Sprintf(`{"payload":"%s"}`, base64.URLEncoding.EncodeToString([]byte{0xfb, 0xff, 0xfe})), false,
		},
		{"only the payload", text, false},
		{"different payload", `{"payload":"e30="}`, false},
		{"empty", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := pack([]byte(test.body), payload)
			if packed := p.payloadAt != nil; packed != test.packed {
				t.Errorf("packed is %t, want %t", packed, test.packed)
			}
			checkUnpacked(t, p, []byte(test.body))
		})
	}
}

func checkUnpacked(t *testing.T, p packedEnvelope, body []byte) {
	t.Helper()
	if p.payloadAt == nil {
		if !bytes.Equal(p.body, body) {
			t.Errorf("body is stored as %q, want %q", p.body, body)
		}
		return
	}
	if got := unpack(p.body, p.payload.([]byte), int(p.payloadAt.(int64))); !bytes.Equal(got, body) {
		t.Errorf("unpack returned %q, want %q", got, body)
	}
	if p.body == nil {
		t.Error("packed body is nil")
	}
}

// FuzzPack checks that unpack restores every packed envelope.
func FuzzPack(f *testing.F) {
	f.Add([]byte(`{"payload":"e30=","signatures":[]}`), []byte("{}"), 12)
	f.Fuzz(func(t *testing.T, body, payload []byte, at int) {
		checkUnpacked(t, pack(body, payload), body)
		if at >= 0 && at <= len(body) { // a body that contains the payload
			whole := append(append(bytes.Clone(body[:at]), base64.StdEncoding.EncodeToString(payload)...), body[at:]...)
			checkUnpacked(t, pack(whole, payload), whole)
		}
	})
}
