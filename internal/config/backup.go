package config

import "time"

// Backup holds the settings of the backups that the server writes.
type Backup struct {
	// Folder has the backups. If it is empty, the server writes none.
	Folder string   `mapstructure:"folder" yaml:"folder"`
	Every  duration `mapstructure:"every" yaml:"every"`
	Keep   int      `mapstructure:"keep" yaml:"keep"`
}

func defaultBackup() Backup { return Backup{Every: duration(6 * time.Hour), Keep: 14} }

// check calls invalid for each setting that is invalid.
func (b Backup) check(invalid func(key, format string, args ...any)) {
	if b.Every < duration(time.Minute) || b.Every > duration(365*day) {
		invalid("backup.every", "%v is out of range (use 1m to 365d)", b.Every)
	}
	if b.Keep < 1 || b.Keep > 10000 {
		invalid("backup.keep", "%d is out of range (use 1 to 10000)", b.Keep)
	}
}
