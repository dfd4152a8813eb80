package cmd

import "testing"

// The printed link works also where the server listens on every address.
func TestVisitURL(t *testing.T) {
	for listening, want := range map[string]string{
		"http://[::]:8080":      "http://localhost:8080",
		"http://0.0.0.0:8080":   "http://localhost:8080",
		"http://127.0.0.1:8080": "http://127.0.0.1:8080",
		"http://[::1]:8080":     "http://[::1]:8080",
		"http://10.1.2.3:80":    "http://10.1.2.3:80",
	} {
		if got := visitURL(listening); got != want {
			t.Errorf("%s: %s, want %s", listening, got, want)
		}
	}
}
