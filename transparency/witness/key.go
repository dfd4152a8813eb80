package witness

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/store"
)

// A keyFolder is the folder with the key of the witness, in witness.key, and with what was
// cosigned with it, in witness.state. Neither is ever in the database or its backup.
type keyFolder string

func (f keyFolder) file(name string) string { return filepath.Join(string(f), "witness."+name) }

// A signingKey is the key of a witness.
type signingKey struct {
	note.Signer
	public trustpolicy.Key
}

// load reads the key. Without a file, the error is fs.ErrNotExist.
func (f keyFolder) load() (signingKey, error) {
	text, err := os.ReadFile(f.file("key"))
	if err != nil {
		return signingKey{}, fmt.Errorf("read the key of the witness: %w", err)
	}
	key, err := parseSigningKey(strings.TrimSpace(string(text)))
	if err != nil {
		return signingKey{}, fmt.Errorf("read the key of the witness %s: %w", f.file("key"), err)
	}
	return key, nil
}

// parseSigningKey parses a key in the form of signer keys of notes.
func parseSigningKey(skey string) (signingKey, error) {
	parts := strings.SplitN(skey, "+", 5)
	if len(parts) != 5 {
		return signingKey{}, errors.New("it is not a signer key of a note")
	}
	material, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(material) != 1+ed25519.SeedSize || material[0] != trustpolicy.CosignedV1 {
		return signingKey{}, errors.New("it is not an Ed25519 key for cosignatures")
	}
	signer, err := formats.NewSignerForCosignatureV1(skey)
	if err != nil {
		return signingKey{}, err
	}
	public := ed25519.NewKeyFromSeed(material[1:]).Public().(ed25519.PublicKey)
	return signingKey{signer, trustpolicy.NewKey(parts[2], trustpolicy.CosignedV1, public)}, nil
}

// create makes a new key. A key that exists is renamed, and never used again. The state comes
// first: a new key without it would be taken for one whose state was lost.
func (f keyFolder) create(name string) (signingKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return signingKey{}, fmt.Errorf("make the key of the witness: %w", err)
	}

	public := trustpolicy.NewKey(name, trustpolicy.CosignedV1, private.Public().(ed25519.PublicKey))
	if _, err := trustpolicy.ParseKey(public.String(), trustpolicy.CosignedV1); err != nil {
		return signingKey{}, fmt.Errorf("invalid witness.name: %w", err)
	}
	if err := f.retire(); err != nil {
		return signingKey{}, err
	}
	if err := f.writeState(state{isNew: true}); err != nil {
		return signingKey{}, err
	}

	material := append([]byte{trustpolicy.CosignedV1}, private.Seed()...)
	skey := fmt.Sprintf("PRIVATE+KEY+%s+%08x+%s\n", name, public.ID, base64.StdEncoding.EncodeToString(material))
	if err := f.write("key", skey); err != nil {
		return signingKey{}, fmt.Errorf("write the key of the witness: %w", err)
	}
	return f.load()
}

// retire renames the key, if there is one.
func (f keyFolder) retire() error {
	name := "unreadable"
	if key, err := f.load(); err == nil {
		name = fmt.Sprintf("%08x", key.public.ID)
	}
	err := os.Rename(f.file("key"), f.file(name+".retired"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("retire the key of the witness: %w", err)
	}
	return nil
}

// A state is what was cosigned with the key. A new key has cosigned nothing.
type state struct {
	isNew bool
	mark  store.WitnessMark // without Previous
}

const stateHeader = "ledgerd witness state 1"

// loadState reads the state. Without a file, the error is fs.ErrNotExist.
func (f keyFolder) loadState() (s state, err error) {
	text, err := os.ReadFile(f.file("state"))
	if err != nil {
		return s, fmt.Errorf("read the state of the witness: %w", err)
	}
	if string(text) == formatState(state{isNew: true}) {
		return state{isNew: true}, nil
	}
	var digest string
	_, err = fmt.Sscanf(string(text), stateHeader+"\n%d %s\n", &s.mark.Seq, &digest)
	if raw, decodeErr := hex.DecodeString(digest); err == nil && decodeErr == nil && len(raw) == len(s.mark.Digest) {
		copy(s.mark.Digest[:], raw)
	}
	if formatState(s) != string(text) {
		return s, fmt.Errorf("read the state of the witness: %s is damaged", f.file("state"))
	}
	return s, nil
}

// writeState writes the state to disk.
func (f keyFolder) writeState(s state) error {
	if err := f.write("state", formatState(s)); err != nil {
		return fmt.Errorf("write the state of the witness: %w", err)
	}
	return nil
}

func formatState(s state) string {
	if s.isNew {
		return stateHeader + "\nnew\n"
	}
	return fmt.Sprintf("%s\n%d %x\n", stateHeader, s.mark.Seq, s.mark.Digest)
}

func (f keyFolder) write(name, text string) error {
	file, err := atomicfile.Create(f.file(name), 0o600)
	if err != nil {
		return err
	}
	return file.Write([]byte(text))
}

// NewKey makes a new key for the witness of a server that does not run, and returns its
// verifier key. The key before it is renamed.
func NewKey(folder, name string) (trustpolicy.Key, error) {
	key, err := keyFolder(folder).create(name)
	return key.public, err
}

// Key returns the verifier key of the witness. Without a file, the error is
// fs.ErrNotExist.
func Key(folder string) (trustpolicy.Key, error) {
	key, err := keyFolder(folder).load()
	return key.public, err
}
