package transparency

import (
	"crypto/rand"
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

// Keys are the keys of the logs, and what this server has signed with them last. Neither must be
// in a backup of the database: the checkpoints show whether a database is older than what was
// signed.
type Keys struct {
	folder string // has the keys, and is only read if it has a seed
	state  string // has the last checkpoint of each log that was signed here, and the keys of receipts
	seed   seed   // nil if the folder has only keys
}

// OpenKeys opens the folder of the keys, and the folder of what this server signs last. If both
// are one, it is created if it does not exist. Otherwise the folder of the keys must exist, may
// be read-only, and is the same for all servers with one database; each of them has a state
// folder of its own, which is created.
func OpenKeys(folder, state string) (*Keys, error) {
	if err := os.Mkdir(state, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create %s: %w", stateSetting(folder, state), err)
	}
	if err := checkFolders(folder, state); err != nil {
		return nil, err
	}
	seed, err := readSeed(folder)
	if err != nil {
		return nil, err
	}
	if err := tryWrite(folder, state); err != nil {
		return nil, err
	}
	return &Keys{folder, state, seed}, atomicfile.SyncFolder(state)
}

// A LogName names the log of an org in an epoch.
type LogName struct {
	Org   string
	Epoch int
}

// file returns the name of a file of the log.
func (l LogName) file(kind string) string { return fmt.Sprintf("%s.%d.%s", l.Org, l.Epoch, kind) }

// keyFile returns the path of the key of a log.
func (k *Keys) keyFile(l LogName) string { return filepath.Join(k.folder, l.file("key")) }

// stateFile returns the path of a file with what was signed in a log, or with a key of receipts.
func (k *Keys) stateFile(l LogName, kind string) string { return filepath.Join(k.state, l.file(kind)) }

// Load reads the key of a log. If the log has no key file, the key is derived from the seed and
// the origin of the log. Without a seed, the error is fs.ErrNotExist.
func (k *Keys) Load(l LogName, origin string) (Key, error) {
	file := k.keyFile(l)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && k.seed != nil {
		return k.seed.key(origin)
	}
	if err == nil && k.folder != k.state {
		err = checkSecret(file)
	}
	if err != nil {
		return Key{}, fmt.Errorf("read the key of the log: %w", err)
	}
	key, err := parseKey(strings.TrimSpace(string(text)))
	if err != nil {
		return Key{}, fmt.Errorf("read the key of the log %s: %w", file, err)
	}
	return key, nil
}

// Create makes the key of a log, whose origin becomes the key's name.
func (k *Keys) Create(l LogName, origin string) (Key, error) {
	skey, _, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		return Key{}, fmt.Errorf("make the key of the log: %w", err)
	}
	if err := write(k.keyFile(l), []byte(skey+"\n")); err != nil {
		return Key{}, fmt.Errorf("write the key of the log: %w (make log.key_dir writable, or create a seed in it with "+
			"'ledgerd log new-seed')", err)
	}
	return k.Load(l, origin)
}

// signed returns the last checkpoint that a key signed, as it is on disk: nil if it signed none.
func (k *Keys) signed(l LogName) ([]byte, error) {
	signed, err := os.ReadFile(k.stateFile(l, "checkpoint"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the last checkpoint: %w", err)
	}
	return signed, nil
}

// LastCheckpoints returns the last signed checkpoints of all logs in a state folder, by file. A
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

// origin returns the origin of the last checkpoint of a log, or "" for a log that was never signed.
func (k *Keys) origin(l LogName) string {
	signed, err := k.signed(l)
	if err != nil {
		return ""
	}
	c, err := proof.ReadCheckpoint(signed)
	if err != nil {
		return ""
	}
	return c.Origin
}

// hasSigned reports whether there is a checkpoint of a log.
func (k *Keys) hasSigned(l LogName) bool {
	_, err := os.Lstat(k.stateFile(l, "checkpoint"))
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
		return nil, fmt.Errorf("read the last checkpoint %s: %w", k.stateFile(l, "checkpoint"), err)
	}
	return &c, nil
}

// SaveSigned writes a signed checkpoint to disk, before it is served.
func (k *Keys) SaveSigned(l LogName, signed []byte) error {
	if err := write(k.stateFile(l, "checkpoint"), signed); err != nil {
		return fmt.Errorf("write the last checkpoint: %w", err)
	}
	return nil
}

func write(name string, text []byte) error {
	file, err := atomicfile.Create(name, 0o600)
	if err != nil {
		return err
	}
	return file.Write(text)
}
