package transparency

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// checkFolders returns an error if the folders cannot have the keys of the logs, and what this
// server signs last. Others may have access to a folder of keys that is apart, such as a mounted
// secret: its files are checked when they are read.
func checkFolders(folder, state string) error {
	if folder != state {
		if err := checkKeyDir(folder); err != nil {
			return err
		}
	}
	return CheckFolder(stateSetting(folder, state), state)
}

// stateSetting returns the name of the setting of the state folder.
func stateSetting(folder, state string) string {
	if folder == state {
		return "log.key_dir"
	}
	return "log.state_dir"
}

// checkKeyDir returns an error if there is no folder of keys.
func checkKeyDir(folder string) error {
	err := checkFolder("log.key_dir", folder)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w (mount it, or run 'ledgerd log new-seed %s')", err, folder)
	}
	return err
}

// CheckFolder returns an error if the value of a setting is not a folder, or others have access
// to it. If it does not exist, the error is an fs.ErrNotExist.
func CheckFolder(setting, folder string) error {
	if err := checkFolder(setting, folder); err != nil {
		return err
	}
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("open %s: %w", setting, err)
	}
	if info.Mode().Perm()&0o077 != 0 && enforcesModes {
		return fmt.Errorf("others have access to the keys in %s %s (run chmod 700 %s)", setting, folder, folder)
	}
	return nil
}

func checkFolder(setting, folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("open %s: %w", setting, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s %s is not a folder", setting, folder)
	}
	return nil
}

// checkSecret returns an error if others have access to a file.
func checkSecret(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	isOwn, isRoots := ownerOf(info)
	return checkMode(name, info.Mode(), isOwn, isRoots)
}

// checkMode returns an error if others have access to a file that belongs to the user of this
// process, to root, or to neither. One of root may be readable by its group: that is how secrets
// are mounted for other users.
func checkMode(name string, mode fs.FileMode, isOwn, isRoots bool) error {
	allowed := fs.FileMode(0o700)
	if !isOwn {
		allowed |= 0o040
	}
	switch {
	case !mode.IsRegular():
		return fmt.Errorf("%s is not a file", name)
	case !isOwn && !isRoots:
		return fmt.Errorf("%s belongs to another user (give it to the user of the server, or to root)", name)
	case mode.Perm()&^allowed != 0 && enforcesModes:
		return fmt.Errorf("others have access to %s (run chmod %o %s)", name, mode.Perm()&allowed, name)
	}
	return nil
}

// tryWrite returns an error if no file can be created in the state folder.
func tryWrite(folder, state string) error {
	file, err := os.CreateTemp(state, ".ledgerd-*")
	if err == nil {
		return errors.Join(file.Close(), os.Remove(file.Name()))
	}
	if folder == state {
		return fmt.Errorf("log.key_dir cannot be written to: %w (set log.state_dir to a folder for what this server signs)",
			err)
	}
	return fmt.Errorf("log.state_dir cannot be written to: %w", err)
}
