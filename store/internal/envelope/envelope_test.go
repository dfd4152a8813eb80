package envelope

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
			p := Pack([]byte(test.body), payload)
			if packed := p.PayloadAt != nil; packed != test.packed {
				t.Errorf("packed is %t, want %t", packed, test.packed)
			}
			checkUnpacked(t, p, []byte(test.body))
		})
	}
}

func checkUnpacked(t *testing.T, p Packed, body []byte) {
	t.Helper()
	if p.PayloadAt == nil {
		if !bytes.Equal(p.Body, body) {
			t.Errorf("body is stored as %q, want %q", p.Body, body)
		}
		return
	}
	if got := Unpack(p.Body, p.Payload.([]byte), int(p.PayloadAt.(int64))); !bytes.Equal(got, body) {
		t.Errorf("Unpack returned %q, want %q", got, body)
	}
	if p.Body == nil {
		t.Error("packed body is nil")
	}
}

// FuzzPack checks that Unpack restores every packed envelope.
func FuzzPack(f *testing.F) {
	f.Add([]byte(`{"payload":"e30=","signatures":[]}`), []byte("{}"), 12)
	f.Fuzz(func(t *testing.T, body, payload []byte, at int) {
		checkUnpacked(t, Pack(body, payload), body)
		if at >= 0 && at <= len(body) { // a body that contains the payload
			whole := append(append(bytes.Clone(body[:at]), base64.StdEncoding.EncodeToString(payload)...), body[at:]...)
			checkUnpacked(t, Pack(whole, payload), whole)
		}
	})
}
