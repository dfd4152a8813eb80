package service

import "testing"

func TestBrowserURL(t *testing.T) {
	for listening, want := range map[string]string{
		"http://[::]:8080":      "http://localhost:8080",
		"http://0.0.0.0:8080":   "http://localhost:8080",
		"http://127.0.0.1:8080": "http://127.0.0.1:8080",
		"http://[::1]:8080":     "http://[::1]:8080",
		"http://10.1.2.3:80":    "http://10.1.2.3:80",
	} {
		if got := browserURL(listening); got != want {
			t.Errorf("browserURL(%q) = %q, want %q", listening, got, want)
		}
	}
}
