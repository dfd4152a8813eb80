// Package contexts stores which servers a person has logged in to, with their tokens, in
// a file that only this person can read.
package contexts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/internal/atomicfile"
)

// Limits of the file.
const (
	MaxContexts = 100
	maxBytes    = 1 << 20
)

// A Context is a server that a person has logged in to.
type Context struct {
	Name    string `json:"name" yaml:"name"`
	Server  string `json:"server" yaml:"server"` // in canonical form
	Org     string `json:"org" yaml:"org"`       // org of the token
	TokenID string `json:"token_id" yaml:"token_id"`
	Token   string `json:"-" yaml:"token"`
}

// A List is the content of the file. At most one context is the current one.
type List struct {
	Current  string    `yaml:"current"`
	Contexts []Context `yaml:"contexts"`
}

// Path returns the path of the file in the user's configuration folder. It is an error
// if the user has none, as some services.
func Path() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "ledgerd", "contexts.yaml"), nil
}

// Load reads the file. A missing file is an empty list. Load refuses a file that
// others can read.
func Load() (List, error) {
	path, err := Path()
	if err != nil {
		return List{}, nil // without such a folder, nobody has logged in
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return List{}, nil
	}
	if err != nil {
		return List{}, fmt.Errorf("read the contexts: %w", err)
	}
	defer f.Close()

	if err := checkPrivate(f, path); err != nil {
		return List{}, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return List{}, fmt.Errorf("read the contexts: %w", err)
	}
	return parse(text, path)
}

// checkPrivate reports if others can read or write the file.
func checkPrivate(f *os.File, path string) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("read the contexts: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return fmt.Errorf("other users have access to %s, which has tokens: run 'chmod 600 %s', and replace the tokens if "+
			"somebody may have read them", path, path)
	}
	return nil
}

// parse reads the content of the file. Its errors do not cite it, since it has tokens.
func parse(text []byte, path string) (List, error) {
	invalid := fmt.Errorf("%s is not valid: correct or delete it, then run 'ledgerd login'", path)
	if len(text) > maxBytes {
		return List{}, invalid
	}
	var l List
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&l); err != nil && !errors.Is(err, io.EOF) {
		return List{}, invalid
	}

	for i, c := range l.Contexts {
		server, err := Canonical(c.Server)
		if err != nil || server != c.Server || c.Token == "" || l.index(c.Name) != i || CheckName(c.Name) != nil {
			return List{}, invalid
		}
	}
	if len(l.Contexts) > MaxContexts || l.Current != "" && l.index(l.Current) < 0 {
		return List{}, invalid
	}
	return l, nil
}

// Save writes the file, and creates its folder.
func (l List) Save() error {
	path, err := Path()
	if err != nil {
		return fmt.Errorf("store the context: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("store the context: %w", err)
	}
	text, err := yaml.Marshal(l)
	if err != nil {
		return fmt.Errorf("store the context: %w", err)
	}
	f, err := atomicfile.Create(path, 0o600)
	if err != nil {
		return fmt.Errorf("store the context: %w", err)
	}
	return f.Write(text)
}

// index returns the position of a context in the list, or -1.
func (l List) index(name string) int {
	return slices.IndexFunc(l.Contexts, func(c Context) bool { return c.Name == name })
}

// Find returns the context of a name.
func (l List) Find(name string) (Context, bool) {
	i := l.index(name)
	if i < 0 {
		return Context{}, false
	}
	return l.Contexts[i], true
}

// Put adds a context, or replaces the one of its name, and makes it the current one. A
// context of the same name must have the same server.
func (l *List) Put(c Context) error {
	l.Current = c.Name
	i := l.index(c.Name)
	switch {
	case i >= 0 && l.Contexts[i].Server != c.Server:
		return fmt.Errorf("the context %q is of the server %s: choose another name", c.Name, l.Contexts[i].Server)
	case i >= 0:
		l.Contexts[i] = c
	case len(l.Contexts) == MaxContexts:
		return fmt.Errorf("there are %d contexts, the most that are possible: remove one with 'ledgerd context remove'",
			MaxContexts)
	default:
		l.Contexts = append(l.Contexts, c)
	}
	return nil
}

// Remove removes a context. If it was the current one, none is.
func (l *List) Remove(name string) {
	l.Contexts = slices.DeleteFunc(l.Contexts, func(c Context) bool { return c.Name == name })
	if l.Current == name {
		l.Current = ""
	}
}

// ForServer returns the context of exactly this server. Of several, that is the current
// one, or else the only one of the org. It reports whether there is one.
func (l List) ForServer(server, org string) (Context, bool, error) {
	canonical, err := Canonical(server)
	if err != nil {
		return Context{}, false, nil // it can be nobody's
	}

	var all, ofOrg []Context
	for _, c := range l.Contexts {
		if c.Server != canonical {
			continue
		}
		if c.Name == l.Current && (org == "" || c.Org == org) {
			return c, true, nil
		}
		all = append(all, c)
		if c.Org == org {
			ofOrg = append(ofOrg, c)
		}
	}
	if len(ofOrg) > 0 {
		all = ofOrg
	}

	switch len(all) {
	case 0:
		return Context{}, false, nil
	case 1:
		return all[0], true, nil
	}
	return Context{}, false, fmt.Errorf("%d contexts are of the server %s: choose one with 'ledgerd context use'",
		len(all), canonical)
}

// Canonical returns the canonical form of a server's URL. It refuses one with a password,
// which would be stored and shown.
func Canonical(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "" {
		return "", errors.New("invalid server URL: it begins with https:// or http://, such as https://ledger.example")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("invalid server URL: remove user name, password, query and fragment")
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if port == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		port = ""
	}
	if port != "" {
		host = net.JoinHostPort(host, port)
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	u.Host = host
	return strings.TrimRight(u.String(), "/"), nil
}

// CheckName returns an error if a context may not have the name.
func CheckName(name string) error {
	if name == "" || len(name) > 300 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("invalid context name %q: use 1 to 300 letters, digits and punctuation", name)
	}
	return nil
}
