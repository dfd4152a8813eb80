package service

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/backup"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/store"
)

// newBackups returns what writes backups of a database at intervals, or nil if backup.folder is
// not set.
func newBackups(s config.Settings, db *store.Store, log *slog.Logger) (*backup.Schedule, error) {
	if s.Backup.Folder == "" {
		return nil, nil
	}
	if info, err := os.Stat(s.Backup.Folder); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("backup.folder %s is not a folder (create it, readable by the server only)", s.Backup.Folder)
	}
	name := filepath.Base(string(s.Database))
	return &backup.Schedule{
		Write:  db.Backup,
		Folder: s.Backup.Folder,
		Name:   strings.TrimSuffix(name, filepath.Ext(name)),
		Every:  time.Duration(s.Backup.Every),
		Keep:   s.Backup.Keep,
		Now:    func() time.Time { return db.Now().Std() },
		Log:    log,
	}, nil
}
