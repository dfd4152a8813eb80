// Package seen remembers the checkpoints of transparency logs that a person has verified, so
// that a log cannot show this person another history later.
package seen

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofrs/flock"

	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/ledger"
)

// The limits of a file, and of the part of its name that people can read.
const (
	maxFile = 4 << 20
	maxName = 80
)

// lockTimeout is how long to wait for another process, which only writes a file.
const lockTimeout = 10 * time.Second

// A Memory is a folder with what was seen of each log.
type Memory struct{ folder string }

// Folder returns the folder in which a person's programs keep their state: XDG_STATE_HOME, or
// ~/.local/state.
func Folder() (string, error) {
	if folder := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "ledgerd"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of what was seen before: %w (set XDG_STATE_HOME)", err)
	}
	return filepath.Join(home, ".local", "state", "ledgerd"), nil
}

// Open returns the memory in a folder, which need not exist.
func Open(folder string) *Memory { return &Memory{folder} }

// A Log is what was seen of a log.
type Log struct {
	Origin string `json:"origin"`
	// Key is the verifier key of the log.
	Key string `json:"key"`
	// Checkpoint is the largest signed checkpoint, and SeenAt the time at which it was first seen.
	Checkpoint string      `json:"checkpoint"`
	SeenAt     ledger.Time `json:"seen_at"`
}

// Checkpoint returns the signed checkpoint in a file: that of a file of a Memory, or else the whole
// text.
func Checkpoint(text []byte) []byte {
	var l Log
	if json.Unmarshal(text, &l) == nil && l.Checkpoint != "" {
		return []byte(l.Checkpoint)
	}
	return text
}

// A Place is where a log is served: an org of a server.
type Place struct {
	Server string `json:"server"`
	Org    string `json:"org"`
	// Origin is that of the log that was seen there.
	Origin string `json:"origin"`
}

// Log returns what was seen of a log, or a zero Log.
func (m *Memory) Log(origin string) (l Log, err error) {
	err = m.read(m.LogFile(origin), &l)
	if err == nil && l != (Log{}) && l.Origin != origin {
		err = fmt.Errorf("%s is about the log %s, not %s (delete the file)", m.LogFile(origin), l.Origin, origin)
	}
	return l, err
}

// Replace stores what was seen of a log, if what is stored is still what the caller knows. It
// reports whether it was.
func (m *Memory) Replace(ctx context.Context, known, l Log) (replaced bool, err error) {
	err = m.locked(ctx, m.LogFile(l.Origin), func(file string) error {
		now, err := m.Log(l.Origin)
		if err != nil || now != known {
			return err
		}
		replaced = true
		return m.write(file, l)
	})
	return replaced, err
}

// Place returns the log that was seen at an org of a server; its origin is empty if there was
// none.
func (m *Memory) Place(server, org string) (p Place, err error) {
	err = m.read(m.PlaceFile(server, org), &p)
	p.Server, p.Org = server, org
	return p, err
}

// SavePlace stores which log was seen at an org of a server.
func (m *Memory) SavePlace(ctx context.Context, p Place) error {
	return m.locked(ctx, m.PlaceFile(p.Server, p.Org), func(file string) error { return m.write(file, p) })
}

// LogFile returns the file with what was seen of a log.
func (m *Memory) LogFile(origin string) string { return m.file("logs", origin) }

// PlaceFile returns the file with which log was seen at an org of a server.
func (m *Memory) PlaceFile(server, org string) string { return m.file("servers", server+"/"+org) }

func (m *Memory) file(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(m.folder, kind, readable(name)+"-"+hex.EncodeToString(sum[:8])+".json")
}

// readable returns a name as a part of a file name.
func readable(name string) string {
	safe := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-", r) {
			return r
		}
		return '_'
	}
	return strings.TrimLeft(strings.Map(safe, name[:min(len(name), maxName)]), ".")
}

// read reads a file. It leaves v unchanged if the file does not exist.
func (m *Memory) read(name string, v any) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what was seen before: %w", err)
	}
	defer file.Close()

	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err == nil {
		err = json.Unmarshal(text, v, json.RejectUnknownMembers(true))
	}
	if err != nil {
		return fmt.Errorf("read what was seen before in %s: %w", name, err)
	}
	return nil
}

func (m *Memory) write(name string, v any) error {
	text, err := json.Marshal(v, jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("store what was seen: %w", err)
	}
	return writeFile(name, append(text, '\n'))
}

func writeFile(name string, text []byte) error {
	file, err := atomicfile.Create(name, 0o600)
	if err != nil {
		return fmt.Errorf("store what was seen: %w", err)
	}
	if err := file.Write(text); err != nil {
		return fmt.Errorf("store what was seen: %w", err)
	}
	return nil
}

// locked runs do while no other process changes the file.
func (m *Memory) locked(ctx context.Context, name string, do func(name string) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("store what was seen: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	lock := flock.New(name+".lock", flock.SetPermissions(0o600))
	if ok, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil || !ok {
		return fmt.Errorf("store what was seen: %s is locked by another process: %w", name, err)
	}
	return errors.Join(do(name), lock.Close())
}

// SaveEvidence stores files with what contradicts each other, except empty ones, and returns
// their paths. The names begin with the time.
func (m *Memory) SaveEvidence(now ledger.Time, origin string, files map[string][]byte) (paths []string, err error) {
	folder := filepath.Join(m.folder, "evidence")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("store the evidence: %w", err)
	}
	prefix := now.Std().Format("20060102T150405.000") + "-" + readable(origin) + "-"
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if len(files[name]) == 0 {
			continue
		}
		path := filepath.Join(folder, prefix+name)
		if err := writeFile(path, files[name]); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
