package dispatch

import (
	"strings"
	"testing"
)

func TestResponsesThatRepeatTheAuthorizationHeader(t *testing.T) {
	for _, test := range []struct{ header, body, want string }{
		{"Bearer gateway-key", "got Bearer gateway-key", "got ********"},
		{"Bearer gateway-key", "got gateway-key, gateway-key", "got ********, ********"},
		{"key-without-a-scheme", "got key-without-a-scheme", "got ********"},
		{"Bearer a", "banana, Bearer a", "banana, ********"},
		{"a", "banana", "banana"},
		{"", "banana", "banana"},
	} {
		r := response{location: test.body}
		r.Body, r.Headers = test.body, map[string][]string{"X-Echo": {test.body}}
		r.mask(test.header)
		if r.Body != test.want || r.location != test.want || r.Headers["X-Echo"][0] != test.want {
			t.Errorf("%s: got %+v, want %s", test.header, r, test.want)
		}
	}

	r := response{}
	r.Body = strings.Repeat("a", maxStoredBody)
	if r.mask("Bearer a"); len(r.Body) > maxStoredBody {
		t.Errorf("the body has grown to %d bytes", len(r.Body))
	}
}
