package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A signerMatcher finds for which requirements the signers of one commit may sign.
type signerMatcher struct {
	c     *Contract
	f     *Facts
	index *signerIndex // nil if comparing each pattern is faster
	known map[identity.DN]*SignerMatch
	// at has what is known by the position of the evidence.
	at []*SignerMatch
	// names is the number of distinct signers. It is 0 if they cannot pass the limit.
	names int
	limit int // of patterns that each signer is compared with
}

func (c *Contract) signerMatcher(f *Facts) signerMatcher {
	m := signerMatcher{c: c, f: f, index: c.index}
	if m.index == nil && len(f.Evidence) > maxCompared {
		m.index = newSignerIndex(c.Exceptions.Signers, c.Requirements)
	}
	if m.index == nil {
		return m
	}

	m.known = make(map[identity.DN]*SignerMatch)
	m.at = make([]*SignerMatch, len(f.Evidence))
	m.limit = len(m.index.Patterns)
	if m.limit*len(f.Evidence) > maxComparisons {
		names := make(map[identity.DN]struct{}, len(f.Evidence))
		for i := range f.Evidence {
			names[f.Evidence[i].Signer] = struct{}{}
		}
		m.names = len(names)
		m.limit = min(m.limit, maxComparisons/m.names)
	}
	return m
}

// tooMany reports whether comparing the signers with the patterns of a requirement, and of
// those before it, would pass the limit.
func (m *signerMatcher) tooMany(requirement int) bool {
	return m.index != nil && len(m.index.of[requirement]) > 0 && m.index.end[requirement] > m.limit
}

// isSigner reports whether the signer of the evidence at a position is one of the
// requirement's, which has patterns.
func (m *signerMatcher) isSigner(requirement, at int) bool {
	if m.index == nil {
		return m.c.Requirements[requirement].isSigner(m.f.Evidence[at].Signer)
	}
	if m.at[at] == nil {
		m.at[at] = m.match(m.f.Evidence[at].Signer, m.limit)
	}
	return m.at[at].set.Contains(requirement)
}

// isAnySigner is like isSigner, for somebody who may have no evidence, and for a requirement
// that may have no patterns.
func (m *signerMatcher) isAnySigner(requirement int, d identity.DN) bool {
	r := &m.c.Requirements[requirement]
	if m.index == nil || len(r.Signers) == 0 {
		return r.isSigner(d)
	}
	return m.match(d, m.index.end[requirement]).set.Contains(requirement)
}

// mayExcept reports whether the exceptions of a signer count.
func (m *signerMatcher) mayExcept(d identity.DN) bool {
	if m.index == nil {
		return matchesAny(m.c.Exceptions.Signers, d)
	}
	return m.match(d, m.index.exceptionsEnd).set.Contains(exceptionBit)
}

// match returns the match of a signer with at least the first patterns, up to the limit.
func (m *signerMatcher) match(d identity.DN, limit int) *SignerMatch {
	if known := m.known[d]; known != nil && known.compared >= limit {
		return known
	}
	match, ok := SignerMatch{}, false
	if m.f.Memo != nil {
		match, ok = m.f.Memo.Signer(d)
	}
	if !ok || match.compared < limit {
		match = m.index.match(d, limit)
		if m.f.Memo != nil {
			m.f.Memo.SetSigner(d, match)
		}
	}
	m.known[d] = &match
	return &match
}

// unknown returns the number of signers that are not in the memo.
func (m *signerMatcher) unknown() (n int) {
	seen := make(map[identity.DN]struct{}, len(m.f.Evidence))
	for i := range m.f.Evidence {
		d := m.f.Evidence[i].Signer
		if _, ok := seen[d]; ok {
			continue
		}
		seen[d] = struct{}{}
		if match, ok := m.f.Memo.Signer(d); !ok || match.compared < m.limit {
			n++
		}
	}
	return n
}

// maxUnpreparedNames limits the comparisons of signers with patterns while others wait.
const maxUnpreparedNames = 5_000

// NeedsMemo reports whether a Memo can make derivations faster.
func (c *Contract) NeedsMemo() bool { return c.index != nil || c.hasGlobs() }

// withCarried returns facts in which carried evidence is among the evidence.
func (f *Facts) withCarried() *Facts {
	if len(f.Carried) == 0 {
		return f
	}
	all := *f
	all.Evidence = append(slices.Clip(f.Evidence), f.Carried...)
	return &all
}

// IsPrepared reports whether a state can be derived fast: all that takes long is in
// Facts.Memo. The facts of most commits are.
func (c *Contract) IsPrepared(f *Facts) bool {
	if f.Memo == nil {
		return true
	}
	if c.hasGlobs() && !c.isMatchedFast(f) && !c.KnowsScopes(f) {
		return false
	}
	m := c.signerMatcher(f.withCarried())
	return m.index == nil || m.unknown()*len(m.index.Patterns) <= maxUnpreparedNames
}

// Prepare finds out all that takes long, and keeps it in Facts.Memo. The changes must have
// been read.
func (c *Contract) Prepare(f *Facts) {
	if f.Memo == nil {
		return
	}
	if c.hasGlobs() {
		c.memorizedScopes(f)
	}
	if m := c.signerMatcher(f.withCarried()); m.index != nil {
		for i := range m.f.Evidence {
			m.match(m.f.Evidence[i].Signer, m.limit)
		}
		for i := range f.Exceptions {
			m.match(f.Exceptions[i].Signer, m.index.exceptionsEnd)
		}
	}
}
