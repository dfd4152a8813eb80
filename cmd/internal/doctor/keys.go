package doctor

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/transparency"
)

// keys examines the folder of what the server signs last, and that of the keys of the logs.
func (e *examination) keys() {
	const check = "keys"
	folder, setting := e.settings.StateDir(), "log.key_dir"
	isApart := folder != e.settings.KeyDir()
	if isApart {
		setting = "log.state_dir"
	}

	err := transparency.CheckFolder(setting, folder)
	exists := !errors.Is(err, fs.ErrNotExist)
	switch {
	case !exists:
		err = tryFolder(filepath.Dir(folder))
	case err == nil:
		err = tryFolder(folder)
	}
	switch {
	case err != nil:
		e.add(check, Problem, "%v", err)
	case !exists:
		e.add(check, OK, "%s does not exist yet: serve creates it", folder)
	default:
		e.add(check, OK, "only this user has access to %s", folder)
	}
	if exists || isApart {
		e.seed()
	}
}

// seed examines whether logs of new orgs get a key that all servers with the database have.
func (e *examination) seed() {
	const check = "keys"
	folder := e.settings.KeyDir()
	has, err := transparency.HasSeed(folder)
	switch {
	case err != nil:
		e.add(check, Problem, "%v", err)
	case has:
		e.add(check, OK, "the keys of new logs are derived from the seed in %s", folder)
	case tryFolder(folder) != nil:
		e.add(check, Problem, "%s has no seed and cannot be written to, so new logs get no key (run 'ledgerd log new-seed' "+
			"where it can be written to)", folder)
	case e.settings.Database.IsServer():
		e.add(check, Warning, "%s has no seed: other servers with the database do not get the keys of new logs (run "+
			"'ledgerd log new-seed')", folder)
	}
}

// authorities examines whether the server has the keys of the CAs that certify CI jobs.
func (e *examination) authorities(g store.Glance) {
	const check = "keys"
	missing := false
	for _, root := range g.CAs[:min(len(g.CAs), maxListed)] {
		if err := transparency.CheckCAKey(e.settings.KeyDir(), e.settings.StateDir(), root.PEM); err != nil {
			e.add(check, Problem, "CI jobs of %s get no certificates: %v", root.Org, err)
			missing = true
		}
	}

	switch {
	case len(g.CAs) > maxListed:
		e.add(check, Warning, "only the keys of the first %d CAs were examined", maxListed)
	case len(g.CAs) > 0 && !missing:
		e.add(check, OK, "the keys of the CAs of CI jobs are in %s", e.settings.KeyDir())
	}
}
