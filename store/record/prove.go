package record

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/history"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// prove stores the object of a commit, and takes from it who wrote the commit and what it
// is. It corrects what registrations have claimed before. moved reports whether it has
// changed the parents of a commit that may be a tip.
func (re *Recorder) prove(t *txn.Tx, d *facts.Deriver, c *facts.CommitRow, o *gitobject.Commit) (moved bool,
	err error) {
	key, err := re.objectKey(t, d, o)
	if err != nil {
		return false, err
	}
	list, parents, err := disproved(t, c, o, key)
	if err != nil {
		return false, err
	}

	if err := re.saveObject(t, c, o, key); err != nil {
		return false, err
	}
	for i := range list {
		list[i].At, list[i].By = t.Now, ledger.ByObject
		if err := facts.AddCorrection(t, c, list[i]); err != nil {
			return false, err
		}
	}
	if err := re.facts.LogKnown(t, d.Repo, c.ID, list); err != nil {
		return false, err
	}
	if err := re.states.FillGaps(t, d.Repo); err != nil {
		return false, err
	}
	moved = c.Branch != "" && !slices.Equal(parents, o.Parents)
	return moved, re.facts.JoinTree(t, d, c)
}

// objectKey returns the fingerprint of the key that signed an object, or "". Its owner is an author of the commit, even
// if the key is not trusted yet.
func (re *Recorder) objectKey(t *txn.Tx, d *facts.Deriver, o *gitobject.Commit) (string, error) {
	fingerprint := ancestry.SigningKey(o)
	return fingerprint, re.claimKey(t, d.Repo.OrgID, fingerprint)
}

// claimKey stores that a key is claimed to have signed a commit. If its person is not
// known yet, commits are derived again when it is.
func (re *Recorder) claimKey(t *txn.Tx, orgID int64, fingerprint string) error {
	if fingerprint == "" {
		return nil
	}
	digest, err := hex.DecodeString(fingerprint)
	if err != nil {
		return fmt.Errorf("decode the fingerprint of a key: %w", err)
	}
	id, err := re.signers.RowFor(t, signers.KeyOf(orgID, string(digest)), identity.DN{})
	if err != nil {
		return err
	}
	if _, err := t.Exec("UPDATE keys SET claimed = 1 WHERE id = ? AND claimed = 0", id); err != nil {
		return fmt.Errorf("claim a key: %w", err)
	}
	return nil
}

// stored returns the objects of those of the commits that were known by their object alone.
func (re *Recorder) stored(ctx context.Context, org, repo string, commits ...string) (map[string][]byte, error) {
	return txn.Read(ctx, re.db, txn.ForWrite(org), func(rd txn.Reader) (map[string][]byte, error) {
		r, err := rd.FindRepo(org, repo)
		if err != nil {
			return nil, err
		}
		return history.Objects(rd, r.ID, commits)
	})
}

// disproved returns what registrations have claimed of a commit and its object says
// otherwise, and the parents that they have claimed.
func disproved(t *txn.Tx,
	c *facts.CommitRow, o *gitobject.Commit, key string,
) (list []ledger.Correction, parents []string, err error) {
	var message string
	var committedAt ledger.Time
	err = t.Row("SELECT message, committed_at FROM commits WHERE id = ?", c.ID).Scan(&message, &committedAt)
	if err != nil {
		return nil, nil, fmt.Errorf("read commit: %w", err)
	}
	writers, err := c.Claims.DecodeWriters()
	if err != nil {
		return nil, nil, err
	}
	details, err := facts.FindLineage(t.Reader, c.ID)
	if err != nil {
		return nil, nil, err
	}

	differ := func(field string, isClaimed bool, before, after []string) {
		if isClaimed && !slices.Equal(before, after) {
			list = append(list, ledger.Correction{
				Field: field, Before: ledger.CorrectedText(before), After: ledger.CorrectedText(after),
			})
		}
	}
	differ("author", checkAuthor(c, o.Author.Author) != nil, people(c.Author), people(o.Author.Author))
	differ("writers", !isSubset(writers, o.Writers()), people(writers...), people(o.Writers()...))
	differ("signing_keys", !isSubset(c.Claims.Keys(), given(key)), c.Claims.Keys(), given(key))
	differ("parents", len(details.Parents) > 0, details.Parents, o.Parents)
	differ("message", message != "", given(message), given(o.Message))
	differ("committed_at", committedAt != 0, given(committedAt.String()), given(o.Committer.At.String()))
	return list, details.Parents, nil
}

