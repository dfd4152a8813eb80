package transparency

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store"
)

// An Exported says which log was exported.
type Exported struct {
	Org    string `json:"org"`
	Epoch  int    `json:"epoch"`
	Origin string `json:"origin"`
	Key    string `json:"key"` // as a verifier key of a signed note
	Size   int64  `json:"size"`
	Files  int    `json:"files"` // that were written
}

// An Export writes a log as files that any web server can serve (C2SP tlog-tiles). It can be
// repeated: then it adds what is new. The checkpoint is written last, so the folder always has a
// whole log, also if the export is interrupted.
type Export struct {
	Store *store.Store
	Org   string
	Epoch int // 0 for the present one
	// Folder is created if it does not exist. It must be empty, or have an earlier export.
	Folder string
	// Progress, if not nil, is called as leaves are written.
	Progress func(done, total int64)
}

// Run writes the files.
func (e Export) Run(ctx context.Context) (done Exported, err error) {
	l, err := e.Store.Log(ctx, e.Org, e.Epoch)
	if err != nil {
		return done, err
	}
	if l.Size == 0 {
		return done, fmt.Errorf("the log of %s has no checkpoint yet: the server signs one if base_url is set", l.Org)
	}
	done = Exported{Org: l.Org, Epoch: l.Epoch, Origin: l.Origin, Key: l.VKey, Size: l.Size}
	if err := e.extends(ctx, l); err != nil {
		return done, err
	}

	for level := proof.Entries; level <= 0 || l.Size>>(level*proof.TileHeight) > 0; level++ {
		for n := int64(0); ; n++ {
			tile := proof.Tile{Level: level, N: n}
			if tile.Width = tile.WidthIn(l.Size); tile.Width == 0 {
				break
			}
			content, err := e.Store.Tile(ctx, l, tile)
			if err != nil {
				return done, err
			}
			if err := e.write("tile/"+tile.Path(), content, &done.Files); err != nil {
				return done, err
			}
			if level == proof.Entries && e.Progress != nil {
				e.Progress(n*proof.TileWidth+int64(tile.Width), l.Size)
			}
		}
	}
	return done, e.write("checkpoint", l.Checkpoint, &done.Files)
}

// extends checks that the folder has nothing, or an earlier export of the log.
func (e Export) extends(ctx context.Context, l store.Log) error {
	name := filepath.Join(e.Folder, "checkpoint")
	signed, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return e.isFree()
	}
	if err != nil {
		return fmt.Errorf("read the earlier export: %w", err)
	}
	before, err := proof.ReadCheckpoint(signed)
	if err != nil {
		return fmt.Errorf("read the earlier export %s: %w", name, err)
	}
	if before.Origin != l.Origin {
		return fmt.Errorf("the folder %s has the log %s, not %s (use another folder)", e.Folder, before.Origin, l.Origin)
	}

	now, err := proof.ReadCheckpoint(l.Checkpoint)
	if err != nil {
		return fmt.Errorf("read the checkpoint of the log of %s: %w", l.Org, err)
	}
	tiles := verify.NewTiles(func(path string) ([]byte, error) {
		tile, err := proof.ParseTile(path[len("tile/"):])
		if err != nil {
			return nil, err
		}
		return e.Store.Tile(ctx, l, tile)
	})
	if err := verify.Extends(before, now, tiles); err != nil {
		return fmt.Errorf("the log is not the one in the folder %s: %w", e.Folder, err)
	}
	return nil
}

// isFree checks that the folder has no files but tiles, which an interrupted export has left.
func (e Export) isFree() error {
	entries, err := os.ReadDir(e.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the folder: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() != "tile" {
			return fmt.Errorf("the folder %s has other files, such as %s (use an empty folder)", e.Folder, entry.Name())
		}
	}
	return nil
}

// write writes a file unless it is there already, and counts it.
func (e Export) write(path string, content []byte, files *int) error {
	name := filepath.Join(e.Folder, filepath.FromSlash(path))
	if there, err := os.ReadFile(name); err == nil && bytes.Equal(there, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	file, err := atomicfile.Create(name, 0o644)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if err := file.Write(content); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	*files++
	return nil
}
