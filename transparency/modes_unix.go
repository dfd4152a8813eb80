//go:build unix

package transparency

// enforcesModes reports whether the permissions of a folder keep others out.
const enforcesModes = true
