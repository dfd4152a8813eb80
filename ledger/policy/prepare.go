package policy

// maxUnpreparedNames limits the comparisons of signers with patterns while others wait.
const maxUnpreparedNames = 5_000

// NeedsMemo reports whether a Memo can make derivations faster.
func (c *Contract) NeedsMemo() bool { return c.index != nil || c.hasGlobs() }

// IsPrepared reports whether a state can be derived fast: all that takes long is in
// Facts.Memo. The facts of most commits are.
func (c *Contract) IsPrepared(f *Facts) bool {
	if f.Memo == nil {
		return true
	}
	if c.hasGlobs() && !c.isMatchedFast(f) {
		if _, ok := f.Memo.Scopes(f.scopeKey()); !ok {
			return false
		}
	}
	m := c.signerMatcher(f)
	return m.index == nil || m.unknown()*len(m.index.patterns) <= maxUnpreparedNames
}

// Prepare finds out all that takes long, and keeps it in Facts.Memo.
func (c *Contract) Prepare(f *Facts) {
	if f.Memo == nil {
		return
	}
	c.scopes(f)
	if m := c.signerMatcher(f); m.index != nil {
		for i := range f.Evidence {
			m.match(f.Evidence[i].Signer, m.limit)
		}
		for i := range f.Exceptions {
			m.match(f.Exceptions[i].Signer, m.index.exceptionsEnd)
		}
	}
}