// people returns authors as git writes them.
func people(list ...ledger.Author) []string {
	var names []string
	for _, a := range list {
		names = append(names, a.Name+" <"+a.Email+">")
	}
	return names
}

// given returns a list with s, or without it if it is empty.
func given(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// isSubset reports whether b contains all elements of a.
func isSubset[T comparable](a, b []T) bool {
	return !slices.ContainsFunc(a, func(v T) bool { return !slices.Contains(b, v) })
}

// saveObject stores the object of a commit, and what it says.
func (re *Recorder) saveObject(t *txn.Tx, c *facts.CommitRow, o *gitobject.Commit, key string) error {
	var err error
	if c.Claims.Writers, err = facts.EncodeWriters(o.Writers()); err != nil {
		return err
	}
	c.Tree, c.Author, c.Claims.SigningKeys = o.Tree, o.Author.Author, key
	_, err = t.Exec(`
UPDATE commits SET tree = ?, author_name = ?, author_email = ?, message = ?, committed_at = ?, writers = ?,
  signing_keys = ?
WHERE id = ?`, c.Tree, c.Author.Name, c.Author.Email, o.Message, o.Committer.At, c.Claims.Writers, c.Claims.SigningKeys,
		c.ID)
	if err != nil {
		return fmt.Errorf("update commit: %w", err)
	}
	if _, err := t.Exec("INSERT INTO commit_objects (commit_id, object) VALUES (?, ?)", c.ID, o.Object); err != nil {
		return fmt.Errorf("insert commit object: %w", err)
	}
	if err := history.Forget(t, c.RepoID, c.SHA); err != nil {
		return err
	}

	details, err := facts.FindDetails(t.Reader, c.ID)
	if err != nil {
		return err
	}
	details.Parents = o.Parents
	return re.facts.SaveDetails(t, c.ID, details)
}

// checkProven returns an error if a registration contradicts the object of a proven commit.
func checkProven(t *txn.Tx, c *facts.CommitRow, n ledger.Registration) error {
	if n.Parents == nil && n.Author == (ledger.Author{}) && n.Committer == (ledger.Author{}) && n.Message == "" &&
		n.CommittedAt == 0 {
		return nil
	}
	var object []byte
	err := t.Row("SELECT object FROM commit_objects WHERE commit_id = ?", c.ID).Scan(&object)
	if err != nil {
		return fmt.Errorf("read commit object: %w", err)
	}
	o, err := gitobject.Decode(c.SHA, object)
	if err != nil {
		return fmt.Errorf("decode the stored object of %s: %w", c.SHA, err)
	}
	return o.CheckClaims(n)
}

// checkAuthor returns an error if a registration changes the author of a commit. Git
// cannot change it either. With a false author, reviews by the real author would count.
func checkAuthor(c *facts.CommitRow, n ledger.Author) error {
	matches := func(before, now string) bool { return now == "" || before == "" || before == now }
	if matches(c.Author.Name, n.Name) && matches(c.Author.Email, n.Email) {
		return nil
	}
	return ledger.FieldErrorf(ledger.CodeInvalidField, "author",
		"already registered as %s <%s>, and cannot change", c.Author.Name, c.Author.Email)
}

// recordSignature records the SSH signature in a commit object as an attestation, if its
// key is trusted. It returns what became of it, and whether it was recorded just now.
func (re *Recorder) recordSignature(
	ctx context.Context, org, repo string, o *gitobject.Commit,
) (result *ledger.CommitSignature, isNew bool, err error) {
	r, err := re.attest(ctx, org, repo, func(_ attestation.Place, keys *identity.Keyring) (
		*attestation.Attestation, error,
	) {
		return attestation.OfCommit(o, keys, re.db.Clock.Now())
	})
	fault, isFault := errors.AsType[*ledger.Error](err)
	switch {
	case err == nil:
		return &ledger.CommitSignature{Attestation: r.Record.ID}, r.Created, nil
	case isFault && !txn.IsUnavailable(err):
		return &ledger.CommitSignature{Reason: cmp.Or(fault.Detail, err.Error())}, false, nil
	}
	return nil, false, err
}
