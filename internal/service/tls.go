package service

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/ledgerd/ledgerd/internal/config"
)

// newTLS returns the configuration of encrypted connections, or nil if they are plain.
func newTLS(s config.TLS, folder string, log *slog.Logger) (*tls.Config, error) {
	switch {
	case len(s.Domains) > 0:
		return newACME(s, folder).TLSConfig(), nil
	case s.Cert == "":
		return nil, nil
	}

	files := &certificateFiles{cert: s.Cert, key: s.Key, log: log}
	if err := files.load(); err != nil {
		return nil, err
	}
	return &tls.Config{GetCertificate: files.get}, nil
}

// newACME returns what fetches certificates by ACME with the challenge tls-alpn-01 (RFC 8737),
// and renews them 30 days before they expire.
func newACME(s config.TLS, folder string) *autocert.Manager {
	m := &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		Cache:      autocert.DirCache(folder),
		HostPolicy: autocert.HostWhitelist(s.Domains...),
	}
	if s.Directory != "" {
		m.Client = &acme.Client{DirectoryURL: s.Directory}
	}
	return m
}

// recheckFiles is how long a certificate is used without a look at its files.
const recheckFiles = time.Second

// certificateFiles is a certificate with its key in two files, which may be replaced at any
// time. While they cannot be read or do not fit, the last ones that did are used.
type certificateFiles struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	loaded  *tls.Certificate
	version [2]fileVersion // of the files that were read last, even in vain
	checked time.Time
}

// A fileVersion changes with the content of a file.
type fileVersion struct {
	changed time.Time
	size    int64
}

// get is the GetCertificate of a tls.Config.
func (f *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checked) < recheckFiles {
		return f.loaded, nil
	}
	switch changed, err := f.reload(); {
	case err != nil:
		f.log.Error("the TLS certificate is not replaced", "error", err)
	case changed:
		f.log.Info("the TLS certificate is replaced", "expires", f.loaded.Leaf.NotAfter)
	}
	return f.loaded, nil
}

// load reads the files for the first time.
func (f *certificateFiles) load() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.reload()
	return err
}

// reload reads the files if they have changed. The caller holds f.mu.
func (f *certificateFiles) reload() (changed bool, err error) {
	f.checked = time.Now()
	certVersion, err := versionOf(f.cert)
	keyVersion, keyErr := versionOf(f.key)
	if err := errors.Join(err, keyErr); err != nil {
		return false, fmt.Errorf("read tls.cert and tls.key: %w", err)
	}
	version := [2]fileVersion{certVersion, keyVersion}
	if version == f.version {
		return false, nil
	}

	f.version = version
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return false, fmt.Errorf("read tls.cert and tls.key: %w", err)
	}
	f.loaded = &pair
	return true, nil
}

// versionOf returns the version of a file.
func versionOf(path string) (fileVersion, error) {
	info, err := os.Stat(path)
	if err != nil {
		return fileVersion{}, err
	}
	return fileVersion{info.ModTime(), info.Size()}, nil
}
