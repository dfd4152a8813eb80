package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

func TestLoadSecretKeys(t *testing.T) {
	const key = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n"
	folder := t.TempDir()
	file := filepath.Join(folder, "keys")
	for _, test := range []struct {
		name, path, text string
		mode             os.FileMode
		want             string // in the error
	}{
		{"no file is set", "", key, 0o600, ""},
		{"only this user has access", file, key, 0o600, ""},
		{"only this user may read it", file, key, 0o400, ""},
		{"its group may read it", file, key, 0o640, "others have access to " + file + " (run chmod 600"},
		{"everybody may write to it", file, key, 0o602, "others have access to " + file},
		{"it has no key", file, "", 0o600, file + ": it has no key"},
		{"PowerShell wrote it", file, "\ufeff" + strings.TrimSpace(key) + "\r\n", 0o600, ""},
		{"it is UTF-16", file, "\xff\xfeA\x00Q\x00", 0o600, "UTF-16"},
		{"it does not exist", file + "s", key, 0o600, file + "s"},
		{"it is a folder", folder, key, 0o600, folder + " is not a file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && test.mode&0o077 != 0 {
				t.Skip("permissions do not keep others out")
			}
			os.Remove(file)
			must.OK(t, os.WriteFile(file, []byte(test.text), 0o600))
			must.OK(t, os.Chmod(file, test.mode))

			s := Default()
			s.Webhooks.SecretsKey = test.path
			keys, err := s.Webhooks.LoadSecretKeys()
			if keys.Any() != (test.path != "" && test.want == "") {
				t.Errorf("there are keys: %t", keys.Any())
			}
			if test.want == "" && err == nil {
				return
			}
			if err == nil || !strings.Contains(err.Error(), "webhooks.secrets_key") ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one about webhooks.secrets_key: %s", err, test.want)
			}
			if err := s.CheckFiles(); err == nil {
				t.Error("config check finds nothing")
			}
		})
	}
}

func TestLoadProviders(t *testing.T) {
	const okta = "- {name: okta, issuer: https://acme.okta.com, client_id: a, client_secret: hunter2}\n"
	file := filepath.Join(t.TempDir(), "providers.yaml")
	for _, test := range []struct {
		name, base, path, text string
		mode                   os.FileMode
		want                   string // in the error
	}{
		{"no file is set", "", "", okta, 0o600, ""},
		{"only this user has access", "https://ledger.example.com/ledger", file, okta, 0o600, ""},
		{"this machine needs no TLS", "http://127.0.0.1:8080", file, okta, 0o600, ""},
		{"its group may read it", "https://ledger.example.com", file, okta, 0o640, "others have access to " + file},
		{"a file that all may read", "https://ledger.example.com", file, okta, 0o604, "others have access to " + file},
		{"it does not exist", "https://ledger.example.com", file + "s", okta, 0o600, file + "s"},
		{"an unknown key", "https://ledger.example.com", file, okta[:len(okta)-2] + ", secret: hunter2}", 0o600,
			file + ": line 1: unknown key \"secret\""},
		{"no base URL", "", file, okta, 0o600, "requires base_url"},
		{"a base URL without TLS", "http://ledger.example.com", file, okta, 0o600, "requires a base_url with https://"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && test.mode&0o077 != 0 {
				t.Skip("permissions do not keep others out")
			}
			os.Remove(file)
			must.OK(t, os.WriteFile(file, []byte(test.text), 0o600))
			must.OK(t, os.Chmod(file, test.mode))

			s := Default()
			s.BaseURL, s.SignIn.Providers = BaseURL(test.base), test.path
			providers, err := s.SignIn.LoadProviders(s.BaseURL)
			if test.want == "" {
				if err != nil || len(providers) != map[bool]int{true: 0, false: 1}[test.path == ""] {
					t.Errorf("got %v, %v", providers, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") ||
				!strings.Contains(err.Error(), "sign_in.providers") {
				t.Errorf("the error is %v, want one about sign_in.providers: %s", err, test.want)
			}
			if s.CheckFiles() == nil {
				t.Error("config check finds nothing")
			}
		})
	}
}
