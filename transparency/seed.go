package transparency

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/internal/atomicfile"
)

const (
	seedFile = "seed"
	seedSize = 32
	// keyPurpose begins what a key is derived for. With another one, all logs would have other keys.
	keyPurpose = "ledgerd/log-key/v1\x00"
	// ed25519Key is the type of a key in a note.
	ed25519Key = 1
)

// A seed gives the keys of logs that have no key file. So all servers with one database have the
// keys of new orgs, without writing to the folder of the keys.
type seed []byte

// readSeed reads the seed in a folder of keys. It returns nil if the folder has only keys.
func readSeed(folder string) (seed, error) {
	name := filepath.Join(folder, seedFile)
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := checkSecret(name); err != nil {
		return nil, fmt.Errorf("read the seed of the log keys: %w", err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the seed of the log keys: %w", err)
	}

	line := strings.TrimSpace(string(text))
	s, err := base64.StdEncoding.Strict().DecodeString(line)
	if err != nil || len(s) != seedSize || strings.ContainsAny(line, "\r\n") {
		return nil, fmt.Errorf("the seed of the log keys %s is damaged: want %d bytes in base64 on one line (bring the "+
			"file back; for a new ledger, remove it and run 'ledgerd log new-seed')", name, seedSize)
	}
	return s, nil
}

// HasSeed reports whether a folder of keys has a seed.
func HasSeed(folder string) (bool, error) {
	if err := checkKeyDir(folder); err != nil {
		return false, err
	}
	s, err := readSeed(folder)
	return s != nil, err
}

// key derives the key of the log with an origin, which names its org and epoch, too.
func (s seed) key(origin string) (Key, error) {
	fail := func(err error) (Key, error) { return Key{}, fmt.Errorf("derive the key of the log: %w", err) }
	material, err := hkdf.Key(sha256.New, s, nil, keyPurpose+origin, ed25519.SeedSize)
	if err != nil {
		return fail(err)
	}
	public := ed25519.NewKeyFromSeed(material).Public().(ed25519.PublicKey)
	vkey, err := note.NewEd25519VerifierKey(origin, public)
	if err != nil {
		return fail(err)
	}

	id, _, _ := strings.Cut(strings.TrimPrefix(vkey, origin+"+"), "+")
	secret := base64.StdEncoding.EncodeToString(append([]byte{ed25519Key}, material...))
	key, err := parseKey(fmt.Sprintf("PRIVATE+KEY+%s+%s+%s", origin, id, secret))
	if err != nil {
		return fail(err)
	}
	key.derived = true
	return key, nil
}

// CreateSeed creates a seed in a folder of keys, and returns the name of its file. The folder is
// created if it does not exist. A seed that exists is not replaced.
func CreateSeed(folder string) (name string, err error) {
	fail := func(err error) (string, error) { return "", fmt.Errorf("create the seed of the log keys: %w", err) }
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fail(err)
	}
	if err := CheckFolder("log.key_dir", folder); err != nil {
		return fail(err)
	}

	name = filepath.Join(folder, seedFile)
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%s exists: the keys of logs are derived from it (if it was stolen, see docs/proof.md, 'Keys')",
			name)
	}
	if err != nil {
		return fail(err)
	}
	s := make(seed, seedSize)
	rand.Read(s) // never returns an error
	_, err = file.WriteString(base64.StdEncoding.EncodeToString(s) + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fail(errors.Join(err, os.Remove(name)))
	}
	return name, atomicfile.SyncFolder(name)
}
