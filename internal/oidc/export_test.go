package oidc

// MaxCached is the number of issuers whose keys are cached.
const MaxCached = maxIssuers

// Cached returns the number of issuers that are cached.
func (v *Issuers) Cached() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.byURL)
}
