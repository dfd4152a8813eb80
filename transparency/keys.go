package transparency

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// Keys is the folder with the keys of the logs, and next to each the last checkpoint that
// it signed. It must not be in a backup of the database: the checkpoints show whether a
// database is older than what was signed.
type Keys struct{ folder string }

// OpenKeys opens the folder of the keys, and creates it if it does not exist. Others must
// not have access to it.
func OpenKeys(folder string) (*Keys, error) {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create the folder of the log keys: %w", err)
	}
	if err := CheckFolder(folder); err != nil {
		return nil, err
	}
	return &Keys{folder}, atomicfile.SyncFolder(folder)
}

// CheckFolder returns an error if a folder cannot have the keys: it is no folder, or others have
// access to it. If there is none, the error is an fs.ErrNotExist.
func CheckFolder(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("open the folder of the log keys: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("log.key_dir %s is not a folder", folder)
	}
	if info.Mode().Perm()&0o077 != 0 && enforcesModes {
		return fmt.Errorf("others have access to the log keys in %s (run chmod 700 %s)", folder, folder)
	}
	return nil
}

// A LogName names the log of an org in an epoch.
type LogName struct {
	Org   string
	Epoch int
}

// file returns the path of a file of the log.
func (k *Keys) file(l LogName, kind string) string {
	return filepath.Join(k.folder, fmt.Sprintf("%s.%d.%s", l.Org, l.Epoch, kind))
}

// A Key is the key of a log.
type Key struct {
	note.Signer
	Verifier note.Verifier
	VKey     string // the verifier key as text
}

// publicKey returns the key as a DER SubjectPublicKeyInfo.
func (k Key) publicKey() ([]byte, error) {
	_, encoded, _ := strings.Cut(strings.TrimPrefix(k.VKey, k.Name()+"+"), "+")
	public, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(public) != 1+ed25519.PublicKeySize {
		return nil, fmt.Errorf("%s is not an Ed25519 key", k.VKey)
	}
	return x509.MarshalPKIXPublicKey(ed25519.PublicKey(public[1:]))
}

// Load reads the key of a log. Without a file, the error is fs.ErrNotExist.
func (k *Keys) Load(l LogName) (Key, error) {
	text, err := os.ReadFile(k.file(l, "key"))
	if err != nil {
		return Key{}, fmt.Errorf("read the key of the log: %w", err)
	}
	signer, err := note.NewSigner(strings.TrimSpace(string(text)))
	if err != nil {
		return Key{}, fmt.Errorf("read the key of the log %s: %w", k.file(l, "key"), err)
	}
	vkey, err := verifierKey(strings.TrimSpace(string(text)))
	if err != nil {
		return Key{}, fmt.Errorf("read the key of the log %s: %w", k.file(l, "key"), err)
	}
	verifier, err := note.NewVerifier(vkey)
	return Key{Signer: signer, Verifier: verifier, VKey: vkey}, err
}

// Create makes the key of a log, whose origin becomes the key's name.
func (k *Keys) Create(l LogName, origin string) (Key, error) {
	skey, _, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		return Key{}, fmt.Errorf("make the key of the log: %w", err)
	}
	if err := k.write(l, "key", []byte(skey+"\n")); err != nil {
		return Key{}, fmt.Errorf("write the key of the log: %w", err)
	}
	return k.Load(l)
}

// signed returns the last checkpoint that a key signed, as it is on disk: nil if it signed none.
func (k *Keys) signed(l LogName) ([]byte, error) {
	signed, err := os.ReadFile(k.file(l, "checkpoint"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the last checkpoint: %w", err)
	}
	return signed, nil
}

// LastCheckpoints returns the last signed checkpoints of all logs in a folder of keys, by file. A
// folder that does not exist has none.
func LastCheckpoints(folder string) (map[string][]byte, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the last checkpoints: %w", err)
	}
	list := make(map[string][]byte)
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".checkpoint" {
			continue
		}
		file := filepath.Join(folder, entry.Name())
		if list[file], err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("read the last checkpoint: %w", err)
		}
	}
	return list, nil
}

// hasSigned reports whether there is a checkpoint of a log.
func (k *Keys) hasSigned(l LogName) bool {
	_, err := os.Lstat(k.file(l, "checkpoint"))
	return err == nil
}

// LastSigned returns the last checkpoint that a key signed, or nil if it signed none.
func (k *Keys) LastSigned(l LogName, key Key) (*proof.Checkpoint, error) {
	signed, err := k.signed(l)
	if signed == nil || err != nil {
		return nil, err
	}
	c, err := proof.OpenCheckpoint(signed, key.Verifier)
	if err != nil {
		return nil, fmt.Errorf("read the last checkpoint %s: %w", k.file(l, "checkpoint"), err)
	}
	return &c, nil
}

// SaveSigned writes a signed checkpoint to disk, before it is served.
func (k *Keys) SaveSigned(l LogName, signed []byte) error {
	if err := k.write(l, "checkpoint", signed); err != nil {
		return fmt.Errorf("write the last checkpoint: %w", err)
	}
	return nil
}

func (k *Keys) write(l LogName, kind string, text []byte) error {
	file, err := atomicfile.Create(k.file(l, kind), 0o600)
	if err != nil {
		return err
	}
	return file.Write(text)
}

// verifierKey returns the verifier key of a signer key of a note, which is an Ed25519 key.
func verifierKey(skey string) (string, error) {
	parts := strings.SplitN(skey, "+", 5)
	if len(parts) != 5 {
		return "", errors.New("it is not a signer key of a note")
	}
	seed, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return "", errors.New("it is not an Ed25519 signer key of a note")
	}
	public := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	return note.NewEd25519VerifierKey(parts[2], public)
}
