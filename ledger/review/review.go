// Package review has the statements that members sign to review a commit on its page, and the
// requests about them.
package review

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/passkey"
)

const (
	// Lifetime is how long a draft can be signed.
	Lifetime = 10 * time.Minute
	// MaxAge is how long ago the provider may have authenticated a person who reviews.
	MaxAge = 15 * time.Minute
	// maxAhead is by how much the clock of a provider may be ahead.
	maxAhead = time.Minute
	// MaxComment is the maximum number of characters of a comment.
	MaxComment = 2000
	// MaxRequest is the maximum size of a request in bytes.
	MaxRequest = 64 << 10

	// Prefix begins the predicates of all reviews.
	Prefix = ledger.ReviewPrefix
	// Predicate is the predicate of a review by default.
	Predicate = Prefix + "code"
)

// The annotations of a statement.
const (
	comment = "comment"
	tree    = "tree"
	nonce   = "nonce"
)

// A Verdict is the decision of a reviewer about a commit.
type Verdict string

// The verdicts.
const (
	Approve        Verdict = "approve"
	RequestChanges Verdict = "request_changes"
)

// Status returns the result of a statement with the verdict.
func (v Verdict) Status() ledger.Status {
	if v == Approve {
		return ledger.Pass
	}
	return ledger.Fail
}

// A NewDraft is the body of a request for a statement to sign.
type NewDraft struct {
	Verdict Verdict `json:"verdict"`
	// Predicate begins with review: and is Predicate by default.
	Predicate string `json:"predicate,omitzero"`
	Comment   string `json:"comment,omitzero"`
}

// A Draft is a statement to sign.
type Draft struct {
	// Payload is the statement. It is signed byte for byte.
	Payload   []byte      `json:"payload"`
	ExpiresAt ledger.Time `json:"expires_at"`
	Scope
	// RPID is the domain of the passkeys that can confirm it, and Passkeys are their credential IDs. They
	// are empty if the member has no passkeys.
	RPID     string   `json:"rp_id,omitzero"`
	Passkeys [][]byte `json:"passkeys,omitempty"`
	// PasskeyRequired says that the draft counts only with a passkey, because the sign-in of the member
	// is too long ago.
	PasskeyRequired bool `json:"passkey_required,omitzero"`
}

// A Scope is what a review is about: the commits that lead to its commit and not to the base. It is empty if the review
// is about its commit alone.
type Scope struct {
	Base string `json:"base,omitzero"`
	// Branch is the one that the commit is meant for. Base is the merge base with its newest commit, and Since what is
	// known of the base.
	Branch  string    `json:"branch,omitzero"`
	Since   *Covered  `json:"since,omitzero"`
	Commits []Covered `json:"commits,omitempty"` // the reviewed one first
}

// MaxCovered is the maximum number of commits of a scope. Nobody reads more in a page.
const MaxCovered = 100

// A Covered is a commit that a review is about, or its base, as its object says.
type Covered struct {
	SHA     string        `json:"sha"`
	Subject string        `json:"subject"`
	Author  ledger.Author `json:"author"`
}

// A NewReview is the body of a request to record a statement that was signed.
type NewReview struct {
	// Payload is that of the draft.
	Payload []byte `json:"payload"`
	// PublicKey is an ECDSA key on P-256 as a DER SubjectPublicKeyInfo.
	PublicKey []byte `json:"public_key"`
	// Signature is that of the payload's pre-authentication encoding (DSSE), in DER.
	Signature []byte `json:"signature"`
	// Confirmation is that of a passkey. It is needed if the sign-in is too long ago.
	Confirmation *passkey.Confirmation `json:"confirmation,omitzero"`
}

// Completed returns the draft with its predicate. It returns a field error for the first field that
// is invalid.
func (n NewDraft) Completed() (NewDraft, error) {
	if n.Predicate == "" {
		n.Predicate = Predicate
	}
	switch {
	case n.Verdict != Approve && n.Verdict != RequestChanges:
		return n, invalidField("verdict", "use %s or %s", Approve, RequestChanges)
	case !IsPredicate(n.Predicate):
		return n, invalidField("predicate", "use one that begins with %s, such as %s", Prefix, Predicate)
	case !IsComment(n.Comment):
		return n, invalidField("comment",
			"use at most %d characters, without invisible ones (new lines and tabs are allowed), and not only spaces",
			MaxComment)
	}
	return n, nil
}

