package subprocess

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hideMemory makes the kernel deny other processes of the same user access to the
// memory, the environment and the open files of this process. It is never undone,
// because a process that the command left running could wait for that.
func hideMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide the memory of ledgerd from the command: %w", err)
	}
	return nil
}
