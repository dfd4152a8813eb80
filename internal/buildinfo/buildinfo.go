// Package buildinfo tells which version of ledgerd this is.
package buildinfo

import "runtime/debug"

// Version returns the version that the binary was built from: the tag, or what
// the go command makes of the commit.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// UserAgent is what HTTP requests name as their sender.
func UserAgent() string { return "ledgerd/" + Version() }