// IsPredicate reports whether s is the predicate of a review.
func IsPredicate(s string) bool {
	return ledger.IsPredicateName(s) && strings.HasPrefix(s, Prefix) && len(s) > len(Prefix)
}

// IsComment reports whether s can be the comment of a review: it must look like what it says.
// Characters that are invisible or change the order of others are refused, and so is a blank text.
// The characters that make emoji of symbols are an exception.
func IsComment(s string) bool {
	if !utf8.ValidString(s) || utf8.RuneCountInString(s) > MaxComment {
		return false
	}
	var visible strings.Builder
	joinable := false
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			visible.WriteByte(' ')
		case joinable && (r == joiner || r == emojiStyle):
		default:
			visible.WriteRune(r)
		}
		joinable = unicode.IsSymbol(r) || joinable && r == emojiStyle
	}
	return identity.CheckVisible(visible.String()) == nil
}

// The characters that make emoji: one joins two to one, the other selects the colored form.
const (
	joiner     = '\u200d'
	emojiStyle = '\ufe0f'
)

// Annotations returns the annotations of a statement. Empty ones are left out.
func Annotations(text, treeID, nonceText string) map[string]string {
	all := make(map[string]string)
	for name, value := range map[string]string{comment: text, tree: treeID, nonce: nonceText} {
		if value != "" {
			all[name] = value
		}
	}
	return all
}

// Statement returns the statement of a completed draft about a commit of a repo, which is named
// org/name. The tree and the base may be empty. The nonce makes the statement unique.
func (n NewDraft) Statement(repo, commit, treeID, base, nonceText string) ([]byte, error) {
	return attestation.NewTreeStatement(repo, commit, treeID, attestation.ResultPredicate{
		Predicate: n.Predicate, Result: ledger.Result{Status: n.Verdict.Status()}, Repo: repo, Base: base,
		Annotations: Annotations(n.Comment, treeID, nonceText),
	})
}

// CheckRecent returns CodeSignInAgain if the provider did not authenticate a person in the last
// MaxAge. what says what the person is about to do.
func CheckRecent(authTime, now ledger.Time, what string) error {
	if age := now.Sub(authTime); authTime == 0 || age > MaxAge || age < -maxAhead {
		return ledger.Errorf(ledger.CodeSignInAgain,
			"you must have signed in during the last %d minutes to %s (sign in again, then do it)", int(MaxAge.Minutes()), what)
	}
	return nil
}

// Verify returns the key of a review whose signature is that of its payload. The caller must know
// the payload as that of a draft. Errors are about a field, or CodeInvalidSignature.
func (n NewReview) Verify() (*ecdsa.PublicKey, error) {
	parsed, err := x509.ParsePKIXPublicKey(n.PublicKey)
	if err != nil {
		return nil, invalidField("public_key", "not a public key: %v", err)
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, invalidField("public_key", "not an ECDSA key on P-256")
	}
	digest := sha256.Sum256(attestation.PAE(attestation.StatementType, n.Payload))
	if !ecdsa.VerifyASN1(key, digest[:], n.Signature) {
		return nil, ledger.Errorf(ledger.CodeInvalidSignature,
			"the signature does not match this payload and the key (it must be in DER, over the DSSE encoding of the payload)")
	}
	return key, nil
}

// Digest returns the SHA-256 of the payload.
func (n NewReview) Digest() [sha256.Size]byte { return sha256.Sum256(n.Payload) }

// Nonce returns the text of random bytes.
func Nonce(random [32]byte) string { return base64.RawURLEncoding.EncodeToString(random[:]) }

func invalidField(field, format string, args ...any) error {
	return ledger.FieldErrorf(ledger.CodeInvalidField, field, format, args...)
}
