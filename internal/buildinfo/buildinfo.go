// Package buildinfo returns the version of this binary.
package buildinfo

import "runtime/debug"

// Version returns the version of ledgerd: the tag of its commit, or else a
// pseudo-version. It is "(devel)" if the build recorded none.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// UserAgent returns the User-Agent of HTTP requests, such as ledgerd/v1.2.3.
func UserAgent() string { return "ledgerd/" + Version() }
