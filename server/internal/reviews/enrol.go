package reviews

import (
	"context"
	"crypto/rand"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/review"
)

// Challenge returns what the browser of a member needs to make a passkey.
func (d *Desk) Challenge(ctx context.Context, org string, t ledger.Token) (o passkey.Options, err error) {
	if err := d.checkEnrolment(t); err != nil {
		return o, err
	}
	mine, err := d.passkeys(ctx, org, t)
	if err != nil {
		return o, err
	}

	o = passkey.Options{
		Challenge: make([]byte, 32), RPID: d.Party.ID, User: t.Member, DN: t.DN, Algorithms: passkey.Algorithms(),
		Enrolled: [][]byte{}, ExpiresAt: d.Now().Add(passkey.Lifetime),
	}
	rand.Read(o.Challenge) // never returns an error
	for _, p := range mine {
		o.Enrolled = append(o.Enrolled, p.CredentialID)
	}
	return o, d.Store.CreatePasskeyChallenge(ctx, org, t.ID, o.Challenge, o.ExpiresAt)
}

// Enrol adds the passkey that the browser of a member has made.
func (d *Desk) Enrol(
	ctx context.Context, org string, t ledger.Token, n passkey.NewPasskey,
) (p passkey.Passkey, err error) {
	if err := d.checkEnrolment(t); err != nil {
		return p, err
	}
	key, challenge, err := n.Verify(d.Party)
	if err != nil {
		return p, err
	}
	return d.Store.AddPasskey(ctx, org, t.ID, challenge, passkey.Passkey{
		Name: n.Name, RPID: d.Party.ID, CredentialID: n.CredentialID, PublicKey: key,
	})
}

// checkEnrolment returns an error unless a token is that of a member who has signed in lately: an
// unattended session must not be enough to add a passkey.
func (d *Desk) checkEnrolment(t ledger.Token) error {
	switch {
	case d.Party.ID == "":
		return ledger.Errorf(ledger.CodeNotFound, "this server takes no passkeys: its setting sign_in.rp_id is empty")
	case !t.IsSignIn || t.Member == "":
		return ledger.Errorf(ledger.CodeForbidden, "only people who sign in with a provider have passkeys")
	}
	return review.CheckRecent(t.AuthTime, d.Now(), "add a passkey")
}
