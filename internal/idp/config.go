package idp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
)

// The limits of the file with the providers.
const (
	maxFile      = 64 << 10 // bytes
	maxProviders = 20
	maxText      = 1000 // bytes of a value
	maxLabel     = 50
	maxScopes    = 50
	maxOrgs      = 1000
)

// A Secret is a client secret. It is formatted as xxxxx.
type Secret string

// Format implements [fmt.Formatter] for all verbs.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "xxxxx") }

// MarshalText implements [encoding.TextMarshaler].
func (Secret) MarshalText() ([]byte, error) { return []byte("xxxxx"), nil }

// A Config is a provider in the file that the setting sign_in.providers names.
type Config struct {
	// Name is the name of the provider in paths.
	Name string
	// Label is the name of the provider for people; by default Name.
	Label string
	// Issuer is the URL of the provider, the claim iss of its tokens.
	Issuer string
	// ClientID and ClientSecret are the account of this server at the provider.
	ClientID     string
	ClientSecret Secret
	// Scopes are the scopes that the server requests; by default openid, profile and email.
	Scopes []string
	// Orgs are the names of the orgs that may use the provider, or [member.AnyOrg]. If it is nil, they are
	// those that used it when the host was upgraded.
	Orgs []string
}

// Orgs returns which orgs may use each provider.
func Orgs(configs []Config) member.Providers {
	if len(configs) == 0 {
		return nil
	}
	orgs := make(member.Providers)
	for _, c := range configs {
		orgs[c.Issuer] = c.Orgs
	}
	return orgs
}

// keys returns the keys of a provider in the file.
func keys() []string {
	return []string{"client_id", "client_secret", "issuer", "label", "name", "orgs", "scopes"}
}

// Read reads the providers of a file. Its errors contain no values of client_secret.
func Read(r io.Reader) ([]Config, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	list, err := document(text)
	if err != nil {
		return nil, err
	}
	if n := len(list.Content); n == 0 || n > maxProviders {
		return nil, fmt.Errorf("it has %d providers (use 1 to %d)", n, maxProviders)
	}

	var providers []Config
	for _, node := range list.Content {
		c, err := provider(node)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", node.Line, err)
		}
		if err := c.checkAgainst(providers); err != nil {
			return nil, fmt.Errorf("line %d: %w", node.Line, err)
		}
		providers = append(providers, c)
	}
	return providers, nil
}

// checkAgainst returns an error if another provider has the same name or issuer. Accounts are known by
// their issuer, so two providers with one would give the same accounts different claims.
func (c Config) checkAgainst(others []Config) error {
	for _, other := range others {
		switch {
		case other.Name == c.Name:
			return fmt.Errorf("another provider has the name %s", c.Name)
		case other.Issuer == c.Issuer:
			return fmt.Errorf("provider %s has the issuer %s, too", other.Name, c.Issuer)
		}
	}
	return nil
}

// document returns the list in a file of one YAML document.
func document(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	// Errors about the syntax are left out, because they can quote the text.
	if err := decoder.Decode(&first); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New("it is not valid YAML")
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is not a single valid YAML document")
	}
	if len(first.Content) != 1 || first.Content[0].Kind != yaml.SequenceNode {
		return nil, errors.New("it is not a list of providers (begin each with - name)")
	}
	return first.Content[0], nil
}

// provider returns the provider of a node.
func provider(node *yaml.Node) (c Config, err error) {
	if node.Kind != yaml.MappingNode {
		return c, fmt.Errorf("a provider has the keys %s", strings.Join(keys(), ", "))
	}
	seen := make(map[string]bool)
	for pair := range slices.Chunk(node.Content, 2) {
		key, value := pair[0].Value, pair[1]
		if seen[key] {
			return c, fmt.Errorf("duplicate key %s", key)
		}
		seen[key] = true
		if err := c.set(key, value); err != nil {
			return c, err
		}
	}
	c.Label = cmp.Or(c.Label, c.Name)
	if len(c.Scopes) == 0 {
		c.Scopes = []string{"openid", "profile", "email"}
	}
	return c, c.check()
}

// set sets the value of a key.
func (c *Config) set(key string, value *yaml.Node) (err error) {
	switch key {
	case "name":
		c.Name, err = scalar(key, value)
	case "label":
		c.Label, err = scalar(key, value)
	case "issuer":
		c.Issuer, err = scalar(key, value)
	case "client_id":
		c.ClientID, err = scalar(key, value)

	case "client_secret":
		var text string
		text, err = scalar(key, value)
		c.ClientSecret = Secret(text)
	case "scopes":
		c.Scopes, err = scalars(key, value, maxScopes)
	case "orgs":
		c.Orgs, err = scalars(key, value, maxOrgs)
	default:
		// If the space after the colon is missing, YAML takes the value as a part of the key.
		name, _, _ := strings.Cut(key, ":")
		return fmt.Errorf("unknown key %.40q (use %s)", name, strings.Join(keys(), ", "))
	}
	return err
}

// scalar returns a single value as text, whatever its YAML type.
func scalar(key string, value *yaml.Node) (string, error) {
	if value.Kind != yaml.ScalarNode || value.ShortTag() == "!!null" {
		return "", fmt.Errorf("%s must be a single value", key)
	}
	if len(value.Value) > maxText {
		return "", fmt.Errorf("%s has more than %d bytes", key, maxText)
	}
	return value.Value, nil
}

// scalars returns a list of at most limit values.
func scalars(key string, list *yaml.Node, limit int) ([]string, error) {
	if list.Kind != yaml.SequenceNode || len(list.Content) == 0 || len(list.Content) > limit {
		return nil, fmt.Errorf("%s must be a list of 1 to %d values", key, limit)
	}
	var values []string
	for _, item := range list.Content {
		value, err := scalar(key, item)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

var (
	validName  = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
	validScope = regexp.MustCompile(`^[!#-\[\]-~]{1,200}$`) // RFC 6749, 3.3
)

// check returns an error about the first key that is invalid.
func (c Config) check() error {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case c.Name == "":
		return errors.New("name is missing")
	case !validName.MatchString(c.Name):
		return fmt.Errorf("name %.40q: use 1 to 32 of a-z, 0-9 and -", c.Name)
	case len([]rune(c.Label)) > maxLabel || strings.ContainsFunc(c.Label, unprintable):
		return fmt.Errorf("label of %s: use at most %d printable characters", c.Name, maxLabel)

	case c.Issuer == "":
		return fmt.Errorf("issuer of %s is missing", c.Name)
	case c.ClientID == "" || strings.ContainsFunc(c.ClientID, unprintable):
		return fmt.Errorf("client_id of %s: use the ID of this server's client at the provider", c.Name)
	case c.ClientSecret == "" || strings.ContainsFunc(string(c.ClientSecret), unprintable):
		return fmt.Errorf("client_secret of %s: use the secret of this server's client at the provider", c.Name)
	case !slices.Contains(c.Scopes, "openid"):
		return fmt.Errorf("scopes of %s lack openid", c.Name)
	}

	for _, scope := range c.Scopes {
		if !validScope.MatchString(scope) {
			return fmt.Errorf("scopes of %s: %.40q is not a scope", c.Name, scope)
		}
	}
	if err := member.CheckIssuer(c.Issuer); err != nil {
		return fmt.Errorf("issuer of %s: %w", c.Name, err)
	}
	for _, org := range c.Orgs {
		if ledger.CheckOrg(org) != nil && !(org == member.AnyOrg && len(c.Orgs) == 1) {
			return fmt.Errorf("orgs of %s: %.40q is not the name of an org (use names, or only %q for all orgs)", c.Name, org,
				member.AnyOrg)
		}
	}
	return nil
}
